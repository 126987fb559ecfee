"""DQN on CartPole with a Monitor file and an SB3-like logger (stdout table and progress.csv)."""
import argparse
import csv
import json
import os
import random
import time
from collections import deque

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Monitor(gym.Wrapper):
    """Writes return, length and wall time of each episode to <path>.monitor.csv."""

    def __init__(self, env, path):
        super().__init__(env)
        self.t_start = time.time()
        self.file = open(path + ".monitor.csv", "w", newline="\n")
        self.file.write("#%s\n" % json.dumps({"t_start": self.t_start, "env_id": env.spec.id}))
        self.writer = csv.DictWriter(self.file, fieldnames=("r", "l", "t"))
        self.writer.writeheader()
        self.rewards, self.episodes = [], []

    def reset(self, **kwargs):
        self.rewards = []
        return self.env.reset(**kwargs)

    def step(self, action):
        obs, r, term, trunc, info = self.env.step(action)
        self.rewards.append(float(r))
        if term or trunc:
            ep = {"r": round(sum(self.rewards), 6), "l": len(self.rewards), "t": round(time.time() - self.t_start, 6)}
            self.writer.writerow(ep)
            self.file.flush()
            self.episodes.append(ep)
            info["episode"] = ep
        return obs, r, term, trunc, info


class Logger:
    def __init__(self, folder):
        self.folder, self.rows, self.current = folder, [], {}

    def record(self, key, value):
        self.current[key] = value

    def dump(self):
        width = max(len(k.split("/")[1]) for k in self.current) + 6
        print("-" * (width + 18))
        last = None
        for k, v in sorted(self.current.items()):
            tag, name = k.split("/")
            if tag != last:
                print(f"| {tag + '/':<{width}} | {'':<11} |")
                last = tag
            text = f"{v:<11.3g}" if isinstance(v, float) else f"{v:<11}"
            print(f"|    {name:<{width - 3}} | {text} |")
        print("-" * (width + 18), flush=True)
        self.rows.append(self.current)
        self.current = {}
        with open(os.path.join(self.folder, "progress.csv"), "w", newline="") as f:
            w = csv.DictWriter(f, fieldnames=sorted(set().union(*self.rows)))
            w.writeheader()
            w.writerows(self.rows)


class ReplayBuffer:
    def __init__(self, capacity, obs_dim, rng):
        self.obs, self.next_obs = (np.zeros((capacity, obs_dim), np.float32) for _ in range(2))
        self.act = np.zeros(capacity, np.int64)
        self.rew, self.done = np.zeros(capacity, np.float32), np.zeros(capacity, np.float32)
        self.capacity, self.pos, self.full, self.rng = capacity, 0, False, rng

    def add(self, o, a, r, o2, d):
        i = self.pos
        self.obs[i], self.act[i], self.rew[i], self.next_obs[i], self.done[i] = o, a, r, o2, d
        self.pos = (i + 1) % self.capacity
        self.full |= self.pos == 0

    def sample(self, n):
        idx = self.rng.integers(0, self.capacity if self.full else self.pos, n)
        return [torch.from_numpy(x[idx]) for x in (self.obs, self.act, self.rew, self.next_obs, self.done)]


class QNet(nn.Module):
    def __init__(self, obs_dim, n_actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs_dim, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, n_actions))

    def forward(self, x):
        return self.net(x)


def evaluate_policy(q, env_id, n_episodes, seed):
    env = gym.make(env_id)
    returns = []
    for ep in range(n_episodes):
        obs, _ = env.reset(seed=seed + ep)
        done, total = False, 0.0
        while not done:
            with torch.no_grad():
                a = int(q(torch.from_numpy(obs)).argmax())
            obs, r, term, trunc, _ = env.step(a)
            done, total = term or trunc, total + float(r)
        returns.append(total)
    env.close()
    return returns


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--env", default="CartPole-v1")
    p.add_argument("--seed", type=int, default=3)
    p.add_argument("--timesteps", type=int, default=6000)
    p.add_argument("--learning-starts", type=int, default=500)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--gamma", type=float, default=0.99)
    p.add_argument("--target-update", type=int, default=250)
    p.add_argument("--log-folder", default="logs")
    args = p.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    exp = 1
    folder = os.path.join(args.log_folder, "dqn", f"{args.env}_{exp}")
    os.makedirs(folder, exist_ok=True)
    print(f"========== {args.env} ==========\nSeed: {args.seed}\nLog path: {folder}")
    env = Monitor(gym.make(args.env), os.path.join(folder, "0"))
    env.action_space.seed(args.seed)
    obs_dim, n_act = env.observation_space.shape[0], env.action_space.n
    q, q_target = QNet(obs_dim, n_act), QNet(obs_dim, n_act)
    q_target.load_state_dict(q.state_dict())
    optim = torch.optim.Adam(q.parameters(), lr=1e-3)
    buf, logger = ReplayBuffer(5000, obs_dim, rng), Logger(folder)
    ep_r, ep_l, losses = deque(maxlen=50), deque(maxlen=50), deque(maxlen=200)
    evals, n_updates, start = [], 0, time.time()
    obs, _ = env.reset(seed=args.seed)
    for step in range(1, args.timesteps + 1):
        eps = max(0.05, 1.0 - step / (0.4 * args.timesteps))
        if rng.random() < eps:
            action = int(env.action_space.sample())
        else:
            with torch.no_grad():
                action = int(q(torch.from_numpy(obs)).argmax())
        nxt, r, term, trunc, info = env.step(action)
        buf.add(obs, action, r, nxt, float(term))
        obs = nxt
        if term or trunc:
            ep_r.append(info["episode"]["r"])
            ep_l.append(info["episode"]["l"])
            obs, _ = env.reset()
        if step > args.learning_starts and step % 2 == 0:
            o, a, rew, o2, d = buf.sample(args.batch_size)
            with torch.no_grad():
                target = rew + args.gamma * (1 - d) * q_target(o2).max(1).values
            loss = F.smooth_l1_loss(q(o).gather(1, a[:, None]).squeeze(1), target)
            optim.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(q.parameters(), 10)
            optim.step()
            losses.append(loss.item())
            n_updates += 1
        if step % args.target_update == 0:
            q_target.load_state_dict(q.state_dict())
        if step % 1000 == 0:
            elapsed = time.time() - start
            logger.record("rollout/ep_rew_mean", float(np.mean(ep_r)))
            logger.record("rollout/ep_len_mean", float(np.mean(ep_l)))
            logger.record("rollout/exploration_rate", float(eps))
            logger.record("time/episodes", len(env.episodes))
            logger.record("time/fps", int(step / elapsed))
            logger.record("time/time_elapsed", int(elapsed))
            logger.record("time/total_timesteps", step)
            if losses:
                logger.record("train/loss", float(np.mean(losses)))
                logger.record("train/n_updates", n_updates)
            logger.dump()
        if step % 2000 == 0:
            rets = evaluate_policy(q, args.env, 3, 10_000)
            evals.append((step, rets))
            print(f"Eval num_timesteps={step}, episode_reward={np.mean(rets):.2f} +/- {np.std(rets):.2f}")
    env.close()
    np.savez(os.path.join(folder, "evaluations.npz"), timesteps=[e[0] for e in evals], results=[e[1] for e in evals])
    torch.save({"policy": q.state_dict(), "optimizer": optim.state_dict(), "num_timesteps": args.timesteps,
                "_n_updates": n_updates, "start_time": start}, os.path.join(folder, f"{args.env}.pt"))
    print(f"Saving to {folder}")


if __name__ == "__main__":
    main()
