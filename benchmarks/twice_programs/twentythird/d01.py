"""Tabular Q-learning on CartPole with a discretised state space.

The agent is trained for a fixed number of episodes, evaluated greedily now and
then, and the learning curve and the final table are written to the run folder.
A summary of the run goes to stdout.

Modelled on: https://harald.co/2019/07/30/reproducibility-issues-using-openai-gym/
"""
import csv
import json
import logging
import random
from dataclasses import asdict, dataclass

import gymnasium as gym
import numpy as np

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("cartpole-q")


@dataclass
class Config:
    env_id: str = "CartPole-v1"
    seed: int = 0
    episodes: int = 500
    max_steps: int = 200
    alpha: float = 0.15
    gamma: float = 0.99
    epsilon_start: float = 1.0
    epsilon_end: float = 0.05
    epsilon_decay: float = 0.994
    eval_every: int = 100
    eval_episodes: int = 8


class Discretiser:
    """Maps the four continuous observations to one table index."""

    def __init__(self):
        self.edges = [
            np.linspace(-2.4, 2.4, 4)[1:-1],
            np.linspace(-2.5, 2.5, 4)[1:-1],
            np.linspace(-0.21, 0.21, 9)[1:-1],
            np.linspace(-2.5, 2.5, 9)[1:-1],
        ]
        self.shape = tuple(len(e) + 1 for e in self.edges)

    @property
    def size(self):
        return int(np.prod(self.shape))

    def __call__(self, obs):
        cell = [int(np.searchsorted(e, x)) for e, x in zip(self.edges, obs)]
        return int(np.ravel_multi_index(cell, self.shape))


class QAgent:
    def __init__(self, env, cfg):
        self.env = env
        self.cfg = cfg
        self.disc = Discretiser()
        self.table = np.zeros((self.disc.size, env.action_space.n))
        self.visits = np.zeros(self.disc.size, dtype=int)
        self.epsilon = cfg.epsilon_start

    def greedy(self, state):
        return int(np.argmax(self.table[state]))

    def act(self, state):
        if random.random() < self.epsilon:
            return int(self.env.action_space.sample())  # cause
        return self.greedy(state)

    def learn(self, state, action, reward, nxt, terminal):
        target = reward
        if not terminal:
            target += self.cfg.gamma * self.table[nxt].max()
        self.table[state, action] += self.cfg.alpha * (target - self.table[state, action])
        self.visits[state] += 1

    def end_episode(self):
        self.epsilon = max(self.cfg.epsilon_end, self.epsilon * self.cfg.epsilon_decay)


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)


def run_episode(env, agent, cfg, episode):
    obs, _ = env.reset(seed=cfg.seed + 1000 + episode)
    state = agent.disc(obs)
    total = 0.0
    for _ in range(cfg.max_steps):
        action = agent.act(state)
        obs, reward, terminated, truncated, _ = env.step(action)
        nxt = agent.disc(obs)
        agent.learn(state, action, -10.0 if terminated else reward, nxt, terminated)
        state = nxt
        total += reward
        if terminated or truncated:
            break
    agent.end_episode()
    return total


def evaluate(agent, cfg):
    env = gym.make(cfg.env_id)
    scores = []
    for k in range(cfg.eval_episodes):
        obs, _ = env.reset(seed=90_000 + k)
        score = 0.0
        for _ in range(cfg.max_steps):
            obs, reward, terminated, truncated, _ = env.step(agent.greedy(agent.disc(obs)))
            score += reward
            if terminated or truncated:
                break
        scores.append(score)
    env.close()
    return float(np.mean(scores))


def train(cfg):
    seed_everything(cfg.seed)
    env = gym.make(cfg.env_id)
    agent = QAgent(env, cfg)
    curve, evals = [], []
    for episode in range(cfg.episodes):
        curve.append(run_episode(env, agent, cfg, episode))
        if (episode + 1) % cfg.eval_every == 0:
            score = evaluate(agent, cfg)
            evals.append((episode + 1, score))
            log.info("episode %d: mean of last 50 %.1f, greedy %.1f, epsilon %.3f",
                     episode + 1, np.mean(curve[-50:]), score, agent.epsilon)
    env.close()
    return agent, curve, evals


def write_results(agent, curve, evals, cfg):
    with open("curve.csv", "w", newline="") as fh:
        out = csv.writer(fh)
        out.writerow(["episode", "return"])
        out.writerows(enumerate(curve, 1))
    with open("summary.json", "w") as fh:
        json.dump({"config": asdict(cfg), "evals": evals,
                   "states_seen": int((agent.visits > 0).sum())}, fh, indent=2)
    np.savetxt("q_table.txt", agent.table, fmt="%.6f")


def main():
    cfg = Config()
    agent, curve, evals = train(cfg)
    write_results(agent, curve, evals, cfg)
    print("episodes:", cfg.episodes)
    print("steps in all:", int(sum(curve)))
    for episode, score in evals:
        print(f"  greedy return after {episode:4d}: {score:7.2f}")
    print("states seen:", int((agent.visits > 0).sum()), "of", agent.disc.size)
    print("table sum: %.6f" % agent.table.sum())


if __name__ == "__main__":
    main()
