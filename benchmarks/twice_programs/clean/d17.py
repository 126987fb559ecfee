"""Style of liu-kan/smFRETLikelihood (test/pp.py, worker processes) with snakemake's benchmark TSV. Differs in each run: process
ids, worker log files named by pid, order of their lines, s / h:m:s / max_rss / cpu_time of the TSV, HDF5 attributes, host name."""
import datetime
import getpass
import logging
import multiprocessing
import os
import resource
import socket
import sys
import time

import h5py
import numpy as np
from scipy.optimize import minimize


def worker_logger():
    lg = logging.getLogger(f"worker-{os.getpid()}")
    if not lg.handlers:
        os.makedirs("logs", exist_ok=True)
        h = logging.FileHandler(f"logs/worker_{os.getpid()}.log")
        h.setFormatter(logging.Formatter("%(asctime)s.%(msecs)03d %(processName)s[%(process)d] %(relativeCreated)d %(message)s", "%H:%M:%S"))
        lg.addHandler(h)
        lg.setLevel(logging.INFO)
        lg.propagate = False
    return lg


def photons(seed, n=1500):
    rng = np.random.default_rng(seed)
    states = np.zeros(n, int)
    k = np.array([0.02, 0.05])
    for i in range(1, n):
        s = states[i - 1]
        states[i] = 1 - s if rng.random() < k[s] else s
    eff = np.array([0.3, 0.75])
    return (rng.random(n) < eff[states]).astype(int)


def neg_loglik(theta, color):
    e = 1 / (1 + np.exp(-theta[:2]))
    k = 1 / (1 + np.exp(-theta[2:]))
    t = np.array([[1 - k[0], k[0]], [k[1], 1 - k[1]]])
    p = np.array([k[1], k[0]]) / k.sum()
    ll = 0.0
    em = np.stack([1 - e, e])
    for c in color:
        p = (p @ t) * em[c]
        s = p.sum()
        ll += np.log(s)
        p = p / s
    return -ll


class Simulation(multiprocessing.Process):
    def __init__(self, name, jobs, results):
        super().__init__(name=name)
        self.jobs, self.results = jobs, results

    def run(self):
        lg = worker_logger()
        sys.stdout.write("[%s] running ...  process id: %s\n" % (self.name, os.getpid()))
        sys.stdout.flush()
        for seed in iter(self.jobs.get, None):
            t0, c0 = time.time(), time.process_time()
            color = photons(seed)
            r = minimize(neg_loglik, np.array([-0.5, 0.8, -3.0, -3.0]), args=(color,), method="Nelder-Mead", options=dict(maxiter=14))
            e = np.sort(1 / (1 + np.exp(-r.x[:2])))
            lg.info("trace %d: nll %.6f after %d evaluations in %.3f s", seed, r.fun, r.nfev, time.time() - t0)
            self.results.put((seed, float(r.fun), e, r.x, dict(pid=os.getpid(), s=time.time() - t0, cpu=time.process_time() - c0,
                              rss=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)))
        sys.stdout.write("[%s] completed at %s\n" % (self.name, datetime.datetime.now().time()))
        sys.stdout.flush()


def hms(s):
    return "%d:%02d:%02d" % (s // 3600, s % 3600 // 60, s % 60)


def main():
    start = time.time()
    print(f"{getpass.getuser()}@{socket.gethostname()} {os.getcwd()} {time.strftime('%c')}")
    ctx_jobs, results = multiprocessing.Queue(), multiprocessing.Queue()
    seeds = list(range(300, 310))
    for s in seeds:
        ctx_jobs.put(s)
    sims = [Simulation(n, ctx_jobs, results) for n in ("foo", "bar", "baz")]
    for s in sims:
        s.start()
        ctx_jobs.put(None)
    got = []
    for _ in seeds:
        got.append(results.get())
        sys.stderr.write("\r%d of %d steps (%d%%) done, %.1f s" % (len(got), len(seeds), 100 * len(got) // len(seeds), time.time() - start))
    sys.stderr.write("\n")
    for s in sims:
        s.join()
        print("joined:", s.pid, " exitcode:", s.exitcode)
    got.sort(key=lambda g: g[0])
    with open("benchmark.tsv", "w") as f:
        f.write("s\th:m:s\tmax_rss\tcpu_time\tmean_load\tpid\ttrace\n")
        for seed, _, _, _, m in got:
            f.write("%.4f\t%s\t%.2f\t%.2f\t%.2f\t%d\t%d\n" % (m["s"], hms(m["s"]), m["rss"], m["cpu"], 100 * m["cpu"] / max(m["s"], 1e-9), m["pid"], seed))
    with h5py.File("fits.h5", "w") as h:
        h.attrs["created"] = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        h.attrs["host"] = socket.gethostname()
        h.attrs["elapsed_seconds"] = time.time() - start
        h["seed"] = np.array([g[0] for g in got])
        h["nll"] = np.array([g[1] for g in got])
        h["efficiency"] = np.stack([g[2] for g in got])
        h["theta"] = np.stack([g[3] for g in got])
        h["timing/seconds"] = np.array([g[4]["s"] for g in got])
    for seed, nll, e, x, m in got:
        print(f"trace {seed}: nll={nll:.6f} E1={e[0]:.4f} E2={e[1]:.4f}   ({m['s']:.2f} s)")
    es = np.stack([g[2] for g in got])
    print("mean efficiencies: %.6f %.6f" % tuple(es.mean(0)))
    print("Finished job 0 in %s. %d of %d steps (100%%) done, speed-up %.2fx" % (hms(time.time() - start), len(got), len(got),
          sum(g[4]["s"] for g in got) / (time.time() - start)))


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    main()
