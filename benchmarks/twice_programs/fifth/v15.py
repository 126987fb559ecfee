"""Asynchronous halving: a trial goes on if it is among the best that have reported so far; of no single report."""

import concurrent.futures
import time

import numpy as np


def trial(config, steps):
    """Train for some steps; slower for wider nets."""
    rng = np.random.default_rng(config["seed"])
    x = np.random.default_rng(0).normal(size=(128, 6))
    y = x[:, 0] * x[:, 1]
    w = rng.normal(size=(6, config["width"])) * 0.5
    v = rng.normal(size=config["width"]) * 0.1
    for _ in range(steps):
        h = np.tanh(x @ w)
        error = h @ v - y
        v -= config["lr"] * h.T @ error / len(x)
        w -= config["lr"] * x.T @ (error[:, None] * v * (1 - h * h)) / len(x)
        time.sleep(0.001)
    return float(np.square(error).mean())


def asha(configs, rungs, workers=4):
    reported = {rung: [] for rung in rungs}
    stopped, finished = [], []
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        running = {pool.submit(trial, c, rungs[0]): (i, c, 0) for i, c in enumerate(configs)}
        while running:
            done, _ = concurrent.futures.wait(running, return_when="FIRST_COMPLETED")  # cause
            for future in done:
                number, config, rung = running.pop(future)
                loss = future.result()
                scores = reported[rungs[rung]]
                scores.append(loss)
                if loss > np.quantile(scores, 0.5):
                    stopped.append((number, rung))
                elif rung + 1 < len(rungs):
                    running[pool.submit(trial, config, rungs[rung + 1])] = (number, config, rung + 1)
                else:
                    finished.append((loss, number))
    return sorted(finished), sorted(stopped)


def main():
    rng = np.random.default_rng(9)
    configs = [{"lr": float(10 ** rng.uniform(-3, -1)), "width": int(rng.integers(4, 64)), "seed": i} for i in range(14)]
    finished, stopped = asha(configs, [5, 10, 20])
    print("stopped", stopped)
    print("finished", finished)


main()
