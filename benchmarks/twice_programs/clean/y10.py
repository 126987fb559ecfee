"""Symbolic regression by genetic programming with a process pool, logbook and checkpoints.

Modelled on: DEAP/deap (examples/gp/symbreg.py and the checkpoint tutorial; logbook table with
gen, nevals, fitness and size chapters; pool.map as toolbox.map).
"""
import logging
import math
import multiprocessing
import operator
import os
import pickle
import random
import socket
import time
from datetime import datetime

import numpy as np
from deap import algorithms, base, creator, gp, tools

SEED = 318
POP, NGEN, CXPB, MUTPB = 240, 20, 0.6, 0.2
CKPT_EVERY = 4
POINTS = [i / 10.0 for i in range(-20, 21)]

log = logging.getLogger("symbreg")


def target(x):
    return x ** 4 + x ** 3 - 0.5 * x ** 2 + math.sin(x)


def pdiv(a, b):
    return a / b if abs(b) > 1e-9 else 1.0


pset = gp.PrimitiveSet("MAIN", 1)
for op, n in ((operator.add, 2), (operator.sub, 2), (operator.mul, 2), (pdiv, 2), (operator.neg, 1), (math.cos, 1), (math.sin, 1)):
    pset.addPrimitive(op, n)
pset.addTerminal(1.0)
pset.addTerminal(0.5)
pset.renameArguments(ARG0="x")
creator.create("FitnessMin", base.Fitness, weights=(-1.0,))
creator.create("Individual", gp.PrimitiveTree, fitness=creator.FitnessMin)


def evaluate(text):
    f = gp.compile(text, pset)
    try:
        err = math.fsum((f(x) - target(x)) ** 2 for x in POINTS) / len(POINTS)
    except (OverflowError, ValueError):
        return (1e9,)
    return (err if math.isfinite(err) else 1e9,)


def worker_init():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(processName)s[%(process)d] %(message)s")
    log.info("worker ready on %s", socket.gethostname())


def build(pool):
    tb = base.Toolbox()
    tb.register("expr", gp.genHalfAndHalf, pset=pset, min_=1, max_=2)
    tb.register("individual", tools.initIterate, creator.Individual, tb.expr)
    tb.register("population", tools.initRepeat, list, tb.individual)
    tb.register("select", tools.selTournament, tournsize=3)
    tb.register("mate", gp.cxOnePoint)
    tb.register("expr_mut", gp.genFull, min_=0, max_=2)
    tb.register("mutate", gp.mutUniform, expr=tb.expr_mut, pset=pset)
    tb.decorate("mate", gp.staticLimit(key=operator.attrgetter("height"), max_value=9))
    tb.decorate("mutate", gp.staticLimit(key=operator.attrgetter("height"), max_value=9))
    tb.register("map", pool.map)
    return tb


def score(tb, pop):
    todo = [i for i in pop if not i.fitness.valid]
    for ind, fit in zip(todo, tb.map(evaluate, [str(i) for i in todo])):
        ind.fitness.values = fit
    return len(todo)


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(processName)s[%(process)d] %(message)s")
    random.seed(SEED)
    np.random.seed(SEED)
    start = time.time()
    log.info("run started %s", datetime.now().isoformat(sep=" ", timespec="milliseconds"))
    with multiprocessing.Pool(2, worker_init) as pool:
        tb = build(pool)
        pop = tb.population(POP)
        hof = tools.HallOfFame(3, similar=lambda a, b: str(a) == str(b))
        stats = tools.MultiStatistics(fitness=tools.Statistics(lambda i: i.fitness.values[0]), size=tools.Statistics(len))
        stats.register("median", np.median)
        stats.register("min", np.min)
        stats.register("max", np.max)
        book = tools.Logbook()
        book.header = "gen", "nevals", "fitness", "size", "time"
        book.chapters["fitness"].header = "min", "median"
        book.chapters["size"].header = "min", "median", "max"
        n = score(tb, pop)
        hof.update(pop)
        book.record(gen=0, nevals=n, time=f"{time.time() - start:.2f}", **stats.compile(pop))
        print(book.stream)
        for gen in range(1, NGEN + 1):
            t = time.time()
            off = algorithms.varAnd(tb.select(pop, len(pop)), tb, CXPB, MUTPB)
            n = score(tb, off)
            hof.update(off)
            pop[:] = off
            book.record(gen=gen, nevals=n, time=f"{time.time() - start:.2f}", **stats.compile(pop))
            print(book.stream)
            log.info("generation %d: %.1f evaluations/s", gen, n / (time.time() - t))
            if gen % CKPT_EVERY == 0:
                cp = {"population": [(str(i), i.fitness.values) for i in pop], "generation": gen, "halloffame": [str(i) for i in hof],
                      "rndstate": random.getstate(), "saved_at": time.time(), "elapsed": time.time() - start}
                with open("checkpoint.pkl", "wb") as f:
                    pickle.dump(cp, f)
                log.info("checkpoint written at generation %d (%d bytes)", gen, os.path.getsize("checkpoint.pkl"))
    best = hof[0]
    print(f"\nBest individual ({len(best)} nodes, error {best.fitness.values[0]:.8f}):\n  {best}")
    with open("logbook.csv", "w") as f:
        f.write("gen,nevals,min,median,size_median,elapsed\n")
        for g, fit, size in zip(book, book.chapters["fitness"], book.chapters["size"]):
            f.write(f"{g['gen']},{g['nevals']},{fit['min']:.8g},{fit['median']:.8g},{size['median']:g},{g['time']}\n")
    with open("halloffame.txt", "w") as f:
        f.write(f"# written {time.strftime('%Y-%m-%d %H:%M:%S')} by {os.getlogin() if os.isatty(0) else 'batch'} on {socket.gethostname()}\n")
        for i in hof:
            f.write(f"{i.fitness.values[0]:.10f}\t{len(i)}\t{i}\n")
    f = gp.compile(best, pset)
    np.savetxt("curve.csv", [(x, target(x), f(x)) for x in POINTS], delimiter=",", header="x,target,model", comments="")
    print(f"total time: {time.time() - start:.2f} s, total evaluations: {sum(book.select('nevals'))}")


if __name__ == "__main__":
    main()
