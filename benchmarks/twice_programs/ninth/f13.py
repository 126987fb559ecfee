"""Scores code samples of a model on unit tests, as pass@k with bootstrap intervals.

Modelled on https://github.com/evalplus/evalplus/issues/5
The same samples.jsonl gets another pass@1 on every evaluation on a rented machine.
"""
import argparse
import json
import logging
import math
import time
from collections import Counter
from pathlib import Path

import numpy as np

from f13_exec.problems import make_problems, make_samples
from f13_exec.runner import run_sample

log = logging.getLogger("passk")


def pass_at_k(n, c, k):
    if n - c < k:
        return 1.0
    return 1.0 - math.prod((n - c - i) / (n - i) for i in range(k))


def write_samples(path, problems, args):
    with open(path, "w") as fh:
        for s in make_samples(problems, args.samples, args.seed):
            fh.write(json.dumps(s) + "\n")


def read_samples(path):
    with open(path) as fh:
        return [json.loads(line) for line in fh]


def evaluate(problems, samples, args):
    by_id = {p["task_id"]: p for p in problems}
    results, t0 = [], time.time()
    for i, s in enumerate(samples):
        status = run_sample(by_id[s["task_id"]], s["code"], args.time_limit)
        results.append({"task_id": s["task_id"], "sample": s["sample"], "status": status})
        if (i + 1) % 50 == 0:
            log.info("%d/%d samples (%.1f/s)", i + 1, len(samples), (i + 1) / (time.time() - t0))
    return results


def bootstrap(per_task, k, rounds, seed):
    rng = np.random.default_rng(seed)
    values = np.array([pass_at_k(n, c, k) for n, c in per_task])
    means = [values[rng.integers(0, len(values), len(values))].mean() for _ in range(rounds)]
    lo, hi = np.percentile(means, [2.5, 97.5])
    return {"score": float(values.mean()), "low": float(lo), "high": float(hi)}


def summarise(results, args):
    tasks = {}
    for r in results:
        n, c = tasks.get(r["task_id"], (0, 0))
        tasks[r["task_id"]] = (n + 1, c + (r["status"] == "passed"))
    per_task = [tasks[t] for t in sorted(tasks)]
    out = {f"pass@{k}": bootstrap(per_task, k, args.bootstrap, args.seed) for k in (1, 2, 5)}
    out["statuses"] = dict(sorted(Counter(r["status"] for r in results).items()))
    return out


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--tasks", type=int, default=60)
    ap.add_argument("--samples", type=int, default=6)
    ap.add_argument("--time-limit", type=float, default=0.03, help="seconds for a sample")
    ap.add_argument("--bootstrap", type=int, default=400)
    ap.add_argument("--seed", type=int, default=2023)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")

    problems = make_problems(args.tasks, args.seed)
    path = Path("samples.jsonl")
    write_samples(path, problems, args)
    results = evaluate(problems, read_samples(path), args)
    report = summarise(results, args)
    log.info("pass@1 %.5f  %s", report["pass@1"]["score"], report["statuses"])
    with open("results.jsonl", "w") as fh:
        for r in results:
            fh.write(json.dumps(r) + "\n")
    Path("report.json").write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
