"""Gain study for an oven controller in simulation, with a response model fitted to the recorded runs.

Modelled on https://github.com/m-lundberg/simple-pid/pull/10 (the controller behaved differently in repeated simulations).
"""
import argparse
import csv
import json
import logging
import random
import time

import numpy as np

from g14_plant.oven import Oven
from g14_plant.pid import PID

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("oven")

GAINS = [(0.020, 0.30, 0.00002), (0.030, 0.60, 0.00002), (0.045, 0.90, 0.00004), (0.060, 1.40, 0.00004)]


def profile(step, steps):
    """Set point: ramp, hold, drop, hold."""
    f = step / steps
    if f < 0.3:
        return 20 + 80 * f / 0.3
    return 100.0 if f < 0.65 else 75.0


def run_once(gains, steps, seed):
    oven, pid = Oven(seed=seed), PID(*gains)
    rec = np.empty((steps, 3))
    value = oven.read()
    for s in range(steps):
        pid.setpoint = profile(s, steps)
        power = pid(value)
        value = oven.step(power)
        rec[s] = pid.setpoint, value, power
    return rec


def quality(rec):
    err = rec[:, 0] - rec[:, 1]
    return {"iae": float(np.abs(err).mean()), "overshoot": float(max(0.0, -err.min())),
            "energy": float(rec[:, 2].sum()), "travel": float(np.abs(np.diff(rec[:, 2])).sum())}


def fit_arx(recs, na=3, nb=3, ridge=1e-3):
    """Least-squares ARX model of the plant from all recorded runs; returns one-step RMSE and coefficients."""
    rows, rhs = [], []
    for r in recs:
        y, u = r[:, 1] - 20.0, r[:, 2]
        for t in range(max(na, nb), len(y)):
            rows.append(np.concatenate([y[t - na:t], u[t - nb + 1:t + 1]]))
            rhs.append(y[t])
    a, b = np.array(rows), np.array(rhs)
    theta = np.linalg.solve(a.T @ a + ridge * np.eye(a.shape[1]), a.T @ b)
    return float(np.sqrt(np.mean((a @ theta - b) ** 2))), theta


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=4)
    p.add_argument("--steps", type=int, default=900)
    p.add_argument("--table", default="gains.csv")
    args = p.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    recs, table = [], []
    for k, gains in enumerate(GAINS):
        t0 = time.time()
        rec = run_once(gains, args.steps, args.seed + k)
        q = quality(rec)
        recs.append(rec)
        table.append({"kp": gains[0], "ki": gains[1], "kd": gains[2], **q})
        log.info("gains %s iae %.3f overshoot %.2f (%.0f steps/s)", gains, q["iae"], q["overshoot"],
                 args.steps / (time.time() - t0))
    with open(args.table, "w", newline="") as f:
        w = csv.DictWriter(f, fieldnames=list(table[0]))
        w.writeheader()
        w.writerows(table)
    rmse, theta = fit_arx(recs)
    np.savez("runs.npz", runs=np.array(recs), theta=theta)
    best = min(table, key=lambda r: r["iae"])
    with open("study.json", "w") as f:
        json.dump({"best": best, "arx_rmse": rmse, "theta": theta.tolist()}, f, indent=1)
    print(f"best kp {best['kp']} iae {best['iae']:.6f} overshoot {best['overshoot']:.4f} energy {best['energy']:.4f} arx {rmse:.6f}")


if __name__ == "__main__":
    main()
