"""Generate synthetic admissions and write them as token sequences."""
import argparse
import json
import os

import numpy as np

from vocab import CONTEXT, INDEX


def timeline(rng):
    """One patient: a latent severity drives labs, drugs, ICU stays and death."""
    severity = rng.normal()
    events = ["START"]
    for _ in range(int(rng.integers(2, 5))):
        events.append("ADMIT")
        for _ in range(int(rng.integers(2, 5))):
            severity = 0.9 * severity + 0.5 * rng.normal()
            events.append(f"LAB{int(np.clip(np.round(severity + 2), 0, 4))}")
            if rng.random() < 0.6:
                events.append(f"DRUG{int(np.clip(np.round(severity + rng.normal() + 2.5), 0, 5))}")
        if severity + 0.5 * rng.normal() > 1.0:
            events.append("ICU")
        if severity + 0.7 * rng.normal() > 1.9:
            return events + ["DEATH", "END"]
        events += ["DISCHARGE", f"GAP{int(np.clip(rng.poisson(max(0.2, 2 - severity)), 0, 3))}"]
    return events + ["END"]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", required=True)
    ap.add_argument("--patients", type=int, default=500)
    ap.add_argument("--seed", type=int, default=0)
    args = ap.parse_args()
    os.makedirs(args.out, exist_ok=True)
    rng = np.random.default_rng(args.seed)
    rows = np.zeros((args.patients, CONTEXT), dtype=np.int64)
    for row in rows:
        ids = [INDEX[e] for e in timeline(rng)][:CONTEXT]
        row[:len(ids)] = ids
    cut = int(0.8 * args.patients)
    np.save(os.path.join(args.out, "train.npy"), rows[:cut])
    np.save(os.path.join(args.out, "test.npy"), rows[cut:])
    with open(os.path.join(args.out, "meta.json"), "w") as fh:
        json.dump({"patients": args.patients, "tokens": int((rows > 0).sum())}, fh)
    print(f"{args.patients} timelines, {int((rows > 0).sum())} tokens")


if __name__ == "__main__":
    main()
