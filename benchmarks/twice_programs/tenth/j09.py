"""Modelled on https://github.com/openclimatefix-archives/nwp/pull/25

Conversion of numerical weather forecasts to one array: the init times along
the first axis do not come in the same sequence.
"""
import argparse
import datetime as dt
import json
import logging
import multiprocessing as mp
import os
import time

import numpy as np

log = logging.getLogger("nwp_convert")

VARIABLES = ["t", "si10", "dswrf", "prate"]


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--start", default="2023-05-01T00")
    p.add_argument("--runs", type=int, default=72)
    p.add_argument("--every-hours", type=int, default=3)
    p.add_argument("--steps", type=int, default=12)
    p.add_argument("--size", type=int, default=24)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--seed", type=int, default=99)
    p.add_argument("--raw", default="raw")
    p.add_argument("--out", default="nwp.npz")
    return p.parse_args()


def write_raw_files(args):
    """Forecasts in packed 16 bit files, one per init time, with a text header."""
    os.makedirs(args.raw, exist_ok=True)
    rng = np.random.default_rng(args.seed)
    start = dt.datetime.strptime(args.start, "%Y-%m-%dT%H")
    yy, xx = np.mgrid[0:args.size, 0:args.size] / args.size
    paths = []
    state = rng.normal(0, 1, 4)
    for r in range(args.runs):
        init = start + dt.timedelta(hours=r * args.every_hours)
        state = 0.9 * state + rng.normal(0, 0.4, 4)
        steps = args.steps if init.hour % 6 else args.steps * 2
        fields = np.empty((len(VARIABLES), steps, args.size, args.size), np.float32)
        for s in range(steps):
            hour = (init.hour + s) % 24
            sun = max(np.sin((hour - 6) / 12 * np.pi), 0)
            wave = np.sin(2 * np.pi * (xx + 0.05 * s) + state[0]) * np.cos(2 * np.pi * yy + state[1])
            fields[0, s] = 12 + 4 * state[2] + 6 * sun + 2 * wave
            fields[1, s] = np.abs(5 + 2 * state[3] + 2 * wave)
            fields[2, s] = 800 * sun * (0.6 + 0.3 * np.tanh(state[0])) + 20 * np.abs(wave)
            fields[3, s] = np.clip(wave + 0.4 * state[1] - 0.5, 0, None)
        lo, hi = float(fields.min()), float(fields.max())
        packed = np.round((fields - lo) / (hi - lo) * 65535).astype("<u2")
        path = os.path.join(args.raw, init.strftime("%Y%m%d%H") + ".bin")
        with open(path, "wb") as fh:
            header = {"init": init.strftime("%Y-%m-%dT%H"), "shape": fields.shape, "lo": lo, "hi": hi}
            fh.write((json.dumps(header) + "\n").encode())
            fh.write(packed.tobytes())
        paths.append(path)
    return paths


def smooth(field):
    p = np.pad(field, 1, mode="edge")
    return (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] + 4 * p[1:-1, 1:-1]) / 8


def load_forecast(job):
    """Unpack a file, smooth the fields and average them on a coarse grid."""
    path, n_steps = job
    with open(path, "rb") as fh:
        header = json.loads(fh.readline())
        packed = np.frombuffer(fh.read(), "<u2").reshape(header["shape"])
    fields = packed.astype(np.float64) / 65535 * (header["hi"] - header["lo"]) + header["lo"]
    out = np.empty((fields.shape[0], fields.shape[1], 6, 6))
    block = fields.shape[2] // 6
    for v in range(fields.shape[0]):
        for s in range(fields.shape[1]):
            f = fields[v, s]
            for _ in range(6):
                f = smooth(f)
            out[v, s] = f.reshape(6, block, 6, block).mean(axis=(1, 3))
    return header["init"], out[:, :n_steps]


def convert(paths, args):
    jobs = [(p, args.steps) for p in paths]
    init_times, arrays = [], []
    ctx = mp.get_context("fork")
    with ctx.Pool(args.workers) as pool:
        for init, data in pool.imap_unordered(load_forecast, jobs):  # cause
            init_times.append(init)
            arrays.append(data)
            if len(arrays) % 24 == 0:
                log.info("%d of %d forecasts", len(arrays), len(paths))
    return np.array(init_times), np.stack(arrays)


def make_dataset(data):
    """Predict the mean radiation of a forecast from the forecast before it."""
    means = data.mean(axis=(3, 4))
    x = means[:-1].reshape(len(means) - 1, -1)
    y = means[1:, VARIABLES.index("dswrf")].mean(axis=1)
    return x, y


def fit_ridge(x, y, alpha=1.0):
    mu, sd = x.mean(0), x.std(0) + 1e-9
    z = (x - mu) / sd
    w = np.linalg.solve(z.T @ z + alpha * np.eye(z.shape[1]), z.T @ (y - y.mean()))
    return lambda q: (q - mu) / sd @ w + y.mean()


def evaluate(data, train_share=0.75):
    x, y = make_dataset(data)
    cut = int(len(x) * train_share)
    model = fit_ridge(x[:cut], y[:cut])
    err = model(x[cut:]) - y[cut:]
    persist = data.mean(axis=(3, 4))[cut:-1, VARIABLES.index("dswrf")].mean(axis=1) - y[cut:]
    return {
        "rmse": round(float(np.sqrt(np.mean(err ** 2))), 5),
        "persistence_rmse": round(float(np.sqrt(np.mean(persist ** 2))), 5),
        "train_samples": cut,
        "test_samples": len(x) - cut,
    }


def main():
    args = get_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    paths = write_raw_files(args)
    log.info("%d raw files", len(paths))
    t0 = time.time()
    init_times, data = convert(paths, args)
    log.info("converted in %.2f s", time.time() - t0)
    np.savez(args.out, init_time=init_times, variable=VARIABLES, data=data.astype(np.float32))
    for v, name in enumerate(VARIABLES):
        print(f"{name:6s} mean {data[:, v].mean():10.3f} max {data[:, v].max():10.3f}")
    scores = evaluate(data)
    with open("scores.json", "w") as fh:
        json.dump(scores, fh, indent=2)
    print("first init times:", ", ".join(init_times[:4]))
    print(f"rmse {scores['rmse']:.5f} persistence {scores['persistence_rmse']:.5f}")


if __name__ == "__main__":
    main()
