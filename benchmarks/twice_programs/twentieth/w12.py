"""Evolve a walking controller that follows a moving velocity target.

A planar spring-leg walker tracks a vector field of target velocities that
moves through the arena. A cross-entropy search tunes the controller gains and
the best gains are scored on a set of held-out fields.

Modelled on: https://github.com/stanfordnmbl/osim-rl/issues/209
"""
import json
import sys
import time

import numpy as np
import pandas as pd

SEED = 0
DT = 0.02
EPISODE_S = 6.0
ARENA = (20.0, 20.0)


class TargetField:
    """Target velocities that point at a sequence of waypoints.

    The field is a grid; a new waypoint is drawn when the old one is reached or
    its time is up.
    """

    def __init__(self, radius=0.6, dwell_s=3.0, speed=1.4):
        self.radius = radius
        self.dwell_s = dwell_s
        self.speed = speed
        self.rng = None

    def reset(self, seed=None, pose=(0.0, 0.0)):
        self.rng = np.random.default_rng(seed or None)  # cause
        self.reached = 0
        self.clock = 0.0
        self._next(np.asarray(pose, dtype=float))
        return self.local(pose)

    def _next(self, position):
        angle = self.rng.uniform(-np.pi, np.pi)
        distance = self.rng.uniform(1.5, 4.0)
        point = position + distance * np.array([np.cos(angle), np.sin(angle)])
        self.waypoint = np.clip(point, -np.array(ARENA) / 2, np.array(ARENA) / 2)
        self.clock = 0.0

    def local(self, position):
        """Target velocity at the position."""
        delta = self.waypoint - np.asarray(position)
        distance = np.hypot(*delta)
        return delta / (distance + 1e-9) * self.speed * min(1.0, distance / 0.8)

    def update(self, position):
        self.clock += DT
        hit = np.hypot(*(self.waypoint - position)) < self.radius
        if hit:
            self.reached += 1
        if hit or self.clock > self.dwell_s:
            self._next(np.asarray(position, dtype=float))
        return hit


class WalkerEnv:
    """A body on two compliant legs that is steered by two commands."""

    mass = 72.0
    drag = 18.0

    def __init__(self):
        self.field = TargetField()

    def reset(self, seed=None):
        self.position = np.zeros(2)
        self.velocity = np.zeros(2)
        self.heading = 0.0
        self.turn_rate = 0.0
        self.phase = 0.0
        self.time = 0.0
        self.effort = 0.0
        self.field.reset(seed=seed, pose=self.position)
        return self.observe()

    def observe(self):
        target = self.field.local(self.position)
        cos, sin = np.cos(self.heading), np.sin(self.heading)
        local = np.array([cos * target[0] + sin * target[1], -sin * target[0] + cos * target[1]])
        own = np.array([cos * self.velocity[0] + sin * self.velocity[1],
                        -sin * self.velocity[0] + cos * self.velocity[1]])
        return np.array([local[0], local[1], own[0], own[1], self.turn_rate,
                         np.sin(self.phase), np.cos(self.phase)])

    def step(self, action):
        push, turn = np.tanh(action)
        self.phase = (self.phase + 2 * np.pi * DT * (1.2 + 0.5 * np.hypot(*self.velocity))) % (2 * np.pi)
        gait = 0.6 + 0.4 * np.sin(self.phase) ** 2
        self.turn_rate += DT * (9.0 * turn - 4.0 * self.turn_rate)
        self.heading += DT * self.turn_rate
        forward = np.array([np.cos(self.heading), np.sin(self.heading)])
        lateral = np.array([-forward[1], forward[0]])
        force = 160.0 * gait * push * forward - self.drag * self.velocity
        force = force - 60.0 * (self.velocity @ lateral) * lateral
        self.velocity = self.velocity + DT * force / self.mass
        self.position = self.position + DT * self.velocity
        self.time += DT
        effort = push ** 2 + 0.4 * turn ** 2
        self.effort += DT * effort
        hit = self.field.update(self.position)
        error = self.velocity - self.field.local(self.position)
        reward = DT * (1.0 - 0.35 * float(error @ error) - 0.1 * effort) + 2.0 * hit
        return self.observe(), reward, self.time >= EPISODE_S


def controller(gains, obs):
    """Proportional controller with a gait-dependent feed-forward."""
    tx, ty, vx, vy, turn_rate, s, c = obs
    angle = np.arctan2(ty, tx)
    push = gains[0] * (tx - vx) + gains[1] * np.cos(angle) + gains[2] * s + gains[3]
    turn = gains[4] * angle + gains[5] * vy + gains[6] * turn_rate + gains[7] * c
    return np.array([push, turn])


def rollout(env, gains, seed):
    obs, total, done = env.reset(seed=seed), 0.0, False
    while not done:
        obs, reward, done = env.step(controller(gains, obs))
        total += reward
    return total, env.field.reached


def cross_entropy_search(env, seed, generations=7, population=14, elite=4):
    """Gains that do well on the training field; returns them with the history."""
    rng = np.random.default_rng(seed)
    mean = np.zeros(8)
    spread = np.full(8, 1.2)
    history = []
    for generation in range(generations):
        candidates = mean + spread * rng.normal(size=(population, 8))
        fitness = np.array([rollout(env, g, seed)[0] for g in candidates])
        best = np.argsort(-fitness, kind="stable")[:elite]
        mean = candidates[best].mean(0)
        spread = 0.85 * candidates[best].std(0) + 0.08
        history.append({"generation": generation, "best": float(fitness[best[0]]),
                        "mean": float(fitness.mean()), "spread": float(spread.mean())})
        print(f"generation {generation}: best {fitness[best[0]]:.6f}  mean {fitness.mean():.6f}",
              flush=True)
    return mean, history


def main():
    start = time.perf_counter()
    print(f"walker: {EPISODE_S:.0f} s episodes, seed {SEED}")
    env = WalkerEnv()
    gains, history = cross_entropy_search(env, SEED)
    print("gains: " + " ".join(f"{g:+.5f}" for g in gains))

    rows = []
    for field_seed in range(101, 116):
        score, reached = rollout(env, gains, field_seed)
        rows.append({"field": field_seed, "score": score, "reached": reached,
                     "effort": env.effort, "x": env.position[0], "y": env.position[1]})
    table = pd.DataFrame(rows)
    table.to_csv("held_out.csv", index=False)
    print(f"held-out fields: mean score {table['score'].mean():.6f}, "
          f"{int(table['reached'].sum())} targets reached")
    print(f"took {time.perf_counter() - start:.1f} s")

    np.save("gains.npy", gains)
    with open("search.json", "w") as fh:
        json.dump({"seed": SEED, "history": history, "gains": gains.tolist(),
                   "held_out_mean": float(table["score"].mean())}, fh, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
