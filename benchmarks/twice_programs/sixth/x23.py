"""https://github.com/mesa/mesa/issues/745 - the contents of a grid cell are kept in a set of agent objects, which hash by address; turning it into a list gives another order in another process."""
import argparse
import json
import os
import random
import time

import numpy as np
import pandas as pd

SEED = 745


class Agent:
    def __init__(self, unique_id, model):
        self.unique_id = unique_id
        self.model = model
        self.random = model.random
        self.pos = None


class MultiGrid:
    """A torus whose cells hold any number of agents."""

    def __init__(self, width, height):
        self.width, self.height = width, height
        self.cells = {(x, y): set() for x in range(width) for y in range(height)}  # cause

    def place(self, agent, pos):
        self.cells[pos].add(agent)
        agent.pos = pos

    def move(self, agent, pos):
        self.cells[agent.pos].remove(agent)
        self.place(agent, pos)

    def neighborhood(self, pos):
        x, y = pos
        return [((x + dx) % self.width, (y + dy) % self.height)
                for dx in (-1, 0, 1) for dy in (-1, 0, 1) if dx or dy]

    def contents(self, pos):
        return list(self.cells[pos])  # cause


class MoneyAgent(Agent):
    def __init__(self, unique_id, model):
        super().__init__(unique_id, model)
        self.wealth = 1 + unique_id % 3
        self.trades = []

    def step(self):
        self.model.grid.move(self, self.random.choice(self.model.grid.neighborhood(self.pos)))
        if self.wealth == 0:
            return
        cellmates = self.model.grid.contents(self.pos)
        if len(cellmates) > 1:
            other = self.random.choice(cellmates)
            amount = 1 + self.wealth // 5
            other.wealth += amount
            self.wealth -= amount
            self.trades.append(other.unique_id)


class MoneyModel:
    def __init__(self, n, width, height, seed):
        self.random = random.Random(seed)
        self.grid = MultiGrid(width, height)
        self.agents = []
        for i in range(n):
            agent = MoneyAgent(i, self)
            self.agents.append(agent)
            self.grid.place(agent, (self.random.randrange(width), self.random.randrange(height)))

    def gini(self):
        w = np.sort([a.wealth for a in self.agents]).astype(float)
        n = len(w)
        return float((2 * np.arange(1, n + 1) - n - 1) @ w / (n * w.sum()))

    def step(self):
        order = self.agents[:]
        self.random.shuffle(order)
        for agent in order:
            agent.step()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--agents", type=int, default=1200)
    ap.add_argument("--steps", type=int, default=150)
    ap.add_argument("--seed", type=int, default=SEED)
    args = ap.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    print(f"money model, pid {os.getpid()}, {time.ctime()}")
    t0 = time.time()
    model = MoneyModel(args.agents, 4, 4, args.seed)
    rows = []
    for step in range(args.steps):
        model.step()
        rows.append({"step": step, "gini": model.gini(), "poor": sum(a.wealth == 0 for a in model.agents),
                     "richest": max(a.wealth for a in model.agents)})
    frame = pd.DataFrame(rows)
    print(frame.iloc[::25].to_string(index=False))
    print(f"elapsed {time.time() - t0:.2f}s")
    frame.to_json("model_vars.json", orient="records")


if __name__ == "__main__":
    main()
