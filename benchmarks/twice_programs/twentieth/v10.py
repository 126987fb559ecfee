"""Spread of a rumour in a town of agents with homes, moods and friendships.

The town is drawn from the scenario, then stepped day by day; several treatments
of the same town are compared. The random seed is part of the scenario.
Writes daily_counts.csv, agents.json and treatments.json.
Modelled on: https://github.com/gsi-upm/soil/issues/6
"""
import csv
import json
import logging
import random
import time
from dataclasses import dataclass

import networkx as nx

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
log = logging.getLogger("town")

SCENARIO = {
    "name": "rumour",
    "seed": 20200727,
    "n_agents": 5000,
    "days": 110,
    "topology": {"generator": "newman_watts_strogatz_graph", "k": 8, "p": 0.08, "seed": 11},
    "agent_mix": [("citizen", 0.82), ("sceptic", 0.12), ("herald", 0.06)],
    "initial_heralds_active": 0.15,
}

TREATMENTS = [
    {"name": "baseline", "fact_check": 0.0, "closed_market": False},
    {"name": "fact_check", "fact_check": 0.04, "closed_market": False},
    {"name": "closed_market", "fact_check": 0.0, "closed_market": True},
]


class Agent:
    """Base class: knows its environment and its node in the network."""

    def __init__(self, node, environment):
        self.node = node
        self.env = environment
        self.state = "neutral"
        self.age = int(random.triangular(16, 90, 38))
        self.trust = random.betavariate(4, 3)
        self.activity = random.gammavariate(2.0, 0.25)
        self.home = (random.random(), random.random())

    def friends(self):
        return [self.env.agents[n] for n in self.env.network.neighbors(self.node)]

    def step(self):
        raise NotImplementedError


class Citizen(Agent):
    def step(self):
        if self.state == "neutral":
            heard = sum(1 for f in self.friends() if f.state == "spreading")
            if heard and random.random() < 1 - (1 - 0.11 * self.trust) ** heard:
                self.state = "spreading"
        elif self.state == "spreading":
            if random.random() < 0.05 + self.env.treatment["fact_check"]:
                self.state = "bored"


class Sceptic(Citizen):
    def step(self):
        if self.state == "neutral":
            heard = [f for f in self.friends() if f.state == "spreading"]
            if len(heard) >= 3 and random.random() < 0.2 * self.trust:
                self.state = "spreading"
        elif self.state == "spreading" and random.random() < 0.2:
            self.state = "bored"
            for friend in self.friends():
                if friend.state == "spreading" and random.random() < 0.15:
                    friend.state = "bored"


class Herald(Citizen):
    """Meets people on the market besides his friends."""

    def step(self):
        super().step()
        if self.state != "spreading" or self.env.treatment["closed_market"]:
            return
        for _ in range(1 + int(3 * self.activity)):
            other = random.choice(self.env.agents)
            if other.state == "neutral" and random.random() < 0.25 * other.trust:
                other.state = "spreading"


TYPES = {"citizen": Citizen, "sceptic": Sceptic, "herald": Herald}


@dataclass
class DayCount:
    treatment: str
    day: int
    neutral: int
    spreading: int
    bored: int


class Environment:
    """Holds the network, the agents and the state of one simulation."""

    def __init__(self, scenario, treatment):
        self.scenario = scenario
        self.treatment = treatment
        self.network = self._make_network(scenario["topology"], scenario["n_agents"])
        self.agents = []
        self.set_up_agents(scenario["agent_mix"])  # cause
        random.seed(scenario["seed"])  # cause
        self._activate(scenario["initial_heralds_active"])
        self.history = []

    @staticmethod
    def _make_network(topology, n):
        generator = getattr(nx, topology["generator"])
        return generator(n, topology["k"], topology["p"], seed=topology["seed"])

    def set_up_agents(self, mix):
        names = [name for name, _ in mix]
        weights = [weight for _, weight in mix]
        for node in self.network.nodes:
            kind = random.choices(names, weights)[0]
            self.agents.append(TYPES[kind](node, self))

    def _activate(self, share):
        heralds = [a for a in self.agents if isinstance(a, Herald)]
        count = max(2, round(share * len(heralds)))
        for agent in heralds[:count]:
            agent.state = "spreading"

    def run(self):
        for day in range(self.scenario["days"]):
            self.history.append(self.count(day))
            order = list(self.agents)
            random.shuffle(order)
            for agent in order:
                if random.random() < min(1.0, 0.35 + agent.activity):
                    agent.step()
        self.history.append(self.count(self.scenario["days"]))
        return self

    def count(self, day):
        states = [a.state for a in self.agents]
        return DayCount(self.treatment["name"], day, states.count("neutral"),
                        states.count("spreading"), states.count("bored"))

    def summary(self):
        peak = max(self.history, key=lambda c: (c.spreading, -c.day))
        last = self.history[-1]
        reached = [a for a in self.agents if a.state != "neutral"]
        return {
            "treatment": self.treatment["name"],
            "heralds": sum(isinstance(a, Herald) for a in self.agents),
            "sceptics": sum(isinstance(a, Sceptic) for a in self.agents),
            "peak_day": peak.day,
            "peak_spreading": peak.spreading,
            "reached": len(reached) / len(self.agents),
            "still_spreading": last.spreading,
            "mean_age_reached": sum(a.age for a in reached) / max(1, len(reached)),
        }


def write_history(environments):
    with open("daily_counts.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["treatment", "day", "neutral", "spreading", "bored"])
        for env in environments:
            for c in env.history:
                writer.writerow([c.treatment, c.day, c.neutral, c.spreading, c.bored])


def write_agents(env):
    rows = [{"node": a.node, "type": type(a).__name__, "age": a.age, "trust": a.trust,
             "home": list(a.home), "state": a.state} for a in env.agents]
    with open("agents.json", "w") as fh:
        json.dump(rows, fh)


def main():
    started = time.time()
    environments = []
    for treatment in TREATMENTS:
        env = Environment(SCENARIO, treatment).run()
        environments.append(env)
        s = env.summary()
        log.info("%-14s reached %.4f, peak %d on day %d", s["treatment"], s["reached"], s["peak_spreading"], s["peak_day"])
    write_history(environments)
    write_agents(environments[0])
    summaries = [env.summary() for env in environments]
    base = summaries[0]["reached"]
    for s in summaries:
        s["effect"] = s["reached"] - base
        print(f"{s['treatment']:<14} reached {s['reached']:.4f} effect {s['effect']:+.4f}")
    with open("treatments.json", "w") as fh:
        json.dump({"scenario": SCENARIO["name"], "seed": SCENARIO["seed"], "treatments": summaries}, fh, indent=2)
    log.info("%d simulations in %.1f s", len(environments), time.time() - started)


if __name__ == "__main__":
    main()
