"""Nanopore-like read simulation over several processes.

Makes a reference, simulates long reads with mismatches and indels in two
worker processes, merges their subfiles and reports coverage and error rates.

Modelled on: https://github.com/BirolLab/NanoSim/issues/163
"""
import argparse
import json
import multiprocessing as mp
import os
import re
import sys
from time import strftime

import numpy as np

from l10_pkg.reference import make_reference, write_fasta
from l10_pkg.worker import simulate_subset

HEADER = re.compile(r">(\w+)_(\d+)_([FR])_proc\d+:\d+ mis=(\d+) ins=(\d+) del=(\d+)")
PROFILE = {"mis": 0.035, "ins": 0.02, "del": 0.025}


def stamp(text):
    sys.stdout.write(strftime("%Y-%m-%d %H:%M:%S") + ": " + text + "\n")
    sys.stdout.flush()


def run_simulation(ref, n_reads, n_procs, mean_len, prefix):
    procs, subfiles = [], []
    for num in range(n_procs):
        subfile = f"{prefix}_aligned_reads{num}.fasta"
        share = n_reads // n_procs + (n_reads % n_procs if num == n_procs - 1 else 0)
        p = mp.Process(target=simulate_subset, args=(num, ref, share, mean_len, PROFILE, subfile))
        p.start()
        procs.append(p)
        subfiles.append(subfile)
    for p in procs:
        p.join()
        if p.exitcode:
            raise RuntimeError(f"a worker stopped with {p.exitcode}")
    merged = f"{prefix}_aligned_reads.fasta"
    with open(merged, "w") as out:
        for name in subfiles:
            with open(name) as fh:
                out.write(fh.read())
            os.remove(name)
    return merged


def profile_reads(path, ref):
    lengths = []
    errors = {"mis": 0, "ins": 0, "del": 0}
    depth = {name: np.zeros(len(seq) // 500 + 1) for name, seq in ref.items()}
    with open(path) as fh:
        for line in fh:
            if line.startswith(">"):
                m = HEADER.match(line)
                name, pos = m.group(1), int(m.group(2))
                for key, value in zip(errors, m.groups()[3:]):
                    errors[key] += int(value)
                continue
            n = len(line.rstrip())
            lengths.append(n)
            depth[name][pos // 500:(pos + n) // 500 + 1] += 1
    total = sum(lengths)
    order = sorted(lengths, reverse=True)
    half = np.searchsorted(np.cumsum(order), total / 2)
    return {
        "reads": len(lengths),
        "bases": total,
        "n50": int(order[half]),
        "error_rates": {k: round(v / total, 6) for k, v in errors.items()},
        "mean_depth": {k: round(float(d.mean()), 4) for k, d in depth.items()},
        "uncovered_bins": {k: int((d == 0).sum()) for k, d in depth.items()},
    }


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("-n", "--number", type=int, default=5000)
    ap.add_argument("-t", "--num-threads", type=int, default=2)
    ap.add_argument("-med", "--median-len", type=int, default=900)
    ap.add_argument("--seed", type=int, default=15)
    ap.add_argument("-o", "--output", default="simulated")
    args = ap.parse_args()

    np.random.seed(args.seed)
    ref = make_reference([90000, 60000, 30000], args.seed)
    write_fasta("reference.fa", ref)
    stamp(f"reference of {sum(map(len, ref.values()))} bases written")

    merged = run_simulation(ref, args.number, args.num_threads, args.median_len, args.output)
    stamp("simulation finished")
    report = profile_reads(merged, ref)
    with open(args.output + "_profile.json", "w") as fh:
        json.dump(report, fh, indent=2)
    for key, value in report.items():
        print(f"{key}: {value}")


if __name__ == "__main__":
    main()
