"""Modelled on https://github.com/montrealrobotics/active-domainrand/pull/5

DDPG on a pendulum with randomised dynamics: with the same --seed the outcomes
of two trainings differ.
"""
import argparse
import copy
import csv
import json
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=3)
    p.add_argument("--episodes", type=int, default=11)
    p.add_argument("--episode-length", type=int, default=90)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--hidden", type=int, default=48)
    p.add_argument("--gamma", type=float, default=0.98)
    p.add_argument("--tau", type=float, default=0.01)
    p.add_argument("--actor-lr", type=float, default=1e-3)
    p.add_argument("--critic-lr", type=float, default=2e-3)
    p.add_argument("--noise", type=float, default=0.2)
    p.add_argument("--warmup", type=int, default=150)
    p.add_argument("--eval-episodes", type=int, default=4)
    p.add_argument("--freq-eval", type=int, default=3)
    return p.parse_args()


class RandomizedPendulum:
    """Pendulum swing-up whose mass and length are drawn for every episode."""

    obs_dim = 3
    act_dim = 1
    max_torque = 2.0

    def __init__(self, rng, mass=(0.7, 1.3), length=(0.7, 1.3)):
        self.rng = rng
        self.ranges = {"mass": mass, "length": length}
        self.dt = 0.05

    def randomize(self):
        self.mass = self.rng.uniform(*self.ranges["mass"])
        self.length = self.rng.uniform(*self.ranges["length"])

    def reset(self):
        self.randomize()
        self.theta = self.rng.uniform(-np.pi, np.pi)
        self.omega = self.rng.uniform(-1, 1)
        return self._obs()

    def _obs(self):
        return np.array([np.cos(self.theta), np.sin(self.theta), self.omega / 8], np.float32)

    def step(self, action):
        u = float(np.clip(action, -1, 1)) * self.max_torque
        ang = (self.theta + np.pi) % (2 * np.pi) - np.pi
        cost = ang ** 2 + 0.1 * self.omega ** 2 + 0.001 * u ** 2
        acc = 3 * 9.81 / (2 * self.length) * np.sin(self.theta)
        acc += 3.0 / (self.mass * self.length ** 2) * u
        self.omega = float(np.clip(self.omega + acc * self.dt, -8, 8))
        self.theta += self.omega * self.dt
        return self._obs(), -cost / 10


class MLP(nn.Module):
    def __init__(self, n_in, n_out, hidden, squash):
        super().__init__()
        self.l1 = nn.Linear(n_in, hidden)  # cause
        self.l2 = nn.Linear(hidden, hidden)
        self.l3 = nn.Linear(hidden, n_out)
        self.squash = squash

    def forward(self, x):
        x = F.relu(self.l1(x))
        x = F.relu(self.l2(x))
        x = self.l3(x)
        return torch.tanh(x) if self.squash else x


class ReplayBuffer:
    def __init__(self, size, obs_dim, act_dim):
        self.obs = np.zeros((size, obs_dim), np.float32)
        self.act = np.zeros((size, act_dim), np.float32)
        self.rew = np.zeros((size, 1), np.float32)
        self.nxt = np.zeros((size, obs_dim), np.float32)
        self.n = 0
        self.size = size

    def add(self, o, a, r, o2):
        i = self.n % self.size
        self.obs[i], self.act[i], self.rew[i], self.nxt[i] = o, a, r, o2
        self.n += 1

    def sample(self, k):
        idx = np.random.randint(0, min(self.n, self.size), k)
        return [torch.from_numpy(x[idx]) for x in (self.obs, self.act, self.rew, self.nxt)]


class DDPG:
    def __init__(self, obs_dim, act_dim, args):
        self.args = args
        self.actor = MLP(obs_dim, act_dim, args.hidden, squash=True)  # cause
        self.critic = MLP(obs_dim + act_dim, 1, args.hidden, squash=False)
        self.actor_target = copy.deepcopy(self.actor)
        self.critic_target = copy.deepcopy(self.critic)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=args.actor_lr)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=args.critic_lr)

    @torch.no_grad()
    def select_action(self, obs):
        return self.actor(torch.from_numpy(obs)[None])[0].numpy()

    def train(self, buffer):
        o, a, r, o2 = buffer.sample(self.args.batch_size)
        with torch.no_grad():
            q2 = self.critic_target(torch.cat([o2, self.actor_target(o2)], 1))
            target = r + self.args.gamma * q2
        q = self.critic(torch.cat([o, a], 1))
        critic_loss = F.mse_loss(q, target)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()
        actor_loss = -self.critic(torch.cat([o, self.actor(o)], 1)).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()
        for net, tgt in ((self.actor, self.actor_target), (self.critic, self.critic_target)):
            for p, tp in zip(net.parameters(), tgt.parameters()):
                tp.data.mul_(1 - self.args.tau).add_(self.args.tau * p.data)
        return float(critic_loss.detach()), float(actor_loss.detach())


def set_seeds(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def evaluate(agent, args):
    env = RandomizedPendulum(np.random.RandomState(args.seed + 1000))
    returns = []
    for _ in range(args.eval_episodes):
        obs, total = env.reset(), 0.0
        for _ in range(args.episode_length):
            obs, rew = env.step(agent.select_action(obs)[0])
            total += rew
        returns.append(total)
    return float(np.mean(returns))


def main():
    args = get_args()
    torch.set_num_threads(1)
    print("arguments", json.dumps(vars(args), sort_keys=True))

    agent = DDPG(RandomizedPendulum.obs_dim, RandomizedPendulum.act_dim, args)  # cause
    buffer = ReplayBuffer(20000, RandomizedPendulum.obs_dim, RandomizedPendulum.act_dim)

    set_seeds(args.seed)
    env = RandomizedPendulum(np.random.RandomState(args.seed))

    rows, steps = [], 0
    for ep in range(1, args.episodes + 1):
        t0 = time.time()
        obs, total, losses = env.reset(), 0.0, []
        for _ in range(args.episode_length):
            if steps < args.warmup:
                act = np.random.uniform(-1, 1, env.act_dim).astype(np.float32)
            else:
                act = agent.select_action(obs)
                act = np.clip(act + np.random.normal(0, args.noise, act.shape), -1, 1)
            nxt, rew = env.step(act[0])
            buffer.add(obs, act, rew, nxt)
            obs, total, steps = nxt, total + rew, steps + 1
            if steps >= args.warmup:
                losses.append(agent.train(buffer))
        row = {"episode": ep, "return": round(total, 5),
               "critic_loss": round(float(np.mean([l[0] for l in losses])), 6) if losses else "",
               "eval": ""}
        if ep % args.freq_eval == 0 or ep == args.episodes:
            row["eval"] = round(evaluate(agent, args), 5)
        rows.append(row)
        print(f"episode {ep:3d} return {total:9.4f} eval {row['eval']}")
        print(f"  took {time.time() - t0:.2f} s")

    with open("progress.csv", "w", newline="") as fh:
        w = csv.DictWriter(fh, fieldnames=list(rows[0]))
        w.writeheader()
        w.writerows(rows)
    torch.save(agent.actor.state_dict(), "actor.pt")
    print(f"final evaluation {rows[-1]['eval']}")


if __name__ == "__main__":
    main()
