"""https://github.com/apache/mxnet/issues/1200 (also apaszke/pytorch-dist pull request 62) - ranks are given in the order in which workers connect, not in the order of the host list."""
import argparse
import json
import multiprocessing as mp
import random
import time

import numpy as np

from x12_dist.tracker import Tracker
from x12_dist.worker import run


def launch(world, port, rounds):
    ctx = mp.get_context("fork")
    procs = []
    for task in range(world):
        p = ctx.Process(target=run, args=(task, port, rounds), name=f"worker-{task}")
        procs.append(p)
    for p in procs:
        p.start()
    return procs


def summarize(reports):
    by_task = sorted(reports, key=lambda r: r["task"])
    weights = np.array(by_task[0]["weights"])
    return {"accuracy": {str(r["task"]): r["accuracy"] for r in by_task},
            "weight_norm": float(np.linalg.norm(weights)),
            "weights": [round(v, 12) for v in weights.tolist()]}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--world", type=int, default=5)
    ap.add_argument("--rounds", type=int, default=2200)
    args = ap.parse_args()
    random.seed(0)
    np.random.seed(0)
    t0 = time.time()
    tracker = Tracker(args.world)
    print(f"tracker listens on port {tracker.port}, {time.strftime('%X')}")
    procs = launch(args.world, tracker.port, args.rounds)
    tracker.rendezvous()
    for step in range(args.rounds):
        tracker.allreduce()
        if step % 500 == 0:
            print(f"round {step} after {time.time() - t0:.2f}s")
    result = summarize(tracker.collect())
    for p in procs:
        p.join()
    tracker.close()
    with open("distributed.json", "w") as f:
        json.dump(dict(result, elapsed=time.time() - t0), f, indent=1)
    print("accuracy", result["accuracy"], "norm", f"{result['weight_norm']:.9f}")


if __name__ == "__main__":
    main()
