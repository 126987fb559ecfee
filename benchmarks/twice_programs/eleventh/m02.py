"""Tabular Q-learning on the Taxi environment.

Modelled on https://github.com/Farama-Foundation/Gymnasium/issues/185
Trains an epsilon-greedy agent with a warm-up phase and reports greedy returns.
"""
import argparse
import csv
import json
import logging
import random
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import gymnasium as gym
import numpy as np

logger = logging.getLogger("taxi_q")


@dataclass
class Config:
    env_id: str = "Taxi-v4"
    seed: int = 10
    episodes: int = 600
    warmup_steps: int = 500
    eval_episodes: int = 40
    eval_every: int = 150
    alpha: float = 0.4
    gamma: float = 0.97
    eps_start: float = 1.0
    eps_end: float = 0.05
    eps_decay: float = 0.992
    replay_capacity: int = 4000
    replay_batch: int = 16


class ReplayMemory:
    def __init__(self, capacity):
        self.capacity = capacity
        self.items = []
        self.cursor = 0

    def push(self, transition):
        if len(self.items) < self.capacity:
            self.items.append(transition)
        else:
            self.items[self.cursor] = transition
        self.cursor = (self.cursor + 1) % self.capacity

    def sample(self, k):
        return random.sample(self.items, min(k, len(self.items)))

    def __len__(self):
        return len(self.items)


class QAgent:
    def __init__(self, n_states, n_actions, cfg):
        self.q = np.zeros((n_states, n_actions))
        self.cfg = cfg
        self.epsilon = cfg.eps_start

    def greedy(self, state):
        return int(np.argmax(self.q[state]))

    def act(self, state, env):
        if np.random.random() < self.epsilon:
            return int(env.action_space.sample())  # cause
        return self.greedy(state)

    def learn(self, transition):
        state, action, reward, nxt, done = transition
        target = reward if done else reward + self.cfg.gamma * self.q[nxt].max()
        error = target - self.q[state, action]
        self.q[state, action] += self.cfg.alpha * error
        return abs(error)

    def decay(self):
        self.epsilon = max(self.cfg.eps_end, self.epsilon * self.cfg.eps_decay)


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)


def make_env(cfg):
    return gym.make(cfg.env_id)


def warm_up(agent, env, memory, cfg):
    state, _ = env.reset(seed=cfg.seed)
    for _ in range(cfg.warmup_steps):
        action = agent.act(state, env)
        nxt, reward, terminated, truncated, _ = env.step(action)
        memory.push((state, action, float(reward), nxt, terminated))
        state = nxt
        if terminated or truncated:
            state, _ = env.reset()
    logger.info("replay memory holds %d transitions", len(memory))


def run_episode(agent, env, memory, cfg):
    state, _ = env.reset()
    total, steps, error_sum = 0.0, 0, 0.0
    while True:
        action = agent.act(state, env)
        nxt, reward, terminated, truncated, _ = env.step(action)
        transition = (state, action, float(reward), nxt, terminated)
        memory.push(transition)
        error_sum += agent.learn(transition)
        state = nxt
        total += float(reward)
        steps += 1
        if terminated or truncated:
            break
    for transition in memory.sample(cfg.replay_batch):
        agent.learn(transition)
    agent.decay()
    return total, steps, error_sum / steps


def evaluate(agent, cfg):
    env = make_env(cfg)
    returns = []
    for k in range(cfg.eval_episodes):
        state, _ = env.reset(seed=50_000 + k)
        total = 0.0
        while True:
            state, reward, terminated, truncated, _ = env.step(agent.greedy(state))
            total += float(reward)
            if terminated or truncated:
                break
        returns.append(total)
    env.close()
    return float(np.mean(returns)), float(np.std(returns))


def train(cfg, out):
    env = make_env(cfg)
    agent = QAgent(env.observation_space.n, env.action_space.n, cfg)
    memory = ReplayMemory(cfg.replay_capacity)
    warm_up(agent, env, memory, cfg)
    evaluations = []
    with open(out / "episodes.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["episode", "return", "steps", "td_error", "epsilon"])
        started = time.perf_counter()
        for episode in range(1, cfg.episodes + 1):
            total, steps, err = run_episode(agent, env, memory, cfg)
            writer.writerow([episode, total, steps, f"{err:.5f}", f"{agent.epsilon:.4f}"])
            if episode % cfg.eval_every == 0:
                mean, std = evaluate(agent, cfg)
                evaluations.append({"episode": episode, "mean": mean, "std": std})
                logger.info("episode %d eval %.2f +/- %.2f (%.1fs)", episode, mean, std,
                            time.perf_counter() - started)
    env.close()
    return agent, evaluations


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=Config.seed)
    parser.add_argument("--episodes", type=int, default=Config.episodes)
    parser.add_argument("--out", default="taxi_run")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")

    cfg = Config(seed=args.seed, episodes=args.episodes)
    seed_everything(cfg.seed)
    out = Path(args.out)
    out.mkdir(exist_ok=True)
    (out / "config.json").write_text(json.dumps(asdict(cfg), indent=1))

    agent, evaluations = train(cfg, out)
    np.save(out / "q_table.npy", agent.q)
    visited = int((np.abs(agent.q).sum(axis=1) > 0).sum())
    summary = {"evaluations": evaluations, "states_visited": visited,
               "q_norm": float(np.linalg.norm(agent.q))}
    (out / "summary.json").write_text(json.dumps(summary, indent=1))
    for row in evaluations:
        print(f"episode {row['episode']:4d}  return {row['mean']:8.2f}  std {row['std']:7.2f}")
    print(f"states visited {visited}, |Q| = {summary['q_norm']:.4f}")


if __name__ == "__main__":
    main()
