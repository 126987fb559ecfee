"""Parameterised notebook run over daily energy data with executed .ipynb output and benchmark tables, in the style of nteract/papermill under snakemake."""
import argparse
import ast
import asyncio
import contextlib
import io
import json
import os
import resource
import socket
import tempfile
import time
import uuid
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
from tqdm import tqdm

NOTEBOOK = [
    ("markdown", "# Daily load report\nFits trend and seasonality for one region."),
    ("parameters", "region = 'north'\nseed = 0\nn_years = 2\nscratch = '/tmp'"),
    ("code", "import numpy as np, pandas as pd, time, os\nfrom scipy import optimize, signal\n"
             "rng = np.random.default_rng(seed)\nprint('region', region, 'pid', os.getpid())"),
    ("code", "t = pd.date_range('2019-01-01', periods=24 * 365 * n_years, freq='h')\n"
             "day, hour = np.arange(len(t)) / 24, t.hour.to_numpy()\n"
             "load = (50 + 0.004 * day + 9 * np.cos(2 * np.pi * day / 365.25) + 6 * np.sin(2 * np.pi * (hour - 8) / 24)\n"
             "        + rng.normal(0, 2.5, len(t)) - 7 * (t.day_of_week >= 5))\n"
             "df = pd.DataFrame({'load': load}, index=t)\ndf.describe().round(6)"),
    ("code", "daily = df.load.resample('D').mean()\nx = np.arange(len(daily)) / 365.25\n"
             "def f(x, a, b, c, p):\n    return a + b * x + c * np.cos(2 * np.pi * (x - p))\n"
             "t0 = time.perf_counter()\n"
             "popt, pcov = optimize.curve_fit(f, x, daily.to_numpy(), p0=[50, 0, 5, 0])\n"
             "print('curve_fit took %.1f ms' % (1e3 * (time.perf_counter() - t0)))\n"
             "dict(zip('abcp', popt.round(8).tolist()))"),
    ("code", "resid = daily - f(x, *popt)\nweekly = resid.groupby(resid.index.day_of_week).mean()\n"
             "print(weekly.round(5).to_string())"),
    ("code", "freq, power = signal.welch((df.load - df.load.mean()).to_numpy(), fs=24, nperseg=2048)\n"
             "top = np.argsort(power)[::-1][:3]\n"
             "print('dominant cycles per day:', freq[top].round(5).tolist())"),
    ("code", "lags = [1, 7, 14, 28]\nac = {k: float(resid.autocorr(k)) for k in lags}\n"
             "boot = [resid.sample(len(resid), replace=True, random_state=int(s)).std() for s in rng.integers(0, 2**31, 300)]\n"
             "lo, hi = np.percentile(boot, [2.5, 97.5])\n"
             "np.savez(os.path.join(scratch, 'resid.npz'), resid=resid.to_numpy())\n"
             "summary = dict(region=region, slope=float(popt[1]), amplitude=float(popt[2]), resid_std=float(resid.std()),\n"
             "               ci=[float(lo), float(hi)], acf=ac, peak=float(df.load.max()), peak_at=str(df.load.idxmax()))\nsummary"),
]


class Kernel:
    """Runs cells in one namespace and captures stream and execute_result outputs."""

    def __init__(self):
        self.ns, self.count = {"__name__": "__main__"}, 0

    def run(self, source):
        self.count += 1
        tree = ast.parse(source)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        buf, outputs = io.StringIO(), []
        with contextlib.redirect_stdout(buf):
            exec(compile(tree, f"<cell {self.count}>", "exec"), self.ns)
            value = eval(compile(ast.Expression(last.value), f"<cell {self.count}>", "eval"), self.ns) if last else None
        if buf.getvalue():
            outputs.append({"name": "stdout", "output_type": "stream", "text": buf.getvalue().splitlines(True)})
        if value is not None:
            data = {"text/plain": repr(value).splitlines(True)}
            if isinstance(value, pd.DataFrame):
                data["text/html"] = value.to_html().splitlines(True)
            outputs.append({"data": data, "execution_count": self.count, "metadata": {}, "output_type": "execute_result"})
        return outputs


def utc():
    return datetime.now(timezone.utc).isoformat()


def execute_notebook(job):
    """One papermill-like run in a worker process."""
    params, out_path, bench_path = job
    wall, cpu = time.perf_counter(), time.process_time()
    kernel, cells = Kernel(), []
    with tempfile.TemporaryDirectory(prefix="papermill_") as scratch:
        params = {**params, "scratch": scratch}
        start = utc()
        for kind, src in NOTEBOOK:
            if kind == "markdown":
                cells.append({"cell_type": "markdown", "id": uuid.uuid4().hex[:8], "metadata": {}, "source": src.splitlines(True)})
                continue
            variants = [(src, [])]
            if kind == "parameters":
                injected = "# Parameters\n" + "\n".join(f"{k} = {v!r}" for k, v in params.items())
                variants = [(src, ["parameters"]), (injected, ["injected-parameters"])]
            for code, tags in variants:
                t0, began = time.perf_counter(), utc()
                outputs = kernel.run(code)
                cells.append({"cell_type": "code", "execution_count": kernel.count, "id": uuid.uuid4().hex[:8],
                              "metadata": {"tags": tags, "papermill": {
                                  "start_time": began, "end_time": utc(), "duration": time.perf_counter() - t0,
                                  "exception": False, "status": "completed"}},
                              "outputs": outputs, "source": code.splitlines(True)})
    duration = time.perf_counter() - wall
    nb = {"cells": cells, "metadata": {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "papermill": {"parameters": params, "start_time": start, "end_time": utc(), "duration": duration,
                      "output_path": str(out_path), "version": "2.6.0", "environment_variables": {}}},
        "nbformat": 4, "nbformat_minor": 5}
    Path(out_path).write_text(json.dumps(nb, indent=1))
    proc = psutil.Process()
    mem, cpu_t = proc.memory_info(), time.process_time() - cpu
    header = ["s", "h:m:s", "max_rss", "max_vms", "mean_load", "cpu_time"]
    row = [f"{duration:.4f}", time.strftime("%H:%M:%S", time.gmtime(duration)),
           f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.2f}", f"{mem.vms / 2 ** 20:.2f}",
           f"{100 * cpu_t / duration:.2f}", f"{cpu_t:.2f}"]
    Path(bench_path).write_text("\t".join(header) + "\n" + "\t".join(row) + "\n")
    return {**kernel.ns["summary"], "_duration": duration, "_worker": os.getpid()}


async def run_rules(jobs, cores):
    loop = asyncio.get_running_loop()
    results = []
    with ProcessPoolExecutor(cores) as pool:
        tasks = [loop.run_in_executor(pool, execute_notebook, j) for j in jobs]
        bar = tqdm(total=len(tasks), desc="Executing notebooks", unit="nb")
        for n, (job, task) in enumerate(zip(jobs, tasks), 1):
            res = await task
            results.append(res)
            bar.update()
            print(f"[{time.ctime()}]\nFinished job {n}: rule report (region={job[0]['region']}).\n"
                  f"{n} of {len(jobs)} steps ({100 * n // len(jobs)}%) done", flush=True)
        bar.close()
    return results


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--cores", type=int, default=2)
    ap.add_argument("--years", type=int, default=4)
    ap.add_argument("--regions", nargs="+", default=["north", "east", "south", "west", "island"])
    args = ap.parse_args()
    for d in ("executed", "benchmarks", "results", ".snakemake/log"):
        Path(d).mkdir(parents=True, exist_ok=True)
    log = Path(".snakemake/log") / f"{datetime.now():%Y-%m-%dT%H%M%S.%f}.snakemake.log"
    print(f"Building DAG of jobs...\nUsing shell: /usr/bin/bash\nProvided cores: {args.cores}\nHost: {socket.gethostname()}\n"
          f"Job stats:\njob       count\n------  -------\nreport  {len(args.regions):>7}\nall           1")
    jobs = [(dict(region=r, seed=100 + i, n_years=args.years), f"executed/{r}.ipynb", f"benchmarks/{r}.tsv")
            for i, r in enumerate(args.regions)]
    t0 = time.time()
    results = asyncio.run(run_rules(jobs, args.cores))
    table = pd.json_normalize([{k: v for k, v in r.items() if not k.startswith("_")} for r in results])
    table[["ci_lo", "ci_hi"]] = np.array(table.pop("ci").tolist())
    table.to_csv("results/summary.csv", index=False)
    html = table.round(5).to_html(index=False)
    Path("results/summary.html").write_text(f"<html><body><h3>Load summary</h3>{html}"
                                            f"<footer>built {datetime.now():%d/%m/%Y %H:%M:%S}</footer></body></html>")
    print(table[["region", "slope", "amplitude", "resid_std", "peak", "peak_at"]].to_string(index=False))
    log.write_text("".join(f"{r['region']}\tworker {r['_worker']}\t{r['_duration']:.3f}s\n" for r in results))
    print(f"Complete log: {log}\nTotal time: {time.time() - t0:.2f}s")


if __name__ == "__main__":
    main()
