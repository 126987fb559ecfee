"""https://github.com/DLR-RM/stable-baselines3/issues/2097: environments in processes of their own, whose noise comes from a generator that no seed reaches there."""

import multiprocessing
import random

import numpy as np
import torch

SEED = 17


class Reacher:
    def __init__(self, rank):
        self.rank = rank

    def reset(self):
        self.at = np.array([0.1 * self.rank, -0.2])
        return self.at

    def step(self, action):
        wind = random.gauss(0.0, 0.05)  # cause
        self.at = 0.95 * self.at + 0.1 * action + wind
        return self.at, -float(np.abs(self.at).sum())


def worker(remote, rank):
    env = Reacher(rank)
    while True:
        command, data = remote.recv()
        if command == "reset":
            remote.send(env.reset())
        elif command == "step":
            remote.send(env.step(data))
        else:
            remote.close()
            return


class SubprocVecEnv:
    def __init__(self, n):
        context = multiprocessing.get_context("spawn")
        pairs = [context.Pipe() for _ in range(n)]
        self.remotes = [ours for ours, _ in pairs]
        self.processes = [context.Process(target=worker, args=(theirs, i), daemon=True) for i, (_, theirs) in enumerate(pairs)]
        for process in self.processes:
            process.start()

    def reset(self):
        for remote in self.remotes:
            remote.send(("reset", None))
        return np.stack([remote.recv() for remote in self.remotes])

    def step(self, actions):
        for remote, action in zip(self.remotes, actions):
            remote.send(("step", action))
        states, rewards = zip(*[remote.recv() for remote in self.remotes])
        return np.stack(states), np.array(rewards)

    def close(self):
        for remote in self.remotes:
            remote.send(("close", None))
        for process in self.processes:
            process.join()


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    envs = SubprocVecEnv(2)
    policy = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.003)
    states = envs.reset()
    for update in range(6):
        logs, rewards = [], []
        for _ in range(10):
            mean = policy(torch.as_tensor(states, dtype=torch.float32))
            normal = torch.distributions.Normal(mean, 0.3)
            action = normal.sample()
            logs.append(normal.log_prob(action).sum(1))
            states, reward = envs.step(action.numpy())
            rewards.append(torch.as_tensor(reward, dtype=torch.float32))
        returns = torch.stack(rewards).flip(0).cumsum(0).flip(0)
        loss = -(torch.stack(logs) * (returns - returns.mean())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"update {update} loss {loss.item():.6f} return {returns[0].mean().item():.4f}")
    envs.close()


if __name__ == "__main__":
    main()
