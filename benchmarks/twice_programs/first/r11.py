# mesa#2598: a model takes a seed but one of its generators does not get it
import random
import numpy as np
from proj.log import Run

class Agent:
    def __init__(self, model, number):
        self.model, self.number, self.wealth = model, number, 10

    def step(self):
        other = self.model.random.choice(self.model.agents)
        amount = int(self.model.rng.integers(0, 3))
        self.wealth, other.wealth = self.wealth - amount, other.wealth + amount

class Model:
    def __init__(self, count, seed=None, rng=None):
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(rng)  # cause
        self.agents = [Agent(self, n) for n in range(count)]

    def step(self):
        self.random.shuffle(self.agents)
        for agent in self.agents:
            agent.step()

    def gini(self):
        w = np.sort([a.wealth for a in self.agents])
        return float(np.abs(w[:, None] - w).mean() / (2 * w.mean()))

run = Run("mesa")
model = Model(30, seed=42)
for number in range(10):
    model.step()
    run.step(number, gini=model.gini())
print("gini", model.gini())
