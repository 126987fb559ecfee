"""Tabular learning of a steering controller against a simulator on its own thread.

Modelled on https://github.com/erlerobot/gym-gazebo/issues/53

The simulator integrates a differential-drive robot in a corridor; the
environment publishes a command, lets the simulation run for one control period
and reads the pose. Writes episodes.csv, qtable.csv and summary.json.
"""
import csv
import json
import logging
import math
import os
import sys
import threading
import time

import gymnasium as gym
import numpy as np
from gymnasium import spaces

SEED = 3
EPISODES = 120
MAX_STEPS = 40
LENGTH, HALF_WIDTH = 6.0, 0.5

log = logging.getLogger("corridor")


# ------------------------------------------------------------------- simulator
class CorridorWorld(threading.Thread):
    """Integrates the robot pose for as long as physics is not paused."""

    DT = 0.0005

    def __init__(self):
        super().__init__(name="physics", daemon=True)
        self.lock = threading.Lock()
        self.active = threading.Event()
        self.alive = True
        self.command = (0.0, 0.0)
        self.teleport(0.0, 0.0, 0.0)

    def teleport(self, x, y, heading):
        self.pose = [x, y, heading]
        self.speed, self.turn = 0.0, 0.0
        self.sim_time = 0.0

    def tick(self):
        """One integration step with first-order actuators and lateral slip."""
        v_cmd, w_cmd = self.command
        x, y, th = self.pose
        self.speed += (v_cmd - self.speed) * self.DT / 0.05
        self.turn += (w_cmd - self.turn) * self.DT / 0.03
        slip = 0.08 * self.turn * self.speed
        self.pose = [x + self.DT * (self.speed * math.cos(th) - slip * math.sin(th)),
                     y + self.DT * (self.speed * math.sin(th) + slip * math.cos(th)),
                     th + self.DT * self.turn]
        self.sim_time += self.DT

    def run(self):
        while self.alive:
            self.active.wait()
            with self.lock:
                if self.active.is_set():
                    self.tick()

    def unpause(self):
        self.active.set()

    def pause(self):
        with self.lock:
            self.active.clear()

    def advance(self, ticks):
        with self.lock:
            for _ in range(ticks):
                self.tick()

    def shutdown(self):
        self.alive = False
        self.active.set()
        self.join(timeout=2.0)


# ----------------------------------------------------------------- environment
class CorridorEnv(gym.Env):
    """Drive along a corridor without touching the walls."""

    TURNS = (-2.4, -0.8, 0.0, 0.8, 2.4)

    def __init__(self, world, period=0.0012):
        self.world = world
        self.period = period
        self.action_space = spaces.Discrete(len(self.TURNS))
        high = np.array([LENGTH + 1, 1.0, math.pi], dtype=np.float32)
        self.observation_space = spaces.Box(-high, high, dtype=np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        y = self.np_random.uniform(-0.2, 0.2)
        heading = self.np_random.uniform(-0.3, 0.3)
        self.world.teleport(0.0, y, heading)
        self.steps = 0
        self.last_x = 0.0
        return self._observe(), {}

    def _observe(self):
        return np.array(self.world.pose, dtype=np.float64)

    def step(self, action):
        self.world.command = (1.6, self.TURNS[int(action)])
        self.world.unpause()
        time.sleep(self.period)  # cause
        self.world.pause()
        obs = self._observe()
        self.steps += 1
        progress = obs[0] - self.last_x
        self.last_x = obs[0]
        crashed = abs(obs[1]) > HALF_WIDTH or abs(obs[2]) > 1.4
        done = obs[0] >= LENGTH
        reward = progress - 0.2 * abs(obs[1]) - (2.0 if crashed else 0.0) + (1.0 if done else 0.0)
        return obs, reward, crashed or done, self.steps >= MAX_STEPS, {"sim_time": self.world.sim_time}


# ----------------------------------------------------------------------- agent
class QAgent:
    def __init__(self, n_actions, rng, bins=(9, 9), lr=0.2, gamma=0.95):
        self.bins = bins
        self.q = np.zeros(bins + (n_actions,))
        self.rng, self.lr, self.gamma = rng, lr, gamma

    def index(self, obs):
        i = int(np.clip((obs[1] / HALF_WIDTH + 1) / 2 * self.bins[0], 0, self.bins[0] - 1))
        j = int(np.clip((obs[2] / 1.4 + 1) / 2 * self.bins[1], 0, self.bins[1] - 1))
        return i, j

    def act(self, obs, eps):
        if self.rng.random() < eps:
            return int(self.rng.integers(self.q.shape[-1]))
        return int(np.argmax(self.q[self.index(obs)]))

    def learn(self, obs, action, reward, nxt, terminal):
        target = reward if terminal else reward + self.gamma * self.q[self.index(nxt)].max()
        cell = self.index(obs) + (action,)
        self.q[cell] += self.lr * (target - self.q[cell])


def run_episode(env, agent, eps, seed):
    obs, _ = env.reset(seed=seed)
    total, info = 0.0, {}
    while True:
        action = agent.act(obs, eps)
        nxt, reward, terminated, truncated, info = env.step(action)
        agent.learn(obs, action, reward, nxt, terminated)
        total += reward
        obs = nxt
        if terminated or truncated:
            return total, env.steps, float(obs[0]), info


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, datefmt="%H:%M:%S",
                        format="%(asctime)s [%(name)s] %(message)s")
    np.random.seed(SEED)
    world = CorridorWorld()
    world.start()
    env = CorridorEnv(world)
    env.action_space.seed(SEED)
    agent = QAgent(env.action_space.n, np.random.default_rng(SEED))
    log.info("writing to %s", os.getcwd())
    rows = []
    t0 = time.perf_counter()
    for episode in range(EPISODES):
        eps = max(0.05, 0.5 * 0.97 ** episode)
        ret, steps, dist, info = run_episode(env, agent, eps, SEED * 1000 + episode)
        rows.append({"episode": episode, "return": ret, "steps": steps, "distance": dist,
                     "sim_time": info["sim_time"]})
        if episode % 20 == 19:
            last = rows[-20:]
            log.info("episode %3d return %.5f distance %.4f eps %.3f (%.1fs)", episode,
                     np.mean([r["return"] for r in last]), np.mean([r["distance"] for r in last]),
                     eps, time.perf_counter() - t0)
    world.shutdown()

    with open("episodes.csv", "w", newline="") as fh:
        writer = csv.DictWriter(fh, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    np.savetxt("qtable.csv", agent.q.reshape(-1, agent.q.shape[-1]), delimiter=",", fmt="%.10f")
    tail = rows[-10:]
    summary = {"mean_return": float(np.mean([r["return"] for r in tail])),
               "mean_distance": float(np.mean([r["distance"] for r in tail])),
               "q_sum": float(agent.q.sum())}
    with open("summary.json", "w") as fh:
        json.dump(summary, fh, indent=2)
    log.info("last ten episodes: return %.5f distance %.4f", summary["mean_return"], summary["mean_distance"])


if __name__ == "__main__":
    main()
