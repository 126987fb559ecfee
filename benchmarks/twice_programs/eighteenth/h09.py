"""Resource adequacy of a small power system by Monte Carlo: loss of load and unserved energy.

Modelled on: https://github.com/NatLabRockies/PRAS/pull/3
"""
import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from h09_pkg.assess import assess  # noqa: E402
from h09_pkg.results import summarise, write_tables  # noqa: E402
from h09_pkg.system import build_system  # noqa: E402


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--samples", type=int, default=120)
    ap.add_argument("--threads", type=int, default=4)
    ap.add_argument("--seed", type=int, default=2020)
    args = ap.parse_args()

    system = build_system(hours=24 * 60, seed=17)
    t0 = time.time()
    shortfalls = assess(system, args.samples, args.seed, args.threads)
    print(f"{args.samples} samples in {time.time() - t0:.1f}s on {args.threads} threads")

    summary = summarise(shortfalls)
    write_tables(shortfalls, "samples.csv", "hours.csv")
    with open("adequacy.json", "w") as f:
        json.dump({"seed": args.seed, "units": len(system.capacity), **summary}, f, indent=2)
    for k, v in summary.items():
        print(f"{k:<6} {v}")


if __name__ == "__main__":
    main()
