"""Boltzmann wealth model, batch run over parameters with worker processes.

Modelled on: projectmesa/mesa (mesa/batchrunner.py batch_run with number_processes and a tqdm bar,
mesa/datacollection.py, examples/basic/boltzmann_wealth_model): list of dicts with RunId, iteration,
Step, parameters and reporters, here also with the wall seconds and the process of each run; output as
Feather, Parquet and CSV, a run report in YAML-like text. Mesa's "Step"/"iteration" are model values.
"""
import datetime
import getpass
import itertools
import os
import platform
import random
import sys
import time
import uuid
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
from tqdm import tqdm


class MoneyAgent:
    def __init__(self, uid, model, pos):
        self.unique_id, self.model, self.pos, self.wealth, self.given = uid, model, pos, 1, 0

    def step(self):
        x, y = self.pos
        w, h = self.model.width, self.model.height
        steps = [((x + dx) % w, (y + dy) % h) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if dx or dy]
        new = self.model.random.choice(steps)
        self.model.move(self, new)
        if self.wealth > 0:
            mates = [a for a in self.model.grid[self.pos] if a is not self]
            if mates:
                other = self.model.random.choice(mates)
                other.wealth += 1
                self.wealth -= 1
                self.given += 1


class BoltzmannWealth:
    def __init__(self, n, width, height, seed):
        self.random = random.Random(seed)
        self.width, self.height, self.steps = width, height, 0
        self.grid = {(x, y): [] for x in range(width) for y in range(height)}
        self.agents = []
        for i in range(n):
            pos = (self.random.randrange(width), self.random.randrange(height))
            a = MoneyAgent(i, self, pos)
            self.agents.append(a)
            self.grid[pos].append(a)

    def move(self, a, pos):
        self.grid[a.pos].remove(a)
        a.pos = pos
        self.grid[pos].append(a)

    def step(self):
        order = self.agents[:]
        self.random.shuffle(order)
        for a in order:
            a.step()
        self.steps += 1

    def gini(self):
        x = sorted(a.wealth for a in self.agents)
        n = len(x)
        b = sum(xi * (n - i) for i, xi in enumerate(x)) / (n * sum(x))
        return 1 + 1 / n - 2 * b

    def report(self):
        w = np.array([a.wealth for a in self.agents])
        return {"Gini": self.gini(), "MaxWealth": int(w.max()), "Poor": int((w == 0).sum()),
                "Transfers": sum(a.given for a in self.agents)}


def model_run(job):
    run_id, iteration, params, max_steps, period = job
    t = time.perf_counter()
    model = BoltzmannWealth(**params, seed=1000 * iteration + params["n"])
    rows = []
    while model.steps < max_steps:
        model.step()
        if model.steps % period == 0:
            rows.append({"RunId": run_id, "iteration": iteration, "Step": model.steps, **params, **model.report()})
    took = time.perf_counter() - t
    for r in rows:
        r["run_seconds"], r["worker_pid"] = took, os.getpid()
    return rows


def batch_run(grid, iterations, max_steps, period, processes):
    combos = [dict(zip(grid, v)) for v in itertools.product(*grid.values())]
    jobs = [(i, it, p, max_steps, period) for i, (it, p) in enumerate(itertools.product(range(iterations), combos))]
    results = []
    with tqdm(total=len(jobs), desc="batch_run", file=sys.stderr) as bar, Pool(processes) as pool:
        for rows in pool.imap_unordered(model_run, jobs):
            results.extend(rows)
            bar.update()
    return sorted(results, key=lambda r: (r["RunId"], r["Step"]))


def yaml_dump(d, f, indent=0):
    for k, v in d.items():
        if isinstance(v, dict):
            f.write(" " * indent + f"{k}:\n")
            yaml_dump(v, f, indent + 2)
        else:
            f.write(" " * indent + f"{k}: {v}\n")


def main():
    start = datetime.datetime.now()
    batch_id = f"batch_{start:%Y%m%d_%H%M%S}_{uuid.uuid4().hex[:6]}"
    out = Path("output") / batch_id
    out.mkdir(parents=True)
    grid = {"n": [40, 80], "width": [8, 12], "height": [10]}
    rows = batch_run(grid, iterations=5, max_steps=120, period=20, processes=2)
    df = pd.DataFrame(rows)
    feather.write_feather(pa.Table.from_pandas(df), out / "data_collected.feather")
    table = pa.Table.from_pandas(df.drop(columns=["run_seconds", "worker_pid"]))
    table = table.replace_schema_metadata({**table.schema.metadata, b"batch": batch_id.encode(),
                                           b"written": datetime.datetime.now().isoformat().encode()})
    pq.write_table(table, out / "model_vars.parquet", compression="zstd")
    last = df[df["Step"] == df["Step"].max()]
    summary = last.groupby(["n", "width"])[["Gini", "MaxWealth", "Poor", "Transfers"]].mean()
    summary.to_csv(out / "summary.csv")
    print(summary.to_string(float_format=lambda v: f"{v:.8f}"))
    per_run = df.groupby("RunId")["run_seconds"].first()
    report = {"batch": batch_id, "user": getpass.getuser(), "host": platform.node(), "started": start.isoformat(),
              "finished": datetime.datetime.now().isoformat(),
              "parameters": {k: str(v) for k, v in grid.items()},
              "timing": {"total_s": round((datetime.datetime.now() - start).total_seconds(), 3),
                         "mean_run_s": round(float(per_run.mean()), 4), "slowest_run_s": round(float(per_run.max()), 4)},
              "result": {"runs": int(df["RunId"].nunique()), "rows": len(df),
                         "final_gini_mean": repr(float(last["Gini"].mean()))}}
    with open(out / "report.yaml", "w") as f:
        yaml_dump(report, f)
    print(f"{len(df)} rows from {df['RunId'].nunique()} runs -> {out} ({report['timing']['total_s']} s)")


if __name__ == "__main__":
    main()
