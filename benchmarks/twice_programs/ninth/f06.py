"""Opinion dynamics of people on a social network, with leaders and media.

Modelled on https://github.com/mesa/mesa/issues/3182
A model of agents gives other paths with the same seed.
"""
import argparse
import csv
import logging
import random
import sqlite3
import time

import numpy as np

log = logging.getLogger("opinions")


class Person:
    """Somebody with an opinion in [-1, 1] and a bound of confidence."""

    __slots__ = ("number", "opinion", "bound", "stubborn", "group", "met")

    def __init__(self, number, opinion, bound, stubborn, group):
        self.number = number
        self.opinion = opinion
        self.bound = bound
        self.stubborn = stubborn
        self.group = group
        self.met = 0

    def talk(self, other, rate):
        gap = other.opinion - self.opinion
        if abs(gap) > min(self.bound, other.bound):
            return False
        if not self.stubborn:
            self.opinion += rate * gap
        if not other.stubborn:
            other.opinion -= rate * gap
        self.met += 1
        other.met += 1
        return True


class Society:
    def __init__(self, cfg):
        self.cfg = cfg
        self.rng = random.Random(cfg.seed)
        self.people = self.populate()
        self.ties = self.connect()

    def populate(self):
        people = []
        for i in range(self.cfg.people):
            group = self.rng.randrange(self.cfg.groups)
            centre = -0.8 + 1.6 * group / (self.cfg.groups - 1)
            opinion = max(-1.0, min(1.0, self.rng.gauss(centre, 0.35)))
            bound = self.rng.uniform(0.2, 0.7)
            people.append(Person(i, opinion, bound, self.rng.random() < 0.03, group))
        return people

    def connect(self):
        """Everybody chooses some friends, more often in the own group."""
        by_group = {}
        for p in self.people:
            by_group.setdefault(p.group, []).append(p)
        ties = []
        for p in self.people:
            for _ in range(self.cfg.friends):
                pool = by_group[p.group] if self.rng.random() < 0.7 else self.people
                q = self.rng.choice(pool)
                if q is not p:
                    ties.append((p, q) if p.number < q.number else (q, p))
        return list(set(ties))  # cause

    def step(self):
        talks = 0
        for a, b in self.ties:
            if self.rng.random() < self.cfg.activity:
                talks += a.talk(b, self.cfg.rate)
        for p in self.people:
            if not p.stubborn and self.rng.random() < self.cfg.media:
                p.opinion += 0.05 * (0.6 - p.opinion)
        return talks

    def opinions(self):
        return np.array([p.opinion for p in self.people])


def polarisation(x):
    hist, _ = np.histogram(x, bins=20, range=(-1, 1))
    p = hist / hist.sum()
    p = p[p > 0]
    return float(-(p * np.log(p)).sum()), float(np.var(x))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--people", type=int, default=3000)
    ap.add_argument("--groups", type=int, default=4)
    ap.add_argument("--friends", type=int, default=6)
    ap.add_argument("--steps", type=int, default=500)
    ap.add_argument("--rate", type=float, default=0.3)
    ap.add_argument("--activity", type=float, default=0.25)
    ap.add_argument("--media", type=float, default=0.02)
    ap.add_argument("--every", type=int, default=25)
    ap.add_argument("--seed", type=int, default=42)
    cfg = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)

    society = Society(cfg)
    log.info("%d people, %d ties", cfg.people, len(society.ties))
    rows, t0 = [], time.time()
    for step in range(cfg.steps):
        talks = society.step()
        if step % cfg.every == 0 or step == cfg.steps - 1:
            x = society.opinions()
            entropy, var = polarisation(x)
            rows.append((step, talks, float(x.mean()), var, entropy))
            log.info("step %3d talks %5d mean %+.6f var %.6f entropy %.4f (%.1f steps/s)", step,
                     talks, x.mean(), var, entropy, (step + 1) / (time.time() - t0))

    with open("opinions.csv", "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["step", "talks", "mean", "variance", "entropy"])
        w.writerows(rows)
    with sqlite3.connect("society.sqlite") as db:
        db.execute("create table person (number integer primary key, grp int, opinion real, met int)")
        db.executemany("insert into person values (?,?,?,?)",
                       [(p.number, p.group, p.opinion, p.met) for p in society.people])


if __name__ == "__main__":
    main()
