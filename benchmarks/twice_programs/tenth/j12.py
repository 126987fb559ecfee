"""Modelled on https://github.com/openai/gym/issues/428

Q-learning on a gym environment: random.seed is set, the learning curves still
differ.
"""
import argparse
import collections
import json
import os
import random
import time

import gymnasium as gym
import numpy as np


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--env", default="CartPole-v1")
    p.add_argument("--seed", type=int, default=1995)
    p.add_argument("--episodes", type=int, default=260)
    p.add_argument("--bins", type=int, nargs=4, default=[3, 5, 8, 8])
    p.add_argument("--gamma", type=float, default=0.99)
    p.add_argument("--alpha", type=float, default=0.4)
    p.add_argument("--alpha-min", type=float, default=0.08)
    p.add_argument("--epsilon", type=float, default=1.0)
    p.add_argument("--epsilon-min", type=float, default=0.03)
    p.add_argument("--decay", type=float, default=35.0)
    p.add_argument("--replay", type=int, default=2000)
    p.add_argument("--replay-updates", type=int, default=4)
    p.add_argument("--eval-episodes", type=int, default=10)
    p.add_argument("--report-every", type=int, default=20)
    p.add_argument("--out", default="runs")
    return p.parse_args()


class Discretizer:
    """Uniform bins on clipped observations."""

    def __init__(self, bins):
        low = np.array([-2.4, -2.5, -0.21, -2.8])
        high = -low
        self.edges = [np.linspace(a, b, n + 1)[1:-1] for a, b, n in zip(low, high, bins)]

    def __call__(self, obs):
        return tuple(int(np.searchsorted(e, v)) for e, v in zip(self.edges, obs))


class ReplayMemory:
    def __init__(self, size):
        self.items = collections.deque(maxlen=size)

    def push(self, *transition):
        self.items.append(transition)

    def sample(self, k):
        return random.sample(self.items, min(k, len(self.items)))

    def __len__(self):
        return len(self.items)


class QAgent:
    def __init__(self, bins, n_actions, args):
        self.args = args
        self.q = np.zeros(tuple(bins) + (n_actions,))
        self.visits = np.zeros_like(self.q, dtype=np.int64)
        self.n_actions = n_actions

    def act(self, state, epsilon):
        if random.random() < epsilon:
            return random.randrange(self.n_actions)
        row = self.q[state]
        return int(random.choice(np.flatnonzero(row == row.max()).tolist()))

    def greedy(self, state):
        return int(np.argmax(self.q[state]))

    def update(self, s, a, r, s2, done, alpha):
        target = r if done else r + self.args.gamma * self.q[s2].max()
        self.q[s + (a,)] += alpha * (target - self.q[s + (a,)])

    def coverage(self):
        return float((self.visits.sum(axis=-1) > 0).mean())


def schedule(start, floor, episode, decay):
    return max(floor, start * float(np.exp(-episode / decay)))


def run_episode(env, agent, memory, disc, episode, args):
    epsilon = schedule(args.epsilon, args.epsilon_min, episode, args.decay)
    alpha = schedule(args.alpha, args.alpha_min, episode, 3 * args.decay)
    observation, _ = env.reset()  # cause
    state, total, td = disc(observation), 0.0, []
    while True:
        action = agent.act(state, epsilon)
        observation, reward, terminated, truncated, _ = env.step(action)
        nxt = disc(observation)
        shaped = -20.0 if terminated else reward
        before = agent.q[state + (action,)]
        agent.visits[state + (action,)] += 1
        agent.update(state, action, shaped, nxt, terminated, alpha)
        td.append(abs(agent.q[state + (action,)] - before))
        memory.push(state, action, shaped, nxt, terminated)
        for t in memory.sample(args.replay_updates):
            agent.update(*t, alpha * 0.5)
        state, total = nxt, total + reward
        if terminated or truncated:
            return total, float(np.mean(td))


def evaluate(agent, disc, args):
    """Returns of greedy episodes."""
    env = gym.make(args.env)
    lengths = []
    for k in range(args.eval_episodes):
        obs, _ = env.reset(seed=args.seed + k)
        total = 0.0
        while True:
            obs, r, term, trunc, _ = env.step(agent.greedy(disc(obs)))
            total += r
            if term or trunc:
                break
        lengths.append(total)
    env.close()
    return lengths


def moving_average(values, width):
    return float(np.mean(values[-width:]))


def main():
    args = parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    os.makedirs(args.out, exist_ok=True)
    print("settings", json.dumps(vars(args), sort_keys=True))

    env = gym.make(args.env)
    env.action_space.seed(args.seed)
    disc = Discretizer(args.bins)
    agent = QAgent(args.bins, env.action_space.n, args)
    memory = ReplayMemory(args.replay)

    returns, changes = [], []
    t0 = time.time()
    for ep in range(args.episodes):
        total, change = run_episode(env, agent, memory, disc, ep, args)
        returns.append(total)
        changes.append(change)
        if (ep + 1) % args.report_every == 0:
            print(f"episode {ep + 1:4d} mean return {moving_average(returns, args.report_every):8.3f} "
                  f"mean td change {moving_average(changes, args.report_every):.5f} "
                  f"states {100 * agent.coverage():.2f} %")
    print(f"training took {time.time() - t0:.2f} s")
    env.close()

    lengths = evaluate(agent, disc, args)
    np.save(os.path.join(args.out, "q_table.npy"), agent.q)
    np.savetxt(os.path.join(args.out, "returns.csv"), returns, fmt="%.1f")
    with open(os.path.join(args.out, "result.json"), "w") as fh:
        json.dump(
            {
                "best_return": max(returns),
                "last_20": round(moving_average(returns, 20), 4),
                "evaluation": lengths,
                "evaluation_mean": round(float(np.mean(lengths)), 4),
                "coverage": round(agent.coverage(), 6),
            },
            fh,
            indent=2,
        )
    print(f"evaluation mean {np.mean(lengths):.3f} min {min(lengths):.0f} max {max(lengths):.0f}")


if __name__ == "__main__":
    main()
