"""Numerical test-and-benchmark session with JUnit XML and .benchmarks JSON, in the style of pytest + pytest-benchmark."""
import argparse
import gc
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
import uuid
import xml.etree.ElementTree as ET
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import scipy
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.sparse
import scipy.sparse.linalg

REGISTRY = {}


def bench(group, rounds=7):
    def deco(fn):
        REGISTRY[fn.__name__] = (fn, group, rounds)
        return fn
    return deco


def rng():
    return np.random.default_rng(5)


@bench("linalg")
def test_lu_solve():
    A = rng().normal(size=(180, 180)) + 20 * np.eye(180)
    b = np.arange(180.0)
    return lambda: scipy.linalg.solve(A, b), lambda x: float(np.abs(A @ x - b).max()) < 1e-9


@bench("linalg")
def test_svd_lowrank():
    r = rng()
    A = r.normal(size=(120, 6)) @ r.normal(size=(6, 80))
    return lambda: scipy.linalg.svdvals(A), lambda s: int((s > 1e-8 * s[0]).sum()) == 6


@bench("sparse")
def test_poisson_cg():
    n = 40
    T = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    eye = scipy.sparse.eye_array(n)
    L = (scipy.sparse.kron(T, eye) + scipy.sparse.kron(eye, T)).tocsr()
    b = np.ones(n * n)
    return lambda: scipy.sparse.linalg.cg(L, b, rtol=1e-8)[0], lambda x: float(np.abs(L @ x - b).max()) < 1e-4


@bench("ode", rounds=5)
def test_lorenz_rk45():
    def f(t, u):
        x, y, z = u
        return [10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z]
    return (lambda: scipy.integrate.solve_ivp(f, (0, 6), [1.0, 1.0, 1.0], rtol=1e-7).y[:, -1],
            lambda u: bool(np.isfinite(u).all()))


@bench("optimize", rounds=5)
def test_rosenbrock_bfgs():
    return (lambda: scipy.optimize.minimize(scipy.optimize.rosen, np.full(8, -0.5), method="BFGS").x,
            lambda x: float(np.abs(x - 1).max()) < 1e-3)


@bench("optimize", rounds=3)
def test_differential_evolution():
    def ackley(x):
        return (-20 * np.exp(-0.2 * np.sqrt((x ** 2).mean())) - np.exp(np.cos(2 * np.pi * x).mean()) + 20 + np.e)
    return (lambda: scipy.optimize.differential_evolution(ackley, [(-5, 5)] * 3, rng=11, maxiter=60, tol=1e-10).x,
            lambda x: float(np.abs(x).max()) < 1e-2)


@bench("fft")
def test_fft_roundtrip():
    x = rng().normal(size=2 ** 14)
    return lambda: scipy.fft.irfft(scipy.fft.rfft(x), n=len(x)), lambda y: bool(np.allclose(x, y))


@bench("tempfiles", rounds=3)
def test_memmap_sum(tmp_path):
    p = Path(tmp_path) / "block.dat"
    a = np.memmap(p, dtype=np.int64, mode="w+", shape=(400, 1000))
    a[:] = np.arange(400_000).reshape(400, 1000)
    a.flush()
    return lambda: int(np.memmap(p, dtype=np.int64, mode="r").sum()), lambda s: s == 400_000 * 399_999 // 2


@bench("linalg")
def test_expm_known_issue():
    A = np.triu(np.ones((4, 4)))
    return lambda: scipy.linalg.expm(A), lambda E: abs(float(np.trace(E)) - 10.0) < 1e-6


def stats_of(data):
    q = statistics.quantiles(data, n=4) if len(data) > 1 else [data[0]] * 3
    mean = statistics.fmean(data)
    return {"min": min(data), "max": max(data), "mean": mean, "stddev": statistics.stdev(data), "median": q[1],
            "iqr": q[2] - q[0], "ops": 1 / mean, "rounds": len(data), "iterations": 1, "total": sum(data)}


def digest(v):
    a = np.atleast_1d(np.asarray(v, dtype=np.float64))
    return {"shape": list(a.shape), "sum": float(a.sum()), "norm": float(np.sqrt((a ** 2).sum()))}


def run_one(name):
    """Executed in a child process; prints one JSON line."""
    fn, group, rounds = REGISTRY[name]
    tmp = tempfile.mkdtemp(prefix=f"pytest-{name}-")
    rec = {"name": name, "group": group, "tmp_path": tmp, "pid": os.getpid()}
    try:
        target, check = fn(tmp) if fn.__code__.co_argcount else fn()
        value = target()
        gc.disable()
        data = []
        for _ in range(rounds):
            t0 = time.perf_counter()
            value = target()
            data.append(time.perf_counter() - t0)
        gc.enable()
        rec.update(outcome="passed" if check(value) else "failed", value=digest(value), stats=stats_of(data))
        if rec["outcome"] == "failed":
            rec["message"] = f"assert check({digest(value)}) is False"
    except Exception:
        rec.update(outcome="error", message=traceback.format_exc())
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
    print(json.dumps(rec))


def junit(records, path, started, total):
    bad = sum(r["outcome"] != "passed" for r in records)
    root = ET.Element("testsuites", name="pytest tests")
    suite = ET.SubElement(root, "testsuite", name="pytest", errors="0", failures=str(bad), skipped="0", tests=str(len(records)),
                          time=f"{total:.3f}", timestamp=started.isoformat(), hostname=socket.gethostname())
    for r in records:
        case = ET.SubElement(suite, "testcase", classname=f"benchmarks.{r['group']}", name=r["name"], time=f"{r['wall']:.3f}")
        if r["outcome"] != "passed":
            ET.SubElement(case, "failure", message=r["message"])
    ET.indent(root)
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--run-one")
    ap.add_argument("-k", default="")
    args = ap.parse_args()
    if args.run_one:
        return run_one(args.run_one)
    started, t0 = datetime.now(timezone.utc), time.perf_counter()
    names = [n for n in REGISTRY if args.k in n]
    print("=" * 28 + " test session starts " + "=" * 29)
    print(f"platform {sys.platform} -- Python {platform.python_version()}, scipy-{scipy.__version__}, numpy-{np.__version__}")
    print(f"rootdir: {os.getcwd()}\ncollected {len(names)} items\n")
    records = []
    for i, n in enumerate(names, 1):
        w = time.perf_counter()
        out = subprocess.run([sys.executable, os.path.abspath(__file__), "--run-one", n], capture_output=True, text=True, check=True)
        r = json.loads(out.stdout)
        r["wall"] = time.perf_counter() - w
        records.append(r)
        print(f"benchmarks/{r['group']}.py::{n} {r['outcome'].upper():<30}[{100 * i // len(names):3d}%]", flush=True)
    total = time.perf_counter() - t0
    junit(records, "report.xml", started, total)
    d = Path(".benchmarks") / f"{platform.system()}-CPython-3.11-64bit"
    d.mkdir(parents=True)
    (d / f"0001_{uuid.uuid4().hex}_{started:%Y%m%d_%H%M%S}.json").write_text(json.dumps({
        "machine_info": {"node": platform.node(), "python_version": platform.python_version(), "release": platform.release()},
        "commit_info": {"id": "unknown", "time": None, "dirty": False}, "datetime": started.isoformat(), "version": "4.0.0",
        "benchmarks": [{"name": r["name"], "group": r["group"], "extra_info": {"value": r["value"], "tmp": r["tmp_path"]},
                        "stats": r["stats"]} for r in records if "stats" in r]}, indent=4))
    Path("values.json").write_text(json.dumps({r["name"]: r.get("value") for r in records}, indent=2))
    print("\n" + "-" * 30 + f" benchmark: {len(records)} tests " + "-" * 30)
    print(f"{'Name (time in ms)':<32}{'Min':>10}{'Max':>10}{'Mean':>10}{'StdDev':>9}{'OPS':>12}{'Rounds':>8}")
    for r in records:
        s = r["stats"]
        print(f"{r['name']:<32}{s['min'] * 1e3:>10.4f}{s['max'] * 1e3:>10.4f}{s['mean'] * 1e3:>10.4f}{s['stddev'] * 1e3:>9.4f}"
              f"{s['ops']:>12,.3f}{s['rounds']:>8}")
    for r in records:
        if r["outcome"] != "passed":
            print(f"\nFAILED {r['name']} - {r['message']}")
    n_ok = sum(r["outcome"] == "passed" for r in records)
    print("=" * 20 + f" {len(records) - n_ok} failed, {n_ok} passed in {total:.2f}s " + "=" * 20)


if __name__ == "__main__":
    main()
