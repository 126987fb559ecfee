"""Runs the short-answer benchmark on a model and writes the log of the samples and the scores.

Modelled on: https://github.com/UKGovernmentBEIS/inspect_ai/pull/2012
"""
import argparse
import json
import os
import sys
from datetime import datetime, timezone

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from h12_pkg.bench import write_benchmark  # noqa: E402
from h12_pkg.dataset import json_dataset  # noqa: E402
from h12_pkg.model import NgramModel  # noqa: E402
from h12_pkg.task import Task, run  # noqa: E402


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--limit", type=int, default=1200)
    ap.add_argument("--fewshot", type=int, default=4)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--log-dir", default="logs")
    args = ap.parse_args()

    os.makedirs(args.log_dir, exist_ok=True)
    write_benchmark("bench.jsonl", n=6000, seed=31)
    dataset = json_dataset("bench.jsonl", shuffle=True, seed=args.seed, limit=args.limit + args.fewshot)
    task = Task("short-answer", dataset[args.fewshot:], dataset[:args.fewshot])
    model = NgramModel()
    model.fit(s.input for s in json_dataset("bench.jsonl"))
    result = run(task, model)

    with open(os.path.join(args.log_dir, "samples.jsonl"), "w") as f:
        for s in result.samples:
            f.write(json.dumps(s) + "\n")
    with open(os.path.join(args.log_dir, "scores.json"), "w") as f:
        json.dump({"task": task.name, "seed": args.seed, "limit": args.limit, **result.metrics}, f, indent=2)
    print(f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ} task {task.name}: {len(result.samples)} samples")
    for k, v in result.metrics.items():
        print(f"  {k}: {v}")


if __name__ == "__main__":
    main()
