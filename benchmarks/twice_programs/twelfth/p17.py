"""Tabular Q-learning on FrozenLake with an epsilon-greedy policy.

Modelled on https://github.com/openai/gym/issues/681
The user seeded the FrozenLake environment and expected the random actions to follow that seed.
"""
import argparse
import csv
import json
import logging
import random
import time
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path

import gymnasium as gym
import numpy as np

log = logging.getLogger("frozenlake")
ARROWS = "<v>^"


@dataclass
class Config:
    env_id: str = "FrozenLake-v1"
    map_name: str = "4x4"
    slippery: bool = True
    episodes: int = 1500
    eval_episodes: int = 100
    max_steps: int = 60
    alpha: float = 0.2
    gamma: float = 0.97
    eps_start: float = 1.0
    eps_end: float = 0.05
    eps_decay: float = 0.997
    seed: int = 3
    run_dir: str = "run"


def set_seeds(seed):
    random.seed(seed)
    np.random.seed(seed)


def make_env(cfg):
    return gym.make(
        cfg.env_id,
        map_name=cfg.map_name,
        is_slippery=cfg.slippery,
        max_episode_steps=cfg.max_steps,
    )


class QTable:
    def __init__(self, n_states, n_actions, alpha, gamma):
        self.q = np.zeros((n_states, n_actions))
        self.visits = np.zeros((n_states, n_actions), dtype=int)
        self.alpha, self.gamma = alpha, gamma

    def greedy(self, state):
        best = np.flatnonzero(self.q[state] == self.q[state].max())
        return int(best[0])

    def update(self, s, a, r, s2, terminal):
        target = r if terminal else r + self.gamma * self.q[s2].max()
        self.q[s, a] += self.alpha * (target - self.q[s, a])
        self.visits[s, a] += 1


class EpsilonSchedule:
    def __init__(self, cfg):
        self.value, self.end, self.decay = cfg.eps_start, cfg.eps_end, cfg.eps_decay

    def step(self):
        self.value = max(self.end, self.value * self.decay)


def choose(env, table, state, epsilon):
    if random.random() < epsilon:
        return int(env.action_space.sample())  # cause
    return table.greedy(state)


def train(cfg, env):
    table = QTable(env.observation_space.n, env.action_space.n, cfg.alpha, cfg.gamma)
    eps = EpsilonSchedule(cfg)
    recent = deque(maxlen=200)
    curve = []
    started = time.time()
    for episode in range(cfg.episodes):
        state, _ = env.reset(seed=cfg.seed if episode == 0 else None)
        total, done, steps = 0.0, False, 0
        while not done:
            action = choose(env, table, state, eps.value)
            nxt, reward, terminated, truncated, _ = env.step(action)
            table.update(state, action, reward, nxt, terminated)
            state, done = nxt, terminated or truncated
            total += reward
            steps += 1
        eps.step()
        recent.append(total)
        if (episode + 1) % 250 == 0:
            curve.append((episode + 1, float(np.mean(recent)), eps.value, steps))
            log.info("episode %d (%.0f eps/s)", episode + 1,
                     (episode + 1) / (time.time() - started))
    return table, curve


def evaluate(cfg, table):
    env = make_env(cfg)
    wins, lengths = 0, []
    for k in range(cfg.eval_episodes):
        state, _ = env.reset(seed=10_000 + k)
        done, n = False, 0
        while not done:
            state, reward, term, trunc, _ = env.step(table.greedy(state))
            done = term or trunc
            n += 1
        wins += reward > 0
        lengths.append(n)
    env.close()
    return wins / cfg.eval_episodes, float(np.mean(lengths))


def draw_policy(env, table):
    desc = env.unwrapped.desc.astype(str)
    side = desc.shape[1]
    lines = []
    for r in range(desc.shape[0]):
        cells = []
        for c in range(side):
            ch = desc[r, c]
            cells.append(ARROWS[table.greedy(r * side + c)] if ch in "SF" else ch)
        lines.append(" ".join(cells))
    return "\n".join(lines)


def save_run(cfg, table, curve, score):
    run = Path(cfg.run_dir)
    run.mkdir(exist_ok=True)
    np.savetxt(run / "q.csv", table.q, delimiter=",", fmt="%.8f")
    np.savetxt(run / "visits.csv", table.visits, delimiter=",", fmt="%d")
    with open(run / "curve.csv", "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["episode", "mean_return", "epsilon", "last_steps"])
        w.writerows(curve)
    (run / "summary.json").write_text(
        json.dumps({"config": asdict(cfg), "win_rate": score[0]}, indent=1)
    )


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--episodes", type=int, default=Config.episodes)
    ap.add_argument("--seed", type=int, default=Config.seed)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    cfg = Config(episodes=args.episodes, seed=args.seed)
    set_seeds(cfg.seed)
    env = make_env(cfg)
    table, curve = train(cfg, env)
    score = evaluate(cfg, table)
    for episode, mean, eps, steps in curve:
        print(f"{episode:5d} return {mean:.3f} eps {eps:.3f} steps {steps}")
    print(draw_policy(env, table))
    print(f"start value {table.q[0].max():.6f}")
    print(f"win rate {score[0]:.3f}, mean length {score[1]:.2f}")
    save_run(cfg, table, curve, score)
    env.close()


if __name__ == "__main__":
    main()
