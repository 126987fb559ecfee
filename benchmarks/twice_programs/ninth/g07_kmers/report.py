"""Multiple-testing correction over all chunks and the final report."""
import json
import sys

import numpy as np


def main(path, out):
    rows = [line.rstrip("\n").split("\t") for line in open(path)]
    rows.sort(key=lambda r: r[0])
    p = np.array([float(r[3]) for r in rows])
    lfc = np.array([float(r[2]) for r in rows])
    order = np.argsort(p, kind="stable")
    q = np.empty_like(p)
    q[order] = np.minimum.accumulate((p[order] * len(p) / np.arange(1, len(p) + 1))[::-1])[::-1]
    sig = q < 0.05
    rep = {"kmers": len(p), "significant": int(sig.sum()), "mean_abs_lfc": float(np.abs(lfc).mean()),
           "log_p_sum": float(np.log(np.maximum(p, 1e-300)).sum())}
    json.dump(rep, open(out, "w"), indent=1)
    print(" ".join(f"{k}={v}" for k, v in rep.items()))


if __name__ == "__main__":
    main(*sys.argv[1:3])
