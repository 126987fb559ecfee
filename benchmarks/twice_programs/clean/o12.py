"""Monte Carlo pricing of a barrier/Asian book over a process pool, observed in run folders in the style of IDSIA/sacred FileStorageObserver."""
import argparse
import contextlib
import io
import json
import math
import multiprocessing as mp
import os
import pickle
import platform
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import psutil
from scipy.stats import norm
from tqdm import tqdm

CONTRACTS = {
    "asian_call": dict(kind="asian", strike=100.0, cp=1),
    "asian_put": dict(kind="asian", strike=105.0, cp=-1),
    "up_out_call": dict(kind="barrier", strike=100.0, barrier=130.0, cp=1),
    "lookback": dict(kind="lookback", strike=0.0, cp=1),
    "vanilla_call": dict(kind="vanilla", strike=100.0, cp=1),
}
MARKET = dict(spot=100.0, rate=0.03, vol=0.22, maturity=1.0, steps=64)


def simulate(task):
    """Price every contract on one chunk of antithetic paths."""
    chunk, n, seed, market = task
    t0 = time.perf_counter()
    rng = np.random.default_rng(seed)
    dt = market["maturity"] / market["steps"]
    z = rng.standard_normal((n // 2, market["steps"]))
    z = np.concatenate([z, -z])
    incr = (market["rate"] - 0.5 * market["vol"] ** 2) * dt + market["vol"] * math.sqrt(dt) * z
    paths = market["spot"] * np.exp(np.cumsum(incr, axis=1))
    df = math.exp(-market["rate"] * market["maturity"])
    out = {}
    for name, c in CONTRACTS.items():
        last = paths[:, -1]
        if c["kind"] == "asian":
            pay = np.maximum(c["cp"] * (paths.mean(1) - c["strike"]), 0)
        elif c["kind"] == "barrier":
            pay = np.where(paths.max(1) < c["barrier"], np.maximum(last - c["strike"], 0), 0)
        elif c["kind"] == "lookback":
            pay = last - paths.min(1)
        else:
            pay = np.maximum(c["cp"] * (last - c["strike"]), 0)
        pay = df * pay
        out[name] = (float(pay.sum()), float((pay ** 2).sum()))
    return dict(chunk=chunk, n=n, sums=out, pid=os.getpid(), seconds=time.perf_counter() - t0,
                rss_mb=psutil.Process().memory_info().rss / 2 ** 20)


class FileStorageObserver:
    def __init__(self, root):
        root = Path(root)
        root.mkdir(exist_ok=True)
        ids = [int(p.name) for p in root.iterdir() if p.name.isdigit()]
        self.dir = root / str(max(ids, default=0) + 1)
        self.dir.mkdir()
        self.metrics, self.run = {}, {}

    def started(self, config, seed):
        self.run = {
            "experiment": {"name": "barrier_book", "sources": [os.path.basename(__file__)],
                           "dependencies": [f"numpy=={np.__version__}"]},
            "command": "main", "status": "RUNNING", "start_time": datetime.now(timezone.utc).isoformat(),
            "host": {"hostname": platform.node(), "os": [platform.system(), platform.release()],
                     "python_version": platform.python_version(), "cpu_load": os.getloadavg()},
            "heartbeat": None, "result": None}
        (self.dir / "config.json").write_text(json.dumps({**config, "seed": seed}, indent=2))
        self.save()

    def log_scalar(self, name, value, step):
        m = self.metrics.setdefault(name, {"steps": [], "timestamps": [], "values": []})
        m["steps"].append(step)
        m["timestamps"].append(datetime.now(timezone.utc).isoformat())
        m["values"].append(value)

    def heartbeat(self, cout):
        self.run["heartbeat"] = datetime.now(timezone.utc).isoformat()
        (self.dir / "cout.txt").write_text(cout)
        (self.dir / "metrics.json").write_text(json.dumps(self.metrics, indent=2))
        self.save()

    def completed(self, result):
        self.run.update(status="COMPLETED", result=result, stop_time=datetime.now(timezone.utc).isoformat())
        self.save()

    def save(self):
        (self.dir / "run.json").write_text(json.dumps(self.run, indent=2))


class Both(io.StringIO):
    def write(self, s):
        sys.__stdout__.write(s)
        return super().write(s)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--paths", type=int, default=960_000)
    ap.add_argument("--chunks", type=int, default=24)
    ap.add_argument("--procs", type=int, default=2)
    ap.add_argument("--seed", type=int, default=20240229)
    args = ap.parse_args()
    obs = FileStorageObserver("runs")
    cout = Both()
    with contextlib.redirect_stdout(cout):
        print(f"INFO - barrier_book - Running command 'main'\nINFO - barrier_book - Started run with ID \"{obs.dir.name}\"")
        obs.started({**vars(args), **MARKET}, args.seed)
        t0 = time.time()
        seeds = np.random.SeedSequence(args.seed).spawn(args.chunks)
        tasks = [(i, args.paths // args.chunks, s, MARKET) for i, s in enumerate(seeds)]
        with mp.Pool(args.procs) as pool:
            parts = list(tqdm(pool.imap_unordered(simulate, tasks), total=len(tasks), desc="chunks", unit="chunk"))
        parts.sort(key=lambda p: p["chunk"])

        rows, n_seen = [], 0
        acc = {k: [[], []] for k in CONTRACTS}
        for p in parts:
            n_seen += p["n"]
            for k, (s, s2) in p["sums"].items():
                acc[k][0].append(s)
                acc[k][1].append(s2)
            obs.log_scalar("vanilla_call.running", math.fsum(acc["vanilla_call"][0]) / n_seen, p["chunk"])
            obs.log_scalar("worker.seconds", p["seconds"], p["chunk"])
            obs.log_scalar("worker.rss_mb", p["rss_mb"], p["chunk"])
        for k in CONTRACTS:
            mean = math.fsum(acc[k][0]) / n_seen
            var = math.fsum(acc[k][1]) / n_seen - mean ** 2
            rows.append((k, mean, math.sqrt(var / n_seen)))
        elapsed = time.time() - t0

        m = MARKET
        d1 = (math.log(m["spot"] / 100) + (m["rate"] + 0.5 * m["vol"] ** 2) * m["maturity"]) / (m["vol"] * math.sqrt(m["maturity"]))
        bs = m["spot"] * norm.cdf(d1) - 100 * math.exp(-m["rate"] * m["maturity"]) * norm.cdf(d1 - m["vol"] * math.sqrt(m["maturity"]))
        print(f"{'contract':<14}{'price':>12}{'std.err':>11}")
        for k, mean, se in rows:
            print(f"{k:<14}{mean:>12.6f}{se:>11.6f}")
        print(f"Black-Scholes vanilla: {bs:.6f}  (diff {rows[-1][1] - bs:+.6f})")
        print(f"{n_seen:,} paths on {args.procs} workers: {elapsed:.2f} s, {n_seen / elapsed:,.0f} paths/s")
        result = {k: mean for k, mean, _ in rows}
        print(f"INFO - barrier_book - Result: {json.dumps(result)}")
        print(f"INFO - barrier_book - Completed after {time.strftime('%H:%M:%S', time.gmtime(elapsed))}")
    obs.heartbeat(cout.getvalue())
    obs.completed(result)

    md = [f"# Pricing report ({datetime.now():%d %b %Y %H:%M})", "", "| contract | price | std. err. |", "|---|---:|---:|"]
    md += [f"| {k} | {mean:.6f} | {se:.6f} |" for k, mean, se in rows]
    md += ["", "| chunk | pid | time (ms) | RSS (MB) |", "|---:|---:|---:|---:|"]
    md += [f"| {p['chunk']} | {p['pid']} | {p['seconds'] * 1e3:.1f} | {p['rss_mb']:.0f} |" for p in parts]
    Path("REPORT.md").write_text("\n".join(md) + "\n")
    with open("parts.pkl", "wb") as f:
        pickle.dump(parts, f)


if __name__ == "__main__":
    main()
