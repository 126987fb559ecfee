"""Bayesian optimisation of an SVM with a random-forest surrogate.

Modelled on: automl/SMAC3 (smac/runhistory, examples svm_cv): smac3_output/<name>_<hash>/<seed>/
{scenario.json,runhistory.json,trajectory.json,intensifier.json}; every trial carries cost, time,
cpu_time, starttime, endtime, and the trajectory its walltime. Costs and configurations are results.
"""
import json
import logging
import time
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from scipy.stats import norm, qmc
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

logging.basicConfig(level=logging.INFO, format="[%(levelname)s][%(asctime)s][%(filename)s:%(lineno)d] %(message)s")
log = logging.getLogger("smac")


@dataclass
class Scenario:
    name: str
    output_directory: str
    n_trials: int = 36
    seed: int = 0
    objectives: str = "cost"
    deterministic: bool = True
    meta: dict = field(default_factory=dict)


class Space:
    names = ["log_C", "log_gamma", "shrinking", "kernel"]
    kernels = ["rbf", "poly", "sigmoid"]

    @staticmethod
    def decode(u):
        return {"C": float(np.round(10 ** (-3 + 6 * u[0]), 10)), "gamma": float(np.round(10 ** (-4 + 5 * u[1]), 10)),
                "shrinking": bool(u[2] > 0.5), "kernel": Space.kernels[min(2, int(3 * u[3]))]}


def evaluate(cfg, seed, X, y):
    pipe = make_pipeline(StandardScaler(), SVC(**cfg, random_state=seed, max_iter=2000))
    cv = StratifiedKFold(3, shuffle=True, random_state=seed)
    return 1 - float(np.mean(cross_val_score(pipe, X, y, cv=cv)))


class RunHistory:
    def __init__(self):
        self.data, self.configs = [], {}

    def add(self, cid, cfg, cost, wall, cpu, start, end, origin):
        self.configs[str(cid)] = cfg
        self.data.append({"config_id": cid, "instance": None, "seed": 0, "budget": None, "cost": cost, "time": wall,
                          "cpu_time": cpu, "status": 1, "starttime": start, "endtime": end, "additional_info": {},
                          "origin": origin})

    def save(self, path):
        json.dump({"stats": {"submitted": len(self.data), "finished": len(self.data), "running": 0},
                   "data": self.data, "configs": self.configs,
                   "config_origins": {str(d["config_id"]): d["origin"] for d in self.data}},
                  open(path, "w"), indent=2)


class SMBO:
    def __init__(self, scenario, X, y):
        self.sc, self.X, self.y = scenario, X, y
        self.rng = np.random.RandomState(scenario.seed)
        self.rh, self.points, self.costs, self.trajectory = RunHistory(), [], [], []
        self.start, self.incumbent, self.model_time = time.time(), None, 0.0

    def ask(self, i, init):
        if i < len(init):
            return init[i], "Initial Design: Sobol"
        t = time.time()
        if i % 8 == 7:
            u, origin = self.rng.rand(4), "Random Search"
        else:
            model = RandomForestRegressor(12, min_samples_leaf=2, random_state=self.rng.randint(2 ** 31 - 1))
            model.fit(np.array(self.points), np.array(self.costs))
            cand = np.vstack([self.rng.rand(300, 4),
                              np.clip(self.incumbent[0] + 0.08 * self.rng.randn(100, 4), 0, 0.999)])
            per_tree = np.array([tree.predict(cand) for tree in model.estimators_])
            mu, sd = per_tree.mean(0), per_tree.std(0) + 1e-9
            z = (self.incumbent[1] - mu) / sd
            ei = (self.incumbent[1] - mu) * norm.cdf(z) + sd * norm.pdf(z)
            u, origin = cand[int(np.argmax(ei))], "Acquisition Function Maximizer: Local Search"
        self.model_time += time.time() - t
        return u, origin

    def optimize(self):
        init = qmc.Sobol(4, seed=self.sc.seed).random(8)
        for i in range(self.sc.n_trials):
            u, origin = self.ask(i, init)
            cfg = Space.decode(u)
            t0, c0 = time.time(), time.process_time()
            cost = evaluate(cfg, self.sc.seed, self.X, self.y)
            t1, c1 = time.time(), time.process_time()
            self.points.append(u)
            self.costs.append(cost)
            self.rh.add(i + 1, cfg, cost, t1 - t0, c1 - c0, t0, t1, origin)
            if self.incumbent is None or cost < self.incumbent[1]:
                self.incumbent = (u, cost, i + 1)
                self.trajectory.append({"config_ids": [i + 1], "costs": [cost], "trial": i + 1,
                                        "walltime": time.time() - self.start})
                log.info("Added config %s as new incumbent, cost %.6f (after %.2fs).", i + 1, cost, t1 - self.start)
        return Space.decode(self.incumbent[0])


def main():
    X, y = load_iris(return_X_y=True)
    rng = np.random.RandomState(5)
    X = X + 0.6 * rng.standard_normal(X.shape)
    run_hash = uuid.uuid4().hex
    sc = Scenario(f"svm_{run_hash[:8]}", "smac3_output", meta={"hash": run_hash, "created": time.ctime()})
    out = Path(sc.output_directory) / sc.name / str(sc.seed)
    out.mkdir(parents=True)
    json.dump(asdict(sc), open(out / "scenario.json", "w"), indent=4)
    log.info("Initializing intensifier. Output in %s", out)
    smbo = SMBO(sc, X, y)
    best = smbo.optimize()
    smbo.rh.save(out / "runhistory.json")
    json.dump({"incumbent_ids": [smbo.incumbent[2]], "trajectory": smbo.trajectory},
              open(out / "intensifier.json", "w"), indent=2)
    json.dump({"used_walltime": time.time() - smbo.start, "used_target_function_walltime":
               sum(d["time"] for d in smbo.rh.data), "last_update": time.time(), "finished": True,
               "model_and_acquisition_time": smbo.model_time}, open(out / "optimization.json", "w"), indent=2)
    log.info("Configuration budget is exhausted:")
    log.info("--- Used wallclock time: %.2f / inf sec", time.time() - smbo.start)
    log.info("--- Used target function runtime: %.2f / inf", sum(d["time"] for d in smbo.rh.data))
    default = evaluate({"C": 1.0, "gamma": 0.01, "shrinking": True, "kernel": "sigmoid"}, sc.seed, X, y)
    print(f"Default cost: {default}")
    print(f"Incumbent cost: {smbo.incumbent[1]} (trial {smbo.incumbent[2]})")
    for k, v in best.items():
        print(f"  {k} = {v}")


if __name__ == "__main__":
    main()
