"""Conflation of two road data sets of the same town.

Candidate matches between features of the two inputs are scored, an optimiser
picks a consistent set of matches, matched geometries are averaged and the
unified layer is written as GeoJSON with the usual statistics.

Modelled on: https://github.com/ngageoint/hootenanny/issues/262
"""
import json
import logging
import math
import random
import time
from collections import defaultdict

import numpy as np

log = logging.getLogger("conflate")

CONF = {
    "unify.optimizer.time.limit": 1.5,
    "unify.optimizer.seed": 262,
    "match.search.radius": 60.0,
    "match.threshold": 0.15,
    "town.size": 2200.0,
    "town.roads": 520,
}


class Road:
    def __init__(self, rid, points, name):
        self.rid = rid
        self.points = points
        self.name = name
        d = np.diff(points, axis=0)
        self.length = float(np.sqrt((d ** 2).sum(axis=1)).sum())
        self.mid = points[len(points) // 2]
        span = points[-1] - points[0]
        self.heading = math.atan2(span[1], span[0]) % math.pi


def make_town(conf, seed=4694):
    """Reference roads, and a second source with offsets, splits and omissions."""
    rng = np.random.default_rng(seed)
    first, second = [], []
    for k in range(conf["town.roads"]):
        start = rng.uniform(0, conf["town.size"], 2)
        angle = rng.choice([0.1, 0.1 + math.pi / 2]) + rng.normal(0, 0.05)
        length = rng.uniform(60, 260)
        t = np.linspace(0, 1, 7)[:, None]
        pts = start + t * length * np.array([math.cos(angle), math.sin(angle)])
        pts = pts + rng.normal(0, 1.5, pts.shape)
        name = f"street {rng.integers(0, 80)}"
        first.append(Road(f"A{k}", pts, name))
        if rng.random() < 0.9:
            moved = pts + rng.normal(0, 9.0, 2) + rng.normal(0, 3.0, pts.shape)
            label = name if rng.random() < 0.6 else ""
            if rng.random() < 0.35:
                second.append(Road(f"B{k}a", moved[:4], label))
                second.append(Road(f"B{k}b", moved[3:], label))
            else:
                second.append(Road(f"B{k}", moved, label))
    return first, second


def match_score(a, b, conf):
    dist = float(np.hypot(*(a.mid - b.mid)))
    radius = conf["match.search.radius"]
    if dist > radius:
        return 0.0
    turn = abs(a.heading - b.heading)
    turn = min(turn, math.pi - turn)
    near = math.exp(-dist / (radius / 3))
    ratio = min(a.length, b.length) / max(a.length, b.length)
    named = 1.25 if a.name and a.name == b.name else 1.0
    return near * math.cos(turn) ** 4 * (0.5 + 0.5 * ratio) * named


def find_candidates(first, second, conf):
    cell = conf["match.search.radius"]
    grid = defaultdict(list)
    for j, b in enumerate(second):
        grid[tuple((b.mid // cell).astype(int))].append(j)
    found = []
    for i, a in enumerate(first):
        cx, cy = (a.mid // cell).astype(int)
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                for j in grid.get((cx + dx, cy + dy), ()):
                    s = match_score(a, second[j], conf)
                    if s > conf["match.threshold"]:
                        found.append((i, j, s))
    return found


class MatchOptimizer:
    """Maximum weight consistent set of matches.

    A road takes part in at most one match; neighbouring matches that shift
    the geometry in different directions are penalised.
    """

    def __init__(self, first, second, candidates, conf):
        self.cand = candidates
        self.conf = conf
        self.rng = random.Random(conf["unify.optimizer.seed"])
        self.by_a, self.by_b = defaultdict(list), defaultdict(list)
        for k, (i, j, _) in enumerate(candidates):
            self.by_a[i].append(k)
            self.by_b[j].append(k)
        self.shift = [second[j].mid - first[i].mid for i, j, _ in candidates]
        self.near = self._neighbours(first)

    def _neighbours(self, first):
        mids = np.array([first[i].mid for i, _, _ in self.cand])
        near = []
        for k in range(len(mids)):
            d = np.hypot(*(mids - mids[k]).T)
            order = np.argsort(d, kind="stable")
            near.append([(int(m), 0.004 * float(np.hypot(*(self.shift[m] - self.shift[k]))))
                         for m in order[1:9] if d[m] > 0])
        return near

    def _gain(self, chosen, k):
        return self.cand[k][2] - sum(w for m, w in self.near[k] if m in chosen)

    def _conflicts(self, chosen, k):
        i, j, _ = self.cand[k]
        return [m for m in self.by_a[i] + self.by_b[j] if m in chosen and m != k]

    def objective(self, chosen):
        pair = sum(w for k in sorted(chosen) for m, w in self.near[k] if m in chosen)
        return sum(self.cand[k][2] for k in sorted(chosen)) - pair / 2

    def solve(self):
        chosen, steps, accepted = set(), 0, 0
        temperature = 0.25
        stop = time.monotonic() + self.conf["unify.optimizer.time.limit"]  # cause
        while time.monotonic() < stop:  # cause
            steps += 1
            k = self.rng.randrange(len(self.cand))
            if k in chosen:
                delta = -self._gain(chosen, k)
                out, add = [k], False
            else:
                out, add = self._conflicts(chosen, k), True
                delta = self._gain(chosen, k) - sum(self._gain(chosen, m) for m in out)
            if delta >= 0 or self.rng.random() < math.exp(delta / temperature):
                chosen.difference_update(out)
                if add:
                    chosen.add(k)
                accepted += 1
            temperature = max(0.02, temperature * 0.99998)
        log.info("optimizer: %d steps, %d accepted", steps, accepted)
        return sorted(chosen)


def merge(first, second, candidates, chosen):
    features, used_a, used_b = [], set(), set()
    for k in chosen:
        i, j, s = candidates[k]
        a, b = first[i], second[j]
        t = np.linspace(0, 1, 7)
        pb = np.column_stack([np.interp(t, np.linspace(0, 1, len(b.points)), b.points[:, c])
                              for c in (0, 1)])
        if np.dot(a.points[-1] - a.points[0], pb[-1] - pb[0]) < 0:
            pb = pb[::-1]
        geom = 0.6 * a.points + 0.4 * pb
        features.append((f"{a.rid};{b.rid}", a.name or b.name, geom, round(s, 6)))
        used_a.add(i)
        used_b.add(j)
    for src, used in ((first, used_a), (second, used_b)):
        for n, r in enumerate(src):
            if n not in used:
                features.append((r.rid, r.name, r.points, None))
    return features


def write_geojson(path, features):
    rows = [{"type": "Feature", "properties": {"id": f, "name": n, "score": s},
             "geometry": {"type": "LineString",
                          "coordinates": np.round(g, 3).tolist()}}
            for f, n, g, s in features]
    with open(path, "w") as fh:
        json.dump({"type": "FeatureCollection", "features": rows}, fh)


def main():
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(message)s")
    t0 = time.time()
    first, second = make_town(CONF)
    candidates = find_candidates(first, second, CONF)
    log.info("%d + %d roads, %d candidate matches",
             len(first), len(second), len(candidates))
    optimizer = MatchOptimizer(first, second, candidates, CONF)
    chosen = optimizer.solve()
    features = merge(first, second, candidates, chosen)
    write_geojson("unified.geojson", features)

    true = sum(1 for k in chosen
               if second[candidates[k][1]].rid.rstrip("ab")[1:]
               == first[candidates[k][0]].rid[1:])
    stats = {"matches": len(chosen), "objective": optimizer.objective(set(chosen)),
             "correct": true, "features": len(features),
             "length": float(sum(np.sqrt((np.diff(g, axis=0) ** 2).sum(axis=1)).sum()
                                 for _, _, g, _ in features))}
    with open("stats.json", "w") as fh:
        json.dump(stats, fh, indent=1)
    print(f"matches {stats['matches']} correct {stats['correct']} "
          f"objective {stats['objective']:.6f}")
    print(f"unified features {stats['features']} length {stats['length']:.3f}")
    log.info("took %.2f s", time.time() - t0)


if __name__ == "__main__":
    main()
