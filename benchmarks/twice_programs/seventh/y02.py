"""https://github.com/DEAP/deap/issues/624 - NSGA-III random seed inconsistency: selNSGA3's niching shuffles with
numpy.random, which stays unseeded when a program seeds only the standard `random` module that the rest of DEAP uses."""
import csv
import random
import time
from math import cos, pi

from deap import algorithms, base, creator, tools

NOBJ, K = 3, 5
NDIM = NOBJ + K - 1
P = 12
MU = 92
GENERATIONS = 320
SEED = 17


def truss_cost(individual):
    """DTLZ2-like cost with three objectives, written out so that weights can be changed."""
    tail = individual[NOBJ - 1:]
    g = sum((x - 0.5) ** 2 for x in tail)
    f = []
    for m in range(NOBJ):
        value = 1 + g
        for x in individual[:NOBJ - 1 - m]:
            value *= cos(x * pi / 2)
        if m:
            value *= cos(pi / 2 * (1 - individual[NOBJ - 1 - m]))
        f.append(value)
    return tuple(f)


def build_toolbox():
    creator.create("FitnessMin3", base.Fitness, weights=(-1.0,) * NOBJ)
    creator.create("Design", list, fitness=creator.FitnessMin3)
    tb = base.Toolbox()
    tb.register("attr", random.uniform, 0.0, 1.0)
    tb.register("individual", tools.initRepeat, creator.Design, tb.attr, n=NDIM)
    tb.register("population", tools.initRepeat, list, tb.individual)
    tb.register("evaluate", truss_cost)
    tb.register("mate", tools.cxSimulatedBinaryBounded, low=0.0, up=1.0, eta=30.0)
    tb.register("mutate", tools.mutPolynomialBounded, low=0.0, up=1.0, eta=20.0, indpb=1.0 / NDIM)
    tb.register("select", tools.selNSGA3, ref_points=tools.uniform_reference_points(NOBJ, P))  # cause
    return tb


def spread(pop):
    lo = [min(ind.fitness.values[m] for ind in pop) for m in range(NOBJ)]
    hi = [max(ind.fitness.values[m] for ind in pop) for m in range(NOBJ)]
    return sum(h - l for h, l in zip(hi, lo)) / NOBJ


def evolve(tb):
    pop = tb.population(n=MU)
    for ind in pop:
        ind.fitness.values = tb.evaluate(ind)
    log = []
    started = time.perf_counter()
    for gen in range(1, GENERATIONS + 1):
        offspring = algorithms.varAnd(pop, tb, 1.0, 1.0)
        fresh = [ind for ind in offspring if not ind.fitness.valid]
        for ind in fresh:
            ind.fitness.values = tb.evaluate(ind)
        pop = tb.select(pop + offspring, MU)  # cause
        mean = sum(sum(v * v for v in ind.fitness.values) ** 0.5 for ind in pop) / len(pop)
        log.append((gen, len(fresh), mean, spread(pop)))
        if gen % 40 == 0:
            print(f"gen {gen:3d}  mean radius {mean:.5f}  spread {spread(pop):.5f}  [{time.perf_counter() - started:.1f}s]")
    return pop, log


def main():
    random.seed(SEED)
    tb = build_toolbox()
    pop, log = evolve(tb)
    front = tools.sortNondominated(pop, len(pop), first_front_only=True)[0]
    front.sort(key=lambda ind: ind.fitness.values)
    with open("front.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["f1", "f2", "f3"] + [f"x{i}" for i in range(NDIM)])
        for ind in front:
            w.writerow(list(ind.fitness.values) + list(ind))
    with open("log.csv", "w", newline="") as f:
        csv.writer(f).writerows(log)
    print(f"{len(front)} designs on the front, best f1 {front[0].fitness.values[0]:.6f}")


if __name__ == "__main__":
    main()
