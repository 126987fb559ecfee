"""Core-guided weighted MaxSAT heuristic with core minimisation.

Generates random weighted instances, finds conflict cores of the soft clauses
by unit propagation, spends a share of the effort on looking for smaller cores
and then improves the model by local search.  Writes models and a results
table as in the MaxSAT evaluation.

Modelled on: https://github.com/FlorentAvellaneda/EvalMaxSAT/issues/4
"""
import json
import random
import sys
import time

SEED = 4
N_INSTANCES = 4
N_VARS = 90
N_HARD = 250
N_SOFT = 120


class Instance:
    """Hard clauses and weighted soft unit literals."""

    def __init__(self, number, seed):
        rnd = random.Random(seed * 100 + number)
        self.number = number
        planted = [rnd.random() < 0.5 for _ in range(N_VARS + 1)]
        self.hard = []
        while len(self.hard) < N_HARD:
            names = rnd.sample(range(1, N_VARS + 1), 3 if rnd.random() < 0.6 else 2)
            clause = [v if rnd.random() < 0.5 else -v for v in names]
            if any(planted[abs(lit)] == (lit > 0) for lit in clause):
                self.hard.append(clause)
        self.soft = {}
        while len(self.soft) < min(N_SOFT, 2 * N_VARS):
            var = rnd.randint(1, N_VARS)
            lit = var if rnd.random() < 0.5 else -var
            self.soft[lit] = self.soft.get(lit, 0) + rnd.randint(1, 30)
        self.occurs = {}
        for i, clause in enumerate(self.hard):
            for lit in clause:
                self.occurs.setdefault(-lit, []).append(i)

    def propagate(self, assumptions):
        """Unit propagation; gives the literals used up to a conflict or None."""
        value = {}
        queue = []
        for lit in assumptions:
            if value.get(abs(lit), lit) != lit:
                return True
            value[abs(lit)] = lit
            queue.append(lit)
        while queue:
            lit = queue.pop()
            for index in self.occurs.get(lit, ()):
                free, satisfied = [], False
                for other in self.hard[index]:
                    known = value.get(abs(other))
                    if known == other:
                        satisfied = True
                        break
                    if known is None:
                        free.append(other)
                if satisfied:
                    continue
                if not free:
                    return True
                if len(free) == 1:
                    value[abs(free[0])] = free[0]
                    queue.append(free[0])
        return False


class CoreSolver:
    """Stratified core extraction followed by a weighted local search."""

    def __init__(self, instance, seed, ms_factor=1.5):
        self.instance = instance
        self.rnd = random.Random(seed + instance.number)
        self.weights = dict(instance.soft)
        self.ms_factor = ms_factor
        self.cores = []
        self.lower_bound = 0

    def find_core(self):
        literals = sorted((lit for lit, w in self.weights.items() if w > 0),
                          key=lambda lit: (-self.weights[lit], lit))
        chosen = []
        for lit in literals:
            chosen.append(lit)
            if self.instance.propagate(chosen):
                return chosen
        return None

    def shrink(self, core):
        """Drop literals one by one while the conflict remains."""
        order = list(core)
        self.rnd.shuffle(order)
        kept = list(core)
        for lit in order:
            trial = [other for other in kept if other != lit]
            if trial and self.instance.propagate(trial):
                kept = trial
        return kept

    def multi_solve(self, core, spent):
        """Look for better cores for a time in proportion to the time spent."""
        best = self.shrink(core)
        deadline = time.perf_counter() + self.ms_factor * spent  # cause
        while time.perf_counter() < deadline:  # cause
            candidate = self.shrink(core)
            key = (len(candidate), -min(self.weights[lit] for lit in candidate))
            if key < (len(best), -min(self.weights[lit] for lit in best)):
                best = candidate
        return best

    def extract(self):
        while True:
            started = time.perf_counter()
            core = self.find_core()
            if core is None:
                return
            core = self.multi_solve(core, time.perf_counter() - started)
            weight = min(self.weights[lit] for lit in core)
            for lit in core:
                self.weights[lit] -= weight
            self.lower_bound += weight
            self.cores.append((sorted(core), weight))

    def cost(self, model):
        broken = sum(not any(model[abs(l)] == (l > 0) for l in clause) for clause in self.instance.hard)
        lost = sum(w for lit, w in self.instance.soft.items() if model[abs(lit)] != (lit > 0))
        return broken * 500 + lost

    def improve(self, flips=2500):
        residual = {abs(lit): lit > 0 for lit in sorted(self.weights, key=lambda l: (self.weights[l], l))}
        model = [residual.get(var, False) for var in range(N_VARS + 1)]
        cost = self.cost(model)
        best, best_model = cost, list(model)
        for _ in range(flips):
            var = self.rnd.randint(1, N_VARS)
            model[var] = not model[var]
            new = self.cost(model)
            if new <= cost or self.rnd.random() < 0.01:
                cost = new
                if cost < best:
                    best, best_model = cost, list(model)
            else:
                model[var] = not model[var]
        return best, best_model


def solve(number):
    started = time.time()
    instance = Instance(number, SEED)
    solver = CoreSolver(instance, SEED)
    solver.extract()
    best, model = solver.improve()
    print("c instance %d solved in %.2f s" % (number, time.time() - started), file=sys.stderr)
    return {"instance": number, "lower_bound": solver.lower_bound, "cost": best,
            "cores": len(solver.cores), "mean_core": round(sum(len(c) for c, _ in solver.cores) / len(solver.cores), 3),
            "model": "".join("1" if v else "0" for v in model[1:])}, solver.cores


def main():
    results = []
    for number in range(1, N_INSTANCES + 1):
        row, cores = solve(number)
        results.append(row)
        with open("cores_%d.txt" % number, "w") as handle:
            for core, weight in cores:
                handle.write("%d : %s\n" % (weight, " ".join(map(str, core))))
        print("o %d" % row["cost"])
        print("c lower bound %d from %d cores, mean size %.3f" % (row["lower_bound"], row["cores"], row["mean_core"]))
        print("v", row["model"])
    with open("results.json", "w") as handle:
        json.dump(results, handle, indent=1)
    print("c total cost", sum(row["cost"] for row in results))


if __name__ == "__main__":
    main()
