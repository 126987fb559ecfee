"""Stochastic simulation of binding and release of DNA strands in solution.

Strands carry domains; two free strands with complementary ends bind with a rate that depends on the
length of the match, and bound pairs fall apart again. Runs the Gillespie algorithm with a seeded
generator and writes the time course and the table of the pairs seen.

Modelled on: https://github.com/UC-Davis-molecular-computing/ppsim/issues/16
"""
import argparse
import json
import math
import random
import time
from collections import Counter
from pathlib import Path

COMPLEMENT = {"A": "T", "T": "A", "C": "G", "G": "C"}


class Strand:
    __slots__ = ("species", "toehold", "tail")

    def __init__(self, species, toehold, tail):
        self.species = species
        self.toehold = toehold
        self.tail = tail

    def __repr__(self):
        return f"<{self.species}>"


class Duplex:
    __slots__ = ("left", "right", "matches")

    def __init__(self, left, right, matches):
        self.left = left
        self.right = right
        self.matches = matches

    @property
    def key(self):
        return "-".join(sorted((self.left.species, self.right.species)))


def matches(a, b):
    """Complementary bases of two toeholds, antiparallel."""
    return sum(COMPLEMENT[x] == y for x, y in zip(a.toehold, reversed(b.toehold)))


def make_species(n, rng, toehold=6, tail=10):
    species = []
    for i in range(n):
        th = "".join(rng.choice("ACGT") for _ in range(toehold))
        species.append((f"S{i:02d}", th, "".join(rng.choice("ACGT") for _ in range(tail))))
        partner = "".join(COMPLEMENT[c] for c in reversed(th))
        if i % 2:
            species.append((f"S{i:02d}c", partner, "".join(rng.choice("ACGT") for _ in range(tail))))
    return species


class Solution:
    def __init__(self, species, copies, rng, k_bind=1e-4, k_release=2.0):
        self.rng = rng
        self.k_bind = k_bind
        self.k_release = k_release
        self.time = 0.0
        self.free = set()  # cause
        self.duplexes = []
        for name, toehold, tail in species:
            for _ in range(copies):
                self.free.add(Strand(name, toehold, tail))
        self.events = Counter()

    def propensities(self):
        n = len(self.free)
        bind = self.k_bind * n * (n - 1) / 2
        release = self.k_release * sum(math.exp(-d.matches) for d in self.duplexes)
        return bind, release

    def pick_two(self):
        pool = list(self.free)  # cause
        i = self.rng.randrange(len(pool))
        j = self.rng.randrange(len(pool) - 1)
        return pool[i], pool[j + (j >= i)]

    def bind(self):
        a, b = self.pick_two()
        m = matches(a, b)
        if self.rng.random() > math.exp(m - 6):
            self.events["rejected"] += 1
            return
        self.free.discard(a)
        self.free.discard(b)
        self.duplexes.append(Duplex(a, b, m))
        self.events["bound"] += 1

    def release(self, total):
        target = self.rng.random() * total / self.k_release
        acc = 0.0
        for i, d in enumerate(self.duplexes):
            acc += math.exp(-d.matches)
            if acc >= target:
                break
        self.duplexes[i] = self.duplexes[-1]
        self.duplexes.pop()
        self.free.add(d.left)
        self.free.add(d.right)
        self.events["released"] += 1

    def step(self):
        bind, release = self.propensities()
        total = bind + release
        if total == 0:
            return False
        self.time += self.rng.expovariate(total)
        if self.rng.random() * total < bind:
            self.bind()
        else:
            self.release(release)
        return True

    def counts(self):
        by_species = Counter(s.species for s in self.free)
        return {name: by_species[name] for name in sorted(by_species)}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--species", type=int, default=20)
    ap.add_argument("--copies", type=int, default=120)
    ap.add_argument("--steps", type=int, default=20000)
    ap.add_argument("--seed", type=int, default=99)
    ap.add_argument("--out", default=".")
    args = ap.parse_args()

    rng = random.Random(args.seed)
    sol = Solution(make_species(args.species, rng), args.copies, rng)
    n_start = len(sol.free)
    out = Path(args.out)
    t0 = time.time()
    with open(out / "timecourse.csv", "w") as f:
        f.write("step,time,free,duplexes,mean_matches\n")
        for step in range(args.steps):
            if not sol.step():
                break
            if step % 400 == 0:
                mean = sum(d.matches for d in sol.duplexes) / max(1, len(sol.duplexes))
                f.write(f"{step},{sol.time:.6f},{len(sol.free)},{len(sol.duplexes)},{mean:.4f}\n")
    pairs = Counter(d.key for d in sol.duplexes)
    ranked = sorted(pairs.items(), key=lambda kv: (-kv[1], kv[0]))
    result = {
        "strands": n_start,
        "time": round(sol.time, 6),
        "events": dict(sorted(sol.events.items())),
        "free": sol.counts(),
        "pairs": dict(ranked[:25]),
    }
    (out / "final.json").write_text(json.dumps(result, indent=1))
    print(f"{args.steps} steps in {time.time() - t0:.1f}s")
    print("time", result["time"], "events", result["events"])
    print("top pairs:", ", ".join(f"{k}={v}" for k, v in ranked[:5]))


if __name__ == "__main__":
    main()
