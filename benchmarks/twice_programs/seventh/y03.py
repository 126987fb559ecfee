"""https://github.com/virtualcell/vcell/issues/2077 - models give other results from run to run: simplification of an
expression has a deadline in wall-clock time and silently falls back to the unsimplified form when it is reached."""
import contextlib
import json
import random
import signal
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

BITS = 9
BUDGET = 0.016


class OutOfTime(Exception):
    pass


def _ring(signum, frame):
    raise OutOfTime


@contextlib.contextmanager
def time_limit(seconds):
    old = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)  # cause
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def prime_implicants(minterms):
    """Quine-McCluskey merging; a term is (value, mask of dashes)."""
    current = {(m, 0) for m in minterms}
    primes = set()
    while current:
        groups = defaultdict(list)
        for value, mask in sorted(current):
            groups[mask, bin(value).count("1")].append(value)
        merged, used = set(), set()
        for (mask, ones), values in groups.items():
            for a in values:
                for b in groups.get((mask, ones + 1), ()):
                    d = a ^ b
                    if d & (d - 1) == 0:
                        merged.add((a & ~d, mask | d))
                        used.add((a, mask))
                        used.add((b, mask))
        primes |= current - used
        current = merged
    return sorted(primes)


def covers(term, m):
    value, mask = term
    return (m & ~mask) == value


def cover(primes, minterms):
    left, chosen = set(minterms), []
    while left:
        best = max(primes, key=lambda t: (sum(covers(t, m) for m in left), -t[0]))
        chosen.append(best)
        left = {m for m in left if not covers(best, m)}
    return chosen


class Rule:
    """A boolean rule read from data: seen cases decide, unseen cases are free."""

    def __init__(self, positive, free):
        self.positive, self.free = positive, free
        self.terms = [(m, 0) for m in positive]
        self.simplified = False

    def simplify(self, seconds):
        try:
            with time_limit(seconds):
                terms = cover(prime_implicants(self.positive + self.free), self.positive)
        except OutOfTime:
            return
        self.terms, self.simplified = terms, True

    def __call__(self, m):
        return any(covers(t, m) for t in self.terms)


def hidden_rule(rng):
    terms = []
    for _ in range(rng.randint(2, 4)):
        bits = rng.sample(range(BITS), rng.randint(2, 4))
        mask = (2 ** BITS - 1) & ~sum(1 << b for b in bits)
        terms.append((sum((rng.random() < 0.5) << b for b in bits), mask))
    return lambda m: any(covers(t, m) for t in terms)


def main(n_rules=260, seed=30):
    random.seed(seed)
    np.random.seed(seed)
    rng = random.Random(seed)
    t0 = time.time()
    records = []
    for k in range(n_rules):
        truth = hidden_rule(rng)
        seen = rng.sample(range(2 ** BITS), rng.randint(400, 440))
        noise = 0.01 * rng.random()
        positive = sorted(m for m in seen if truth(m) != (rng.random() < noise))
        free = sorted(set(range(2 ** BITS)) - set(seen))
        rule = Rule(positive, free)
        rule.simplify(BUDGET)
        hits = np.mean([rule(m) == truth(m) for m in free])
        records.append({"rule": k, "terms": len(rule.terms), "accuracy": float(hits)})
        if k % 50 == 49:
            print(f"{k + 1} rules, {time.time() - t0:.2f}s, last: {records[-1]}", file=sys.stderr)
    summary = {"terms": sum(r["terms"] for r in records), "accuracy": float(np.mean([r["accuracy"] for r in records]))}
    Path("rules.json").write_text(json.dumps({"summary": summary, "rules": records}, indent=1))
    print(time.strftime("%Y-%m-%d %H:%M"), summary)


if __name__ == "__main__":
    main()
