#!/usr/bin/env python
"""Multi-target tracking on simulated radar plots.

Modelled on https://github.com/dstl/Stone-Soup/issues/718

Simulates a handful of targets with constant velocity, creates noisy
detections with clutter, and runs a simple multi-target tracker (global nearest
neighbour, Kalman filter, M-of-N initiation).  Writes the tracks, the per-scan
OSPA-like error and a summary below the output folder.
"""
import argparse
import csv
import json
import logging
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

log = logging.getLogger("tracker")

F_STEP = 1.0
MEAS_STD = 4.0
PROCESS_STD = 0.35


@dataclass
class Config:
    seed: int = 1991
    targets: int = 14
    scans: int = 1000
    clutter: float = 12.0
    area: float = 400.0
    gate: float = 16.0
    detection: float = 0.93
    death: float = 0.02
    delete_after: int = 4
    out: Path = Path("tracking_out")


class TransitionModel:
    """Nearly constant velocity in two dimensions."""

    def __init__(self, dt, q):
        self.F, self.Q = motion_model(dt, q)
        self.chol = np.linalg.cholesky(self.Q)

    def function(self, state, rng):
        return self.F @ state + self.chol @ rng.standard_normal(4)


@dataclass(frozen=True)
class GroundTruth:
    """One simulated target."""

    label: str
    model: TransitionModel
    states: list = field(default_factory=list, compare=False, repr=False)

    def step(self, rng):
        self.states.append(self.model.function(self.states[-1], rng))

    @property
    def position(self):
        return self.states[-1][[0, 2]]


@dataclass(eq=False)
class Track:
    mean: np.ndarray
    cov: np.ndarray
    born: int
    misses: int = 0
    hits: int = 1
    history: list = field(default_factory=list)

    @property
    def position(self):
        return self.mean[[0, 2]]


def motion_model(dt, q):
    block_f = np.array([[1.0, dt], [0.0, 1.0]])
    block_q = q ** 2 * np.array([[dt ** 3 / 3, dt ** 2 / 2], [dt ** 2 / 2, dt]])
    F = np.kron(np.eye(2), block_f)
    Q = np.kron(np.eye(2), block_q)
    return F, Q


class Simulator:
    def __init__(self, cfg: Config, rng: np.random.Generator):
        self.cfg = cfg
        self.rng = rng
        self.model = TransitionModel(F_STEP, PROCESS_STD)
        self.active = set()
        self.born = 0
        for _ in range(cfg.targets):
            self.birth()

    def birth(self):
        pos = self.rng.uniform(-self.cfg.area / 3, self.cfg.area / 3, 2)
        vel = self.rng.normal(0, 1.2, 2)
        start = np.array([pos[0], vel[0], pos[1], vel[1]])
        self.active.add(GroundTruth(f"T{self.born:03d}", self.model, [start]))
        self.born += 1

    def scan(self):
        detections, ended = [], []
        for target in self.active:  # cause
            target.step(self.rng)
            if self.rng.random() < self.cfg.detection:
                detections.append(target.position + self.rng.normal(0, MEAS_STD, 2))
            if self.rng.random() < self.cfg.death:
                ended.append(target)
        self.active.difference_update(ended)
        for _ in range(self.rng.poisson(self.cfg.death * self.cfg.targets)):
            self.birth()
        n_clutter = self.rng.poisson(self.cfg.clutter)
        clutter = self.rng.uniform(-self.cfg.area, self.cfg.area, (n_clutter, 2))
        detections.extend(clutter)
        return np.array(detections).reshape(-1, 2)

    def truth(self):
        return {t.label: t.position.copy() for t in self.active}


class Tracker:
    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.F, self.Q = motion_model(F_STEP, PROCESS_STD * 1.5)
        self.H = np.array([[1.0, 0, 0, 0], [0, 0, 1.0, 0]])
        self.R = np.eye(2) * MEAS_STD ** 2
        self.tracks = []
        self.finished = []

    def predict(self):
        for trk in self.tracks:
            trk.mean = self.F @ trk.mean
            trk.cov = self.F @ trk.cov @ self.F.T + self.Q

    def associate(self, dets):
        pairs = []
        for ti, trk in enumerate(self.tracks):
            S = self.H @ trk.cov @ self.H.T + self.R
            S_inv = np.linalg.inv(S)
            diff = dets - self.H @ trk.mean
            d2 = np.einsum("ij,jk,ik->i", diff, S_inv, diff)
            for di in np.flatnonzero(d2 < self.cfg.gate):
                pairs.append((d2[di], ti, di))
        pairs.sort()
        used_t, used_d, match = set(), set(), {}
        for _, ti, di in pairs:
            if ti in used_t or di in used_d:
                continue
            used_t.add(ti)
            used_d.add(di)
            match[ti] = di
        return match

    def update(self, k, dets):
        self.predict()
        match = self.associate(dets)
        for ti, trk in enumerate(self.tracks):
            if ti in match:
                S = self.H @ trk.cov @ self.H.T + self.R
                gain = trk.cov @ self.H.T @ np.linalg.inv(S)
                trk.mean = trk.mean + gain @ (dets[match[ti]] - self.H @ trk.mean)
                trk.cov = (np.eye(4) - gain @ self.H) @ trk.cov
                trk.hits += 1
                trk.misses = 0
            else:
                trk.misses += 1
            trk.history.append((k, *trk.position))
        taken = set(match.values())
        for di in range(len(dets)):
            if di not in taken:
                mean = np.array([dets[di, 0], 0.0, dets[di, 1], 0.0])
                self.tracks.append(Track(mean, np.diag([16.0, 4.0, 16.0, 4.0]), born=k))
        keep = []
        for trk in self.tracks:
            limit = self.cfg.delete_after if trk.hits > 3 else 1
            if trk.misses >= limit:
                if trk.hits > 3:
                    self.finished.append(trk)
            else:
                keep.append(trk)
        self.tracks = keep

    def confirmed(self):
        return [t for t in self.tracks if t.hits > 3]


def scan_error(truth, tracks, cutoff=25.0):
    if not tracks:
        return cutoff
    pos = np.array([t.position for t in tracks])
    if not truth:
        return 0.5 * len(tracks)
    dist = [min(cutoff, float(np.min(np.linalg.norm(pos - p, axis=1)))) for _, p in sorted(truth.items())]
    return float(np.mean(dist)) + 0.5 * abs(len(tracks) - len(truth))


def parse_args():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--seed", type=int, default=Config.seed)
    ap.add_argument("--targets", type=int, default=Config.targets)
    ap.add_argument("--scans", type=int, default=Config.scans)
    ap.add_argument("--out", type=Path, default=Config.out)
    args = ap.parse_args()
    return Config(seed=args.seed, targets=args.targets, scans=args.scans, out=args.out)


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    cfg = parse_args()
    np.random.seed(cfg.seed)
    rng = np.random.default_rng(cfg.seed)
    cfg.out.mkdir(parents=True, exist_ok=True)
    sim, tracker = Simulator(cfg, rng), Tracker(cfg)
    started = time.time()
    errors = []
    for k in range(cfg.scans):
        dets = sim.scan()
        tracker.update(k, dets)
        errors.append(scan_error(sim.truth(), tracker.confirmed()))
        if k % 200 == 0:
            log.info("scan %3d: %d detections, %d tracks, error %.3f", k, len(dets), len(tracker.tracks), errors[-1])

    with open(cfg.out / "errors.csv", "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["scan", "error"])
        w.writerows((i, f"{e:.6f}") for i, e in enumerate(errors))
    tracks = tracker.finished + tracker.confirmed()
    with open(cfg.out / "tracks.csv", "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["track", "scan", "x", "y"])
        for i, trk in enumerate(tracks):
            w.writerows((i, k, f"{x:.3f}", f"{y:.3f}") for k, x, y in trk.history)
    summary = {
        "tracks": len(tracks),
        "mean_error": round(float(np.mean(errors)), 5),
        "final_error": round(errors[-1], 5),
        "mean_length": round(float(np.mean([len(t.history) for t in tracks])), 3),
    }
    (cfg.out / "summary.json").write_text(json.dumps(summary, indent=2))
    log.info("done in %.2fs", time.time() - started)
    print("summary:", json.dumps(summary))


if __name__ == "__main__":
    main()
