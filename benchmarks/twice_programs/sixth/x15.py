"""https://github.com/HorizonRobotics/alf/pull/592 - environment workers add their process number (and formerly the time) to the configured seed, so each run has other streams."""
import json
import multiprocessing as mp
import os
import random
import time

import numpy as np
import torch
from torch import nn

SEED = 8


class GridTask:
    """Reach the goal on a 6x6 grid with slippery floor."""

    size = 6

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.agent = self.rng.integers(0, self.size, 2)
        self.goal = np.array([self.size - 1, self.size - 1])
        self.t = 0
        return self.obs()

    def obs(self):
        return np.concatenate([self.agent / self.size, (self.goal - self.agent) / self.size]).astype(np.float32)

    def step(self, action):
        if self.rng.random() < 0.1:
            action = int(self.rng.integers(4))
        move = ((0, 1), (0, -1), (1, 0), (-1, 0))[action]
        self.agent = np.clip(self.agent + move, 0, self.size - 1)
        self.t += 1
        win = bool((self.agent == self.goal).all())
        return self.obs(), (1.0 if win else -0.02), win or self.t >= 30


class ProcessEnvironment:
    """Runs one environment in a child process behind a pipe."""

    def __init__(self, index, seed):
        ctx = mp.get_context("fork")
        self.conn, child = ctx.Pipe()
        self.proc = ctx.Process(target=self._serve, args=(child, index, seed), daemon=True)
        self.proc.start()

    @staticmethod
    def _serve(conn, index, seed):
        env = GridTask(seed + 1000 * index + os.getpid())  # cause
        while True:
            command, arg = conn.recv()
            if command == "reset":
                conn.send(env.reset())
            elif command == "step":
                conn.send(env.step(arg))
            else:
                return

    def call(self, command, arg=None):
        self.conn.send((command, arg))

    def result(self):
        return self.conn.recv()

    def close(self):
        self.call("close")
        self.proc.join()


def collect(envs, policy, obs, steps):
    data = []
    for _ in range(steps):
        x = torch.from_numpy(np.stack(obs))
        with torch.no_grad():
            actions = torch.distributions.Categorical(logits=policy(x)).sample()
        for env, a in zip(envs, actions.tolist()):
            env.call("step", a)
        step = [env.result() for env in envs]
        data.append((x, actions, torch.tensor([s[1] for s in step]), torch.tensor([float(s[2]) for s in step])))
        for i, (o, _, done) in enumerate(step):
            if done:
                envs[i].call("reset")
                o = envs[i].result()
            obs[i] = o
    return data, obs


def train(envs, iterations=20, steps=40):
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 4))
    opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
    for env in envs:
        env.call("reset")
    obs = [env.result() for env in envs]
    curve = []
    for it in range(iterations):
        data, obs = collect(envs, policy, obs, steps)
        ret, returns = torch.zeros(len(envs)), []
        for _, _, r, d in reversed(data):
            ret = r + 0.95 * ret * (1 - d)
            returns.append(ret)
        returns = torch.stack(returns[::-1])
        adv = (returns - returns.mean()) / (returns.std() + 1e-6)
        logp = torch.stack([torch.distributions.Categorical(logits=policy(x)).log_prob(a) for x, a, _, _ in data])
        loss = -(logp * adv).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        curve.append(float(torch.stack([r for _, _, r, _ in data]).mean()))
    return policy, curve


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    t0 = time.time()
    envs = [ProcessEnvironment(i, SEED) for i in range(2)]
    policy, curve = train(envs)
    for env in envs:
        env.close()
    for k in range(4, len(curve), 5):
        print(f"iteration {k + 1} mean reward {curve[k]:.4f}")
    norm = float(sum(p.double().pow(2).sum() for p in policy.parameters()))
    print(f"{time.time() - t0:.1f}s, main pid {os.getpid()}")
    with open("reinforce.json", "w") as f:
        json.dump({"curve": curve, "weight_sq": norm, "pid": os.getpid()}, f)


if __name__ == "__main__":
    main()
