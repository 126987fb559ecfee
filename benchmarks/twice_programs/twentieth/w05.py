"""Stochastic epidemic on a household and workplace contact network.

Builds a population of people with contacts of different strength, runs an
event-driven Gillespie simulation of an SIRS process for three control policies
and writes the epidemic curves and a table of peak and attack rates.

Modelled on: https://github.com/springer-math/Mathematics-of-Epidemics-on-Networks/issues/22
"""
import json
import logging
import random
import sys
import time

import networkx as nx
import numpy as np
import pandas as pd

logging.basicConfig(level=logging.INFO, stream=sys.stdout,
                    format="%(asctime)s %(name)s: %(message)s", datefmt="%H:%M:%S")
log = logging.getLogger("epidemic")

SEED = 7
POPULATION = 1600
T_MAX = 120.0
POLICIES = {
    "none": {"tau": 0.16, "gamma": 0.12, "waning": 0.05},
    "masks": {"tau": 0.115, "gamma": 0.12, "waning": 0.05},
    "isolation": {"tau": 0.16, "gamma": 0.20, "waning": 0.05},
}

S, I, R = "S", "I", "R"


class Person:
    """One individual; a node of the contact graph."""

    __slots__ = ("pid", "age", "household", "state", "n_infections")

    def __init__(self, pid, age, household):
        self.pid = pid
        self.age = age
        self.household = household
        self.state = S
        self.n_infections = 0

    def __repr__(self):
        return f"Person({self.pid}, {self.age}y, hh{self.household}, {self.state})"


def build_population(n, seed):
    """Households of 1-5 people, workplaces of about 12, a few random contacts."""
    rng = np.random.default_rng(seed)
    graph = nx.Graph()
    people, household = [], 0
    while len(people) < n:
        size = int(rng.choice([1, 2, 3, 4, 5], p=[0.25, 0.3, 0.18, 0.17, 0.1]))
        members = []
        for _ in range(min(size, n - len(people))):
            person = Person(len(people), int(rng.integers(3, 85)), household)
            people.append(person)
            members.append(person)
            graph.add_node(person)
        for i, a in enumerate(members):
            for b in members[i + 1:]:
                graph.add_edge(a, b, kind="home")
        household += 1

    workers = [p for p in people if 6 <= p.age <= 65]
    order = rng.permutation(len(workers))
    for begin in range(0, len(workers), 12):
        group = [workers[k] for k in order[begin:begin + 12]]
        for i, a in enumerate(group):
            for b in group[i + 1:]:
                if rng.random() < 0.35 and not graph.has_edge(a, b):
                    graph.add_edge(a, b, kind="work")
    for _ in range(n):
        a, b = rng.integers(0, n, 2)
        if a != b and not graph.has_edge(people[a], people[b]):
            graph.add_edge(people[a], people[b], kind="other")
    return graph, people


class SIRS:
    """Gillespie simulation with rejection of contacts that cannot be infected."""

    def __init__(self, graph, people, tau, gamma, waning, seed):
        self.graph = graph
        self.people = people
        self.tau, self.gamma, self.waning = tau, gamma, waning
        self.rng = random.Random(seed)
        self.max_degree = max(dict(graph.degree()).values())
        self.neighbours = {p: list(graph.neighbors(p)) for p in people}
        self.infectious = set()
        self.recovered = []
        self.time = 0.0
        self.events = {"infection": 0, "recovery": 0, "waning": 0, "rejected": 0}

    def seed_infections(self, k):
        for person in self.rng.sample(self.people, k):
            self._infect(person)

    def _infect(self, person):
        person.state = I
        person.n_infections += 1
        self.infectious.add(person)

    def _pick_infectious(self):
        """A uniformly chosen infectious person."""
        return self.rng.choice(list(self.infectious))  # cause

    def _rates(self):
        return (self.tau * self.max_degree * len(self.infectious),
                self.gamma * len(self.infectious),
                self.waning * len(self.recovered))

    def step(self):
        rates = self._rates()
        total = sum(rates)
        if total == 0:
            return False
        self.time += self.rng.expovariate(total)
        u = self.rng.random() * total
        if u < rates[0]:
            self._try_transmission()
        elif u < rates[0] + rates[1]:
            self._recover()
        else:
            self._wane()
        return True

    def _try_transmission(self):
        source = self._pick_infectious()
        contacts = self.neighbours[source]
        slot = self.rng.randrange(self.max_degree)
        if slot >= len(contacts) or contacts[slot].state != S:
            self.events["rejected"] += 1
            return
        target = contacts[slot]
        if self.graph.edges[source, target]["kind"] == "other" and self.rng.random() < 0.5:
            self.events["rejected"] += 1
            return
        self._infect(target)
        self.events["infection"] += 1

    def _recover(self):
        person = self._pick_infectious()
        self.infectious.remove(person)
        person.state = R
        self.recovered.append(person)
        self.events["recovery"] += 1

    def _wane(self):
        k = self.rng.randrange(len(self.recovered))
        self.recovered[k], self.recovered[-1] = self.recovered[-1], self.recovered[k]
        self.recovered.pop().state = S
        self.events["waning"] += 1

    def run(self, t_max, grid):
        """Advance to t_max, recording the compartments at the grid times."""
        curve, k = [], 0
        while self.time < t_max:
            while k < len(grid) and self.time >= grid[k]:
                curve.append(self._snapshot(grid[k]))
                k += 1
            if not self.step():
                break
        while k < len(grid):
            curve.append(self._snapshot(grid[k]))
            k += 1
        return pd.DataFrame(curve)

    def _snapshot(self, t):
        infected, immune = len(self.infectious), len(self.recovered)
        return {"t": t, "S": len(self.people) - infected - immune, "I": infected, "R": immune}


def age_attack_rates(people):
    bands = {"0-19": (0, 19), "20-64": (20, 64), "65+": (65, 200)}
    out = {}
    for name, (lo, hi) in bands.items():
        group = [p for p in people if lo <= p.age <= hi]
        out[name] = sum(p.n_infections for p in group) / len(group)
    return out


def main():
    grid = np.arange(0.0, T_MAX, 0.5)
    curves, summary = [], {}
    for name, params in POLICIES.items():
        started = time.perf_counter()
        graph, people = build_population(POPULATION, SEED)
        sim = SIRS(graph, people, seed=SEED, **params)
        sim.seed_infections(25)
        curve = sim.run(T_MAX, grid)
        curve.insert(0, "policy", name)
        curves.append(curve)
        peak = int(curve["I"].max())
        summary[name] = {
            "peak_infectious": peak,
            "peak_time": float(curve.loc[curve["I"].idxmax(), "t"]),
            "mean_infectious_late": float(curve["I"].tail(30).mean()),
            "ever_infected": sum(p.n_infections > 0 for p in people),
            "infections_per_person": age_attack_rates(people),
            "events": sim.events,
        }
        log.info("%-9s contacts %d  peak %d at t=%.1f  ever infected %d  late mean %.2f  (%.1f s)",
                 name, graph.number_of_edges(), peak, summary[name]["peak_time"],
                 summary[name]["ever_infected"], summary[name]["mean_infectious_late"],
                 time.perf_counter() - started)
    pd.concat(curves, ignore_index=True).to_csv("curves.csv", index=False)
    with open("summary.json", "w") as fh:
        json.dump(summary, fh, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
