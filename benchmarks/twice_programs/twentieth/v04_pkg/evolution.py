"""The genetic algorithm, built on DEAP."""
import random

import numpy as np
from deap import base, creator, tools

from .fitness import CrossValidatedError

creator.create("FitnessMin", base.Fitness, weights=(-1.0,))
creator.create("Subset", list, fitness=creator.FitnessMin)


class Evolution:
    def __init__(self, X, y, population, generations, seed, mapper=map, cxpb=0.7, mutpb=0.25):
        self.n_bits = X.shape[1]
        self.generations = generations
        self.size = population
        self.cxpb, self.mutpb = cxpb, mutpb
        self.mapper = mapper
        self.fitness = CrossValidatedError(X, y)
        self.history = []
        self.hall = tools.HallOfFame(10)
        random.seed(seed)
        np.random.seed(seed)
        self.toolbox = base.Toolbox()
        self.toolbox.register("bit", random.randint, 0, 1)
        self.toolbox.register("individual", tools.initRepeat, creator.Subset, self.toolbox.bit, self.n_bits)
        self.toolbox.register("population", tools.initRepeat, list, self.toolbox.individual)
        self.toolbox.register("mate", tools.cxUniform, indpb=0.3)
        self.toolbox.register("mutate", tools.mutFlipBit, indpb=1.5 / self.n_bits)
        self.toolbox.register("select", tools.selTournament, tournsize=3)

    def _evaluate(self, population):
        todo = [ind for ind in population if not ind.fitness.valid]
        values = self.mapper(self.fitness, [list(ind) for ind in todo])
        for ind, value in zip(todo, values):
            ind.fitness.values = value
        return len(todo)

    def run(self):
        population = self.toolbox.population(n=self.size)
        evaluations = self._evaluate(population)
        self._record(0, population, evaluations)
        for generation in range(1, self.generations + 1):
            elite = [self.toolbox.clone(ind) for ind in tools.selBest(population, 2)]
            offspring = [self.toolbox.clone(ind) for ind in self.toolbox.select(population, self.size - 2)]
            for a, b in zip(offspring[::2], offspring[1::2]):
                if random.random() < self.cxpb:
                    self.toolbox.mate(a, b)
                    del a.fitness.values, b.fitness.values
            for ind in offspring:
                if random.random() < self.mutpb:
                    self.toolbox.mutate(ind)
                    del ind.fitness.values
            population = elite + offspring
            evaluations = self._evaluate(population)
            self._record(generation, population, evaluations)
        return self.hall[0]

    def _record(self, generation, population, evaluations):
        self.hall.update(population)
        values = np.array([ind.fitness.values[0] for ind in population])
        self.history.append({"generation": generation, "evaluations": evaluations, "best": float(values.min()),
                             "mean": float(values.mean()), "size": float(np.mean([sum(ind) for ind in population]))})
