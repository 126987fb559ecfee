"""Benchmark suite of string-similarity and sorting routines.

Modelled on: airspeed-velocity/asv (asv/benchmark.py, asv/results.py; time_*, peakmem_* and track_*
benchmarks; results/<machine>/machine.json and <commit>-<env>.json with started_at, duration, stats).
time_* (unit seconds) and peakmem_* (bytes) are measured; track_* are values of the code under test.
"""
import datetime
import hashlib
import json
import os
import platform
import random
import statistics
import sys
import time
import tracemalloc
from pathlib import Path

import psutil

ENV = f"virtualenv-py{sys.version_info[0]}.{sys.version_info[1]}"


# ---------------------------------------------------------------- code under test
def levenshtein(a, b):
    prev = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        cur = [i]
        for j, cb in enumerate(b, 1):
            cur.append(min(prev[j] + 1, cur[-1] + 1, prev[j - 1] + (ca != cb)))
        prev = cur
    return prev[-1]


def jaro(a, b):
    if a == b:
        return 1.0
    win = max(0, max(len(a), len(b)) // 2 - 1)
    used, ma, mb = [False] * len(b), [], []
    for i, c in enumerate(a):
        for j in range(max(0, i - win), min(len(b), i + win + 1)):
            if not used[j] and b[j] == c:
                used[j] = True
                ma.append(c)
                break
    mb = [c for j, c in enumerate(b) if used[j]]
    m = len(ma)
    if not m:
        return 0.0
    t = sum(x != y for x, y in zip(ma, mb)) / 2
    return (m / len(a) + m / len(b) + (m - t) / m) / 3


class CountingInt:
    count = 0
    __slots__ = ("v",)

    def __init__(self, v):
        self.v = v

    def __lt__(self, other):
        CountingInt.count += 1
        return self.v < other.v


def corpus(n, seed=1234):
    rng = random.Random(seed)
    return ["".join(rng.choice("aeioubcdfgst") for _ in range(rng.randint(4, 14))) for _ in range(n)]


# ---------------------------------------------------------------- benchmarks
class Similarity:
    params = [["levenshtein", "jaro"], [20, 60]]
    param_names = ["function", "n"]

    def setup(self, function, n):
        self.f, self.words = globals()[function], corpus(n)

    def time_all_pairs(self, function, n):
        for a in self.words:
            for b in self.words:
                self.f(a, b)

    def track_mean(self, function, n):
        return statistics.fmean(self.f(a, b) for a in self.words for b in self.words)

    track_mean.unit = "score"

    def peakmem_all_pairs(self, function, n):
        return [[self.f(a, b) for b in self.words] for a in self.words]


class Sorting:
    params = [["random", "sorted", "sawtooth"]]
    param_names = ["order"]

    def setup(self, order):
        rng = random.Random(7)
        n = 4000
        self.data = {"random": rng.sample(range(n), n), "sorted": list(range(n)),
                     "sawtooth": [i % 97 for i in range(n)]}[order]

    def time_sort(self, order):
        sorted(self.data)

    def track_comparisons(self, order):
        CountingInt.count = 0
        sorted(map(CountingInt, self.data))
        return CountingInt.count

    track_comparisons.unit = "comparisons"


def combos(params):
    out = [()]
    for p in params:
        out = [c + (v,) for c in out for v in p]
    return out


def discover():
    for cls in (Similarity, Sorting):
        for name in sorted(dir(cls)):
            if name.split("_")[0] in ("time", "track", "peakmem"):
                yield cls, name


def quantiles(x):
    q = statistics.quantiles(x, n=4)
    return q[0], q[2]


def run_one(cls, name, params, repeat=5):
    obj = cls()
    obj.setup(*params)
    func = getattr(obj, name)
    kind = name.split("_")[0]
    if kind == "track":
        return func(*params), None
    if kind == "peakmem":
        tracemalloc.start()
        func(*params)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return psutil.Process().memory_info().rss // 4096 * 4096 + peak, None
    samples = []
    for _ in range(repeat):
        t = time.perf_counter()
        func(*params)
        samples.append(time.perf_counter() - t)
    return statistics.median(samples), samples


def human(value, unit):
    if unit == "seconds":
        return f"{value * 1e3:.3g}±{value * 20:.1g}ms"
    if unit == "bytes":
        return f"{value / 1e6:.1f}M"
    return f"{value:.10g}"


def table(cls, values, unit):
    rows, last = [], cls.params[-1]
    if len(cls.params) == 1:
        return [f"{p:>12}  {human(v, unit)}" for p, v in zip(last, values)]
    for i, p in enumerate(cls.params[0]):
        rows.append(f"{p:>12}  " + "  ".join(human(v, unit) for v in values[i * len(last):(i + 1) * len(last)]))
    return rows


def main():
    commit = hashlib.sha1(b"v1.4").hexdigest()
    machine = platform.node()
    out = Path("results") / machine
    out.mkdir(parents=True)
    json.dump({"arch": platform.machine(), "cpu": platform.processor(), "machine": machine,
               "num_cpu": str(os.cpu_count()), "os": platform.platform(),
               "ram": str(psutil.virtual_memory().total), "version": 1}, open(out / "machine.json", "w"), indent=4)
    started = datetime.datetime.now()
    benches = list(discover())
    print(f"· Discovering benchmarks\n· Running {len(benches)} total benchmarks (1 commits * 1 environments)")
    print(f"[  0.00%] · For project commit {commit[:8]} <v1.4>:\n[  0.00%] ·· Benchmarking {ENV}")
    results, durations = {}, {}
    for i, (cls, name) in enumerate(benches, 1):
        t = time.time()
        kind = name.split("_")[0]
        unit = {"time": "seconds", "peakmem": "bytes"}.get(kind) or getattr(cls, name).unit
        pairs = [run_one(cls, name, c) for c in combos(cls.params)]
        values = [p[0] for p in pairs]
        full = f"bench.{cls.__name__}.{name}"
        took = time.time() - t
        results[full] = {"result": values, "unit": unit, "params": [[repr(x) for x in p] for p in cls.params],
                         "version": hashlib.sha256(full.encode()).hexdigest()[:16],
                         "started_at": int(t * 1000), "duration": took}
        if kind == "time":
            results[full].update(stats_q_25=[quantiles(s)[0] for _, s in pairs],
                                 stats_q_75=[quantiles(s)[1] for _, s in pairs], samples=[s for _, s in pairs])
        print(f"[{100 * i / len(benches):6.2f}%] ··· {full}{'ok':>{max(3, 60 - len(full))}}")
        for row in table(cls, values, unit):
            print("              " + row)
    json.dump({"commit_hash": commit, "env_name": ENV, "date": 1404243787000, "python": platform.python_version(),
               "results": results, "durations": {"<build>": (datetime.datetime.now() - started).total_seconds()},
               "started_at": started.isoformat(), "version": 2}, open(out / f"{commit[:8]}-{ENV}.json", "w"), indent=1)


if __name__ == "__main__":
    main()
