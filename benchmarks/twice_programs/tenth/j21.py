"""Modelled on https://github.com/dstl/Stone-Soup/issues/1237

Simulates a radar on a moving platform that observes a dense swarm of targets, tracks them with Kalman filters and scores the tracks.
"""
import argparse
import csv
import json
import logging
import math
import time
from dataclasses import dataclass, field

import numpy as np

log = logging.getLogger("radar")


@dataclass(frozen=True)
class ScenarioConfig:
    seed: int = 1991
    n_targets: int = 2500
    n_steps: int = 12
    dt: float = 1.0
    area: float = 20_000.0
    speed: float = 35.0
    accel_std: float = 1.5
    range_std: float = 12.0
    bearing_std: float = 0.0025
    p_detect: float = 0.92
    max_range: float = 14_000.0


@dataclass(eq=False)
class GroundTruthPath:
    name: str
    group: str
    state: np.ndarray
    history: list = field(default_factory=list)

    def step(self, f, noise):
        self.state = f @ self.state + noise
        self.history.append(self.state[[0, 2]].copy())


@dataclass(eq=False)
class Detection:
    truth_name: str
    rng: float
    bearing: float
    step: int


@dataclass(eq=False)
class Track:
    name: str
    mean: np.ndarray
    cov: np.ndarray
    updates: int = 0
    errors: list = field(default_factory=list)


class Platform:
    def __init__(self, position, velocity):
        self.position = np.asarray(position, dtype=float)
        self.velocity = np.asarray(velocity, dtype=float)

    def move(self, dt):
        self.position = self.position + self.velocity * dt


class RangeBearingRadar:
    def __init__(self, platform, cfg):
        self.platform = platform
        self.cfg = cfg
        self.random_state = np.random.RandomState(cfg.seed)

    def measure(self, truths, step):
        detections = []
        px, py = self.platform.position
        for truth in truths:  # cause
            dx, dy = truth.state[0] - px, truth.state[2] - py
            dist = math.hypot(dx, dy)
            if dist > self.cfg.max_range:
                continue
            u, e1, e2 = self.random_state.rand(), self.random_state.randn(), self.random_state.randn()
            if u > self.cfg.p_detect:
                continue
            detections.append(Detection(truth.name, dist + e1 * self.cfg.range_std, math.atan2(dy, dx) + e2 * self.cfg.bearing_std, step))
        return detections


def transition(dt):
    return np.array([[1, dt, 0, 0], [0, 1, 0, 0], [0, 0, 1, dt], [0, 0, 0, 1]], dtype=float)


def process_noise(dt, q):
    b = np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]]) * q**2
    out = np.zeros((4, 4))
    out[:2, :2] = b
    out[2:, 2:] = b
    return out


def make_truths(cfg, rng):
    groups = ["fishing", "cargo", "drone"]
    truths = set()
    for i in range(cfg.n_targets):
        ang = rng.uniform(0, 2 * math.pi)
        spd = cfg.speed * rng.uniform(0.3, 1.2)
        x, y = rng.uniform(-cfg.area / 2, cfg.area / 2, 2)
        state = np.array([x, spd * math.cos(ang), y, spd * math.sin(ang)])
        truths.add(GroundTruthPath(f"T{i:05d}", groups[i % 3], state))  # cause
    return truths


class Tracker:
    def __init__(self, cfg):
        self.cfg = cfg
        self.f = transition(cfg.dt)
        self.q = process_noise(cfg.dt, cfg.accel_std)
        self.h = np.array([[1.0, 0, 0, 0], [0, 0, 1.0, 0]])
        self.tracks = {}

    def to_cartesian(self, det, origin):
        c, s = math.cos(det.bearing), math.sin(det.bearing)
        z = origin + det.rng * np.array([c, s])
        rot = np.array([[c, -s], [s, c]])
        r = rot @ np.diag([self.cfg.range_std**2, (det.rng * self.cfg.bearing_std) ** 2]) @ rot.T
        return z, r

    def process(self, detections, origin):
        for track in self.tracks.values():
            track.mean = self.f @ track.mean
            track.cov = self.f @ track.cov @ self.f.T + self.q
        for det in detections:
            z, r = self.to_cartesian(det, origin)
            track = self.tracks.get(det.truth_name)
            if track is None:
                mean = np.array([z[0], 0.0, z[1], 0.0])
                cov = np.diag([r[0, 0], 900.0, r[1, 1], 900.0])
                self.tracks[det.truth_name] = Track(det.truth_name, mean, cov, 1)
                continue
            s = self.h @ track.cov @ self.h.T + r
            k = track.cov @ self.h.T @ np.linalg.inv(s)
            track.mean = track.mean + k @ (z - self.h @ track.mean)
            track.cov = (np.eye(4) - k @ self.h) @ track.cov
            track.updates += 1


def run(cfg):
    rng = np.random.default_rng(cfg.seed)
    truths = make_truths(cfg, rng)
    ordered = sorted(truths, key=lambda t: t.name)
    platform = Platform([0.0, 0.0], [20.0, 5.0])
    radar = RangeBearingRadar(platform, cfg)
    tracker = Tracker(cfg)
    f = transition(cfg.dt)
    per_step = []
    for step in range(cfg.n_steps):
        for truth in ordered:
            a = rng.normal(0, cfg.accel_std, 2)
            truth.step(f, np.array([0.5 * a[0], a[0], 0.5 * a[1], a[1]]) * cfg.dt)
        platform.move(cfg.dt)
        detections = radar.measure(truths, step)
        tracker.process(detections, platform.position)
        errs = []
        for truth in ordered:
            track = tracker.tracks.get(truth.name)
            if track is not None:
                err = math.hypot(track.mean[0] - truth.state[0], track.mean[2] - truth.state[2])
                track.errors.append(err)
                errs.append(err)
        row = {"step": step, "detections": len(detections), "tracks": len(tracker.tracks), "rmse": float(np.sqrt(np.mean(np.square(errs))))}
        per_step.append(row)
        log.info("step %d: %d detections", step, len(detections))
    return ordered, tracker, per_step


def group_scores(truths, tracker):
    table = {}
    for truth in truths:
        track = tracker.tracks.get(truth.name)
        if track is None:
            continue
        table.setdefault(truth.group, []).append((track.errors[-1], track.updates))
    return {
        g: {"n": len(v), "final_error": float(np.mean([e for e, _ in v])), "updates": float(np.mean([u for _, u in v]))}
        for g, v in sorted(table.items())
    }


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--targets", type=int, default=ScenarioConfig.n_targets)
    ap.add_argument("--steps", type=int, default=ScenarioConfig.n_steps)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    cfg = ScenarioConfig(n_targets=args.targets, n_steps=args.steps)
    t0 = time.time()
    truths, tracker, per_step = run(cfg)
    for row in per_step:
        print(f"step {row['step']:>2} detections {row['detections']:>5} tracks {row['tracks']:>5} rmse {row['rmse']:.4f}")
    scores = group_scores(truths, tracker)
    for g, s in scores.items():
        print(f"{g:<8} n={s['n']} final_error={s['final_error']:.4f} updates={s['updates']:.3f}")
    with open("metrics.json", "w") as fh:
        json.dump({"steps": per_step, "groups": scores}, fh, indent=2)
    with open("tracks.csv", "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["track", "x", "y", "updates", "error"])
        for name in sorted(tracker.tracks):
            t = tracker.tracks[name]
            w.writerow([name, f"{t.mean[0]:.3f}", f"{t.mean[2]:.3f}", t.updates, f"{t.errors[-1]:.4f}"])
    log.info("simulated in %.1fs", time.time() - t0)


if __name__ == "__main__":
    main()
