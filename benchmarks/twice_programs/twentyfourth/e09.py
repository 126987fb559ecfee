"""Lowers array expressions to C-like code with shared temporaries.

A small array compiler: expression graphs are built from inputs, sums and
products, common nodes are collected, given a place in the schedule and a
register, and printed as statements.  Compiles a few stencil-like programs,
evaluates them and writes the generated code with its cost table.

Modelled on: https://github.com/inducer/pytato/pull/452
"""
import hashlib
import json
import logging
import random
import time

import numpy as np

LOG = logging.getLogger("lower")
SEED = 452
N_PROGRAMS = 24


class Node:
    """An array expression; compares by identity."""

    def __init__(self, op, args=(), name=None, tags=()):
        self.op = op
        self.args = tuple(args)
        self.name = name
        self.tags = frozenset(tags)

    def __add__(self, other):
        return Node("+", (self, other))

    def __mul__(self, other):
        return Node("*", (self, other))

    def __repr__(self):
        return "<%s %s>" % (self.op, self.name or len(self.args))


def make_program(seed, n_inputs=6, n_ops=60):
    """A random directed acyclic graph of array operations."""
    rnd = random.Random(seed)
    nodes = [Node("input", name="in%d" % i) for i in range(n_inputs)]
    for _ in range(n_ops):
        recent = nodes[-14:]
        a, b = rnd.choice(recent), rnd.choice(nodes)
        nodes.append(a + b if rnd.random() < 0.6 else a * b)
    used = {id(arg) for node in nodes for arg in node.args}
    return [node for node in nodes if id(node) not in used]


class UserCollector:
    """Finds all nodes below the outputs and the users of each."""

    def __init__(self):
        self.users = {}
        self.nodes = set()

    def visit(self, node):
        if node in self.nodes:
            return
        self.nodes.add(node)
        self.users.setdefault(node, [])
        for arg in node.args:
            self.users.setdefault(arg, []).append(node)
            self.visit(arg)


class Scheduler:
    """List scheduling: a node is ready once its arguments are computed."""

    def __init__(self, collector):
        self.collector = collector

    def run(self):
        waiting = {node: len(set(node.args)) for node in self.collector.nodes}
        ready = [node for node in self.collector.nodes if waiting[node] == 0]  # cause
        ready.sort(key=lambda node: node.op != "input")
        order = []
        while ready:
            node = ready.pop(0)
            order.append(node)
            done = []
            for user in self.collector.users[node]:
                if user in done:
                    continue
                done.append(user)
                waiting[user] -= 1
                if waiting[user] == 0:
                    ready.append(user)
        return order


class RegisterAllocator:
    """Gives each value a register and frees it after the last use."""

    def __init__(self, order, outputs):
        self.order = order
        self.outputs = list(outputs)
        self.assigned = {}
        self.peak = 0

    def run(self):
        last_use = {}
        for i, node in enumerate(self.order):
            for arg in node.args:
                last_use[arg] = i
        free, count = [], 0
        for i, node in enumerate(self.order):
            for arg in dict.fromkeys(node.args):
                if last_use[arg] == i and arg not in self.outputs:
                    free.append(self.assigned[arg])
            if free:
                free.sort()
                self.assigned[node] = free.pop(0)
            else:
                self.assigned[node] = count
                count += 1
        self.peak = count
        return self.assigned


def emit(order, registers, outputs):
    """Print the schedule as statements on registers."""
    lines = []
    for node in order:
        target = "r%d" % registers[node]
        if node.op == "input":
            lines.append("%s = load(%s);" % (target, node.name))
        else:
            left, right = ("r%d" % registers[arg] for arg in node.args)
            lines.append("%s = %s %s %s;" % (target, left, node.op, right))
    for i, node in enumerate(outputs):
        lines.append("store(out%d, r%d);" % (i, registers[node]))
    return lines


def execute(order, outputs, size=40000):
    """Evaluate the program on fixed inputs to check the schedule."""
    grid = np.linspace(0.1, 0.9, size)
    values = {}
    for node in order:
        if node.op == "input":
            values[node] = np.sin(grid * (1 + int(node.name[2:])))
        else:
            a, b = (values[arg] for arg in node.args)
            values[node] = np.tanh(a + b) if node.op == "+" else a * b
    return [float(np.round(values[node].mean(), 10)) for node in outputs]


def compile_program(number):
    outputs = make_program(SEED * 100 + number)
    collector = UserCollector()
    for node in outputs:
        collector.visit(node)
    order = Scheduler(collector).run()
    allocator = RegisterAllocator(order, outputs)
    registers = allocator.run()
    code = emit(order, registers, outputs)
    return code, allocator.peak, execute(order, outputs)


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    table = []
    for number in range(1, N_PROGRAMS + 1):
        start = time.perf_counter()
        code, peak, values = compile_program(number)
        LOG.info("program %d compiled in %.4f s", number, time.perf_counter() - start)
        text = "\n".join(code) + "\n"
        with open("kernel_%02d.c" % number, "w") as handle:
            handle.write(text)
        sha = hashlib.sha256(text.encode()).hexdigest()[:12]
        table.append({"program": number, "statements": len(code), "registers": peak, "sha": sha, "outputs": values})
        print("program %2d: %3d statements, %2d registers, code %s" % (number, len(code), peak, sha))
    with open("cost.json", "w") as handle:
        json.dump(table, handle, indent=1)
    print("registers in all", sum(row["registers"] for row in table))


if __name__ == "__main__":
    main()
