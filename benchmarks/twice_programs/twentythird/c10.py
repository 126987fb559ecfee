"""Rigid spheres falling into a box: a demo scene for a position-based engine.

Runs a headless version of the scene: spheres are dropped in layers onto a floor
with a peg grid, collisions are solved by iterated position corrections, and the
bins in which they come to rest are counted. The engine state is recorded at
fixed numbers of frames.

Modelled on: https://github.com/felipeek/raw-physics/issues/4
"""
import argparse
import csv
import json
import sys
import time

import numpy as np

GRAVITY = np.array([0.0, -9.81])
BOX_WIDTH = 4.0
MAX_DT = 1.0 / 30.0


class FrameClock:
    """Measures frames and keeps the statistics shown in the window title."""

    def __init__(self):
        self.last = time.perf_counter()
        self.frames = 0
        self.total = 0.0

    def tick(self):
        now = time.perf_counter()  # cause
        delta = now - self.last
        self.last = now
        self.frames += 1
        self.total += delta
        return min(delta, MAX_DT)

    def fps(self):
        return self.frames / self.total if self.total else 0.0


class PegField:
    """Fixed round obstacles in staggered rows."""

    def __init__(self, rows, per_row, radius):
        self.radius = radius
        positions = []
        for r in range(rows):
            shift = 0.5 * (r % 2)
            for c in range(per_row):
                positions.append(((c + 0.25 + shift) * BOX_WIDTH / per_row, 1.2 + 0.35 * r))
        self.positions = np.array(positions)


class World:
    def __init__(self, n, radius, seed, iterations=3):
        rng = np.random.default_rng(seed)
        layer = np.arange(n) // 12
        column = np.arange(n) % 12
        x = 0.5 + column * (BOX_WIDTH - 1.0) / 11 + rng.normal(0, 0.01, size=n)
        self.pos = np.column_stack([x, 3.4 + 0.35 * layer])
        self.vel = np.zeros((n, 2))
        self.radius = radius
        self.iterations = iterations
        self.pegs = PegField(rows=5, per_row=9, radius=0.06)

    def step(self, dt):
        """One step of extended position-based dynamics."""
        previous = self.pos.copy()
        self.vel += dt * GRAVITY
        self.pos = self.pos + dt * self.vel
        for _ in range(self.iterations):
            self._solve_spheres()
            self._solve_pegs()
            self._solve_walls()
        self.vel = 0.999 * (self.pos - previous) / max(dt, 1e-9)
        speed = np.linalg.norm(self.vel, axis=1, keepdims=True)
        self.vel *= np.minimum(1.0, 8.0 / np.maximum(speed, 1e-12))

    def _solve_spheres(self):
        delta = self.pos[:, None, :] - self.pos[None, :, :]
        distance = np.sqrt((delta ** 2).sum(-1)) + 1e-12
        overlap = np.maximum(0.0, 2 * self.radius - distance)
        np.fill_diagonal(overlap, 0.0)
        self.pos = self.pos + 0.25 * ((overlap / distance)[:, :, None] * delta).sum(axis=1)

    def _solve_pegs(self):
        delta = self.pos[:, None, :] - self.pegs.positions[None, :, :]
        distance = np.sqrt((delta ** 2).sum(-1)) + 1e-12
        overlap = np.maximum(0.0, self.radius + self.pegs.radius - distance)
        self.pos = self.pos + ((overlap / distance)[:, :, None] * delta).sum(axis=1)

    def _solve_walls(self):
        self.pos[:, 0] = np.clip(self.pos[:, 0], self.radius, BOX_WIDTH - self.radius)
        self.pos[:, 1] = np.maximum(self.pos[:, 1], self.radius)

    def energy(self):
        return float(0.5 * (self.vel ** 2).sum() + 9.81 * self.pos[:, 1].sum())


class Recorder:
    def __init__(self, path, every):
        self.every = every
        self.rows = []
        self.path = path

    def record(self, frame, world):
        if frame % self.every == 0:
            self.rows.append((frame, world.energy(), world.pos[:, 1].mean(), world.pos[:, 1].max()))

    def close(self):
        with open(self.path, "w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(["frame", "energy", "mean_height", "top"])
            writer.writerows([f, f"{e:.6f}", f"{m:.6f}", f"{t:.6f}"] for f, e, m, t in self.rows)


def count_bins(world, n_bins=8):
    edges = np.linspace(0, BOX_WIDTH, n_bins + 1)
    return np.histogram(world.pos[:, 0], bins=edges)[0].tolist()


def run(args):
    world = World(args.spheres, radius=0.08, seed=args.seed)
    recorder = Recorder("trace.csv", every=100)
    clock = FrameClock()
    for frame in range(args.frames):
        dt = clock.tick()  # cause
        world.step(dt)
        recorder.record(frame, world)
        if frame % 400 == 0:
            print(f"frame {frame} ({clock.fps():.0f} fps)", file=sys.stderr)
    recorder.close()
    return world


def main():
    parser = argparse.ArgumentParser(description="sphere drop demo")
    parser.add_argument("--spheres", type=int, default=72)
    parser.add_argument("--frames", type=int, default=1300)
    parser.add_argument("--seed", type=int, default=4)
    args = parser.parse_args()
    world = run(args)
    bins = count_bins(world)
    with open("final.json", "w") as out:
        json.dump({"bins": bins, "positions": np.round(world.pos, 5).tolist()}, out)
    print("spheres per bin:", bins)
    print(f"mean height {world.pos[:, 1].mean():.5f}, energy {world.energy():.4f}")


if __name__ == "__main__":
    main()
