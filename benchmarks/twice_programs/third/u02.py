# Venturecxx#579: the order of a set of objects is the order of their addresses
import torch
from mill.batches import chunks
from mill.config import parse
from mill.data import sensors
from mill.loop import Loop, seed_all

class Node:
    def __init__(self, name, width, needs=()):
        self.name, self.width, self.needs = name, width, list(needs)

class Plan:
    def __init__(self):
        self.nodes = []

    def add(self, name, width, *needs):
        node = Node(name, width, needs)
        self.nodes.append(node)
        return node

    def order(self):
        done, ready = [], set(n for n in self.nodes if not n.needs)
        while ready:
            level = list(ready)  # cause
            done += level
            ready = {n for n in self.nodes if n not in done and all(m in done for m in n.needs)}
        return done

class Graph(torch.nn.Module):
    def __init__(self, plan, inputs):
        super().__init__()
        self.order = plan.order()
        self.parts = torch.nn.ModuleDict()
        for node in self.order:
            size = sum(n.width for n in node.needs) or inputs
            self.parts[node.name] = torch.nn.Linear(size, node.width)

    def forward(self, x):
        found = {}
        for node in self.order:
            given = torch.cat([found[n.name] for n in node.needs], 1) if node.needs else x
            found[node.name] = torch.tanh(self.parts[node.name](given))
        return found["out"]

def main():
    config = parse(name="graph")
    seed_all(config.seed)
    plan = Plan()
    heads = [plan.add(f"head{n}", 4 + n) for n in range(5)]
    mids = [plan.add(f"mid{n}", 6, *heads[n:n + 2]) for n in range(4)]
    plan.add("out", 1, *mids)
    x, y = sensors()
    Loop(config, Graph(plan, x.shape[1]), torch.nn.MSELoss()).fit(chunks(x[:200], y[:200], 20), chunks(x[200:], y[200:], 20))

main()
