"""Credit portfolio loss by Monte Carlo, a pool of worker processes, each with its own log lines.

Modelled on: dask/distributed worker and scheduler logs and its task stream: lines of
workers with pid and task name come in the order of completion; results are put in order of task.
"""
import logging
import logging.handlers
import multiprocessing as mp
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from datetime import datetime

import numpy as np
import pandas as pd
from scipy.stats import norm

SEED = 90210
OBLIGORS = 300
SCENARIOS = 24_000
CHUNK = 2_000
LEVELS = (0.5, 0.9, 0.95, 0.99, 0.995, 0.999)


@dataclass
class Task:
    task_id: int
    n: int
    seed: np.random.SeedSequence


def portfolio():
    rng = np.random.default_rng(SEED)
    rating = rng.choice(["A", "BBB", "BB", "B"], OBLIGORS, p=[0.25, 0.4, 0.25, 0.1])
    pd_map = {"A": 0.0008, "BBB": 0.002, "BB": 0.011, "B": 0.045}
    return pd.DataFrame({
        "obligor": [f"OBL{i:05d}" for i in range(OBLIGORS)],
        "sector": rng.choice(["energy", "retail", "banks", "tech", "health"], OBLIGORS),
        "rating": rating,
        "pd": [pd_map[r] for r in rating],
        "lgd": np.round(rng.beta(4, 5, OBLIGORS), 4),
        "ead": np.round(rng.lognormal(13, 0.9, OBLIGORS), 2),
        "rho": np.round(rng.uniform(0.1, 0.3, OBLIGORS), 4),
    })


_book = None


def init_worker(queue):
    global _book
    _book = portfolio()
    root = logging.getLogger()
    root.handlers[:] = [logging.handlers.QueueHandler(queue)]
    root.setLevel(logging.INFO)
    logging.getLogger("worker").info("Start worker, pid %d, nanny pid %d", os.getpid(), os.getppid())


def simulate(task):
    log = logging.getLogger("worker")
    t0 = time.perf_counter()
    log.info("Start task simulate-%03d: %d scenarios", task.task_id, task.n)
    rng = np.random.default_rng(task.seed)
    sectors = sorted(_book.sector.unique())
    sec = _book.sector.map({s: i for i, s in enumerate(sectors)}).to_numpy()
    thr = norm.ppf(_book.pd.to_numpy())
    rho = _book.rho.to_numpy()
    loss = (_book.ead * _book.lgd).to_numpy()
    world = rng.normal(size=(task.n, 1))
    z = np.sqrt(0.6) * world + np.sqrt(0.4) * rng.normal(size=(task.n, len(sectors)))
    asset = np.sqrt(rho) * z[:, sec] + np.sqrt(1 - rho) * rng.normal(size=(task.n, OBLIGORS))
    default = asset < thr
    losses = default @ loss
    by_sector = np.array([(default[:, sec == i] * loss[sec == i]).sum() / task.n for i in range(len(sectors))])
    took = time.perf_counter() - t0
    log.info("Task simulate-%03d finished in %.3f s (%.0f scenarios/s)", task.task_id, took, task.n / took)
    return task.task_id, losses, by_sector, int(default.sum()), {"pid": os.getpid(), "seconds": took, "ended": time.time()}


def setup_log():
    fmt = logging.Formatter("%(asctime)s - %(processName)s/%(process)d - %(name)s - %(levelname)s - %(message)s")
    handlers = [logging.StreamHandler(sys.stdout), logging.FileHandler("run.log")]
    for h in handlers:
        h.setFormatter(fmt)
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.handlers[:] = handlers
    queue = mp.Queue()
    listener = logging.handlers.QueueListener(queue, *handlers)
    listener.start()
    return queue, listener


def main():
    queue, listener = setup_log()
    log = logging.getLogger("scheduler")
    t0 = time.time()
    log.info("Clear task state; run date %s", datetime.now().strftime("%d-%b-%Y %H:%M"))
    book = portfolio()
    el = float((book.pd * book.lgd * book.ead).sum())
    log.info("portfolio: %d obligors, exposure %.2f, expected loss %.2f", len(book), book.ead.sum(), el)
    seeds = np.random.SeedSequence(SEED).spawn(SCENARIOS // CHUNK)
    tasks = [Task(i, CHUNK, s) for i, s in enumerate(seeds)]
    done = {}
    with ProcessPoolExecutor(2, mp_context=mp.get_context("fork"), initializer=init_worker, initargs=(queue,)) as ex:
        futures = {ex.submit(simulate, t): t for t in tasks}
        for k, fut in enumerate(as_completed(futures), 1):
            r = fut.result()
            done[r[0]] = r
            el_s = time.time() - t0
            log.info("%2d/%d tasks, task %03d from worker %d, elapsed %.2f s, remaining %.2f s", k, len(tasks), r[0], r[4]["pid"], el_s,
                     el_s / k * (len(tasks) - k))
    results = [done[i] for i in sorted(done)]
    losses = np.concatenate([r[1] for r in results])
    sector = np.mean([r[2] for r in results], axis=0)
    defaults = sum(r[3] for r in results)
    listener.stop()

    order = np.sort(losses)
    rows = []
    for q in LEVELS:
        k = int(np.ceil(q * len(order))) - 1
        rows.append({"level": q, "var": order[k], "es": order[k:].mean(), "scenarios": len(order)})
    risk = pd.DataFrame(rows)
    risk.to_csv("risk.csv", index=False, float_format="%.6f")
    pd.DataFrame({"scenario": np.arange(len(losses)), "loss": losses}).to_parquet("losses.parquet", index=False)
    pd.DataFrame({"sector": sorted(book.sector.unique()), "mean_loss": sector}).to_csv("sectors.csv", index=False)
    stats = pd.DataFrame([{"task": r[0], **r[4]} for r in results])
    stats.to_csv("task_stream.csv", index=False)
    print(risk.to_string(index=False, float_format=lambda v: f"{v:,.3f}"))
    print(f"mean loss {losses.mean():,.4f} (analytic {el:,.4f}), {defaults} defaults, std {losses.std():,.4f}")
    load = stats.groupby("pid").seconds.sum().sort_values()
    print("busy seconds of the workers:", ", ".join(f"{pid}: {sec:.2f}" for pid, sec in load.items()))
    print(f"wall {time.time() - t0:.2f} s, busy {stats.seconds.sum():.2f} s, parallel efficiency {stats.seconds.sum() / (2 * (time.time() - t0)):.1%}")


if __name__ == "__main__":
    main()
