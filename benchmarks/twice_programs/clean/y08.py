"""Calibration of an SEIR model to case counts, recorded by a file storage observer.

Modelled on: IDSIA/sacred (FileStorageObserver: runs/1/run.json with host, start_time, stop_time
and heartbeat, config.json, metrics.json with timestamps, cout.txt; the log format of sacred).
"""
import contextlib
import io
import json
import logging
import os
import platform
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import scipy
from scipy.integrate import solve_ivp
from scipy.optimize import differential_evolution, minimize

CONFIG = {"population": 500_000, "days": 120, "beta": 0.42, "sigma": 1 / 5.2, "gamma": 1 / 9.0, "rho": 0.35,
          "e0": 25.0, "seed": 712, "popsize": 6, "generations": 6, "bootstrap": 6}


class Tee(io.TextIOBase):
    def __init__(self, *targets):
        self.targets = targets

    def write(self, s):
        for t in self.targets:
            t.write(s)
        return len(s)

    def flush(self):
        for t in self.targets:
            t.flush()


class FileStorageObserver:
    def __init__(self, base):
        self.base = Path(base)

    def started(self, name, config):
        self.base.mkdir(exist_ok=True)
        n = max([int(p.name) for p in self.base.iterdir() if p.name.isdigit()] + [0]) + 1
        self.dir = self.base / str(n)
        self.dir.mkdir()
        self.start = datetime.now(timezone.utc).replace(tzinfo=None)
        cpu = "Unknown"
        with contextlib.suppress(OSError):
            cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), cpu)
        self.run = {
            "experiment": {"name": name, "base_dir": os.getcwd(), "dependencies": [f"numpy=={np.__version__}", f"scipy=={scipy.__version__}"]},
            "command": "main", "meta": {"command": "main", "options": {"--loglevel": None, "--pdb": False}},
            "host": {"hostname": platform.node(), "os": [platform.system(), platform.platform()], "python_version": platform.python_version(),
                     "cpu": cpu, "ENV": {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS")}},
            "resources": [], "artifacts": [], "status": "RUNNING", "start_time": self.start.isoformat(), "heartbeat": None, "result": None}
        self.metrics = {}
        (self.dir / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True))
        self.save()
        return n

    def log_scalar(self, name, value, step):
        m = self.metrics.setdefault(name, {"steps": [], "timestamps": [], "values": []})
        m["steps"].append(step)
        m["timestamps"].append(datetime.now(timezone.utc).replace(tzinfo=None).isoformat())
        m["values"].append(float(value))

    def artifact(self, path):
        self.run["artifacts"].append(Path(path).name)

    def heartbeat(self):
        self.run["heartbeat"] = datetime.now(timezone.utc).replace(tzinfo=None).isoformat()
        self.save()

    def completed(self, result, cout):
        stop = datetime.now(timezone.utc).replace(tzinfo=None)
        self.run.update(status="COMPLETED", stop_time=stop.isoformat(), result=result,
                        elapsed_time=str(timedelta(seconds=round((stop - self.start).total_seconds()))))
        (self.dir / "cout.txt").write_text(cout)
        self.heartbeat()
        return stop - self.start

    def save(self):
        (self.dir / "run.json").write_text(json.dumps(self.run, indent=2, sort_keys=True))
        (self.dir / "metrics.json").write_text(json.dumps(self.metrics, indent=2))


def seir(params, cfg):
    beta, rho, e0 = params
    n, s, g = cfg["population"], cfg["sigma"], cfg["gamma"]

    def rhs(t, y):
        inf = beta * y[0] * y[2] / n
        return [-inf, inf - s * y[1], s * y[1] - g * y[2], g * y[2], s * y[1]]

    sol = solve_ivp(rhs, (0, cfg["days"]), [n - e0, e0, 0, 0, 0], t_eval=np.arange(cfg["days"] + 1), rtol=1e-5, atol=1e-2)
    return np.maximum(rho * np.diff(sol.y[4]), 1e-6), sol.y


def nll(params, cases, cfg):
    mu, _ = seir(params, cfg)
    return float((mu - cases * np.log(mu)).sum())


def fit(cases, cfg, seed, report=None):
    bounds = [(0.2, 0.8), (0.05, 0.9), (1.0, 120.0)]
    calls = {"n": 0}

    def f(p):
        calls["n"] += 1
        return nll(p, cases, cfg)

    gens = {"n": 0}

    def cb(intermediate_result):
        gens["n"] += 1
        if report:
            report(gens["n"], intermediate_result.fun, intermediate_result.x)

    res = differential_evolution(f, bounds, popsize=cfg["popsize"], maxiter=cfg["generations"], seed=seed, tol=0, polish=False, callback=cb)
    res = minimize(f, res.x, method="Nelder-Mead", bounds=bounds, options={"maxiter": 120, "xatol": 1e-5, "fatol": 1e-4})
    return res.x, res.fun, calls["n"]


def main():
    buf = io.StringIO()
    out = Tee(sys.stdout, buf)
    logging.basicConfig(stream=out, level=logging.INFO, format="%(levelname)s - %(name)s - %(message)s")
    log = logging.getLogger("seir_calibration")
    obs = FileStorageObserver("runs")
    log.info("Running command 'main'")
    run_id = obs.started("seir_calibration", CONFIG)
    log.info('Started run with ID "%d"', run_id)

    rng = np.random.default_rng(CONFIG["seed"])
    truth = (CONFIG["beta"], CONFIG["rho"], CONFIG["e0"])
    mean, _ = seir(truth, CONFIG)
    cases = rng.poisson(mean)
    log.info("simulated %d cases in %d days, peak on day %d", cases.sum(), CONFIG["days"], cases.argmax())

    t0 = time.time()

    def report(gen, value, x):
        obs.log_scalar("fit.nll", value, gen)
        obs.log_scalar("fit.beta", x[0], gen)
        obs.log_scalar("fit.gen_per_sec", gen / (time.time() - t0), gen)
        log.info("generation %d: nll %.4f beta %.5f (%.2f s)", gen, value, x[0], time.time() - t0)
        obs.heartbeat()

    est, value, calls = fit(cases, CONFIG, CONFIG["seed"], report)
    took = time.time() - t0
    log.info("estimate beta %.6f rho %.6f e0 %.4f, nll %.5f after %d evaluations", *est, value, calls)
    log.info("fit took %.2f s (%.2f ms per evaluation)", took, 1000 * took / calls)
    mu, states = seir(est, CONFIG)
    boots = []
    for b in range(CONFIG["bootstrap"]):
        t = time.time()
        sample = rng.poisson(mu)
        res = minimize(nll, est, args=(sample, CONFIG), method="Nelder-Mead", options={"maxiter": 25})
        boots.append(res.x)
        obs.log_scalar("bootstrap.beta", res.x[0], b)
        obs.log_scalar("bootstrap.seconds", time.time() - t, b)
    boots = np.array(boots)
    lo, hi = np.percentile(boots, [2.5, 97.5], axis=0)
    for i, k in enumerate(("beta", "rho", "e0")):
        log.info("%4s: %.5f [%.5f, %.5f]", k, est[i], lo[i], hi[i])
    np.savez_compressed(obs.dir / "curves.npz", mu=mu, states=states, cases=cases, bootstrap=boots)
    obs.artifact("curves.npz")
    result = {"beta": est[0], "rho": est[1], "e0": est[2], "nll": value, "r0": est[0] / CONFIG["gamma"]}
    log.info("Result: %s", result)
    elapsed = obs.completed(result, "")
    log.info("Completed after %s", timedelta(seconds=round(elapsed.total_seconds())))
    (obs.dir / "cout.txt").write_text(buf.getvalue())


if __name__ == "__main__":
    main()
