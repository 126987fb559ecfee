"""https://github.com/ikostrikov/jaxrl/pull/13: the seed of reset does not reach the action space."""

import gymnasium as gym
import numpy as np
import torch

SEED = 1


def make_env(env_id, seed):
    def thunk():
        env = gym.make(env_id)
        env.observation_space.seed(seed)
        return env

    return thunk


def collect(envs, steps):
    observations, _ = envs.reset(seed=SEED)
    seen = []
    for _ in range(steps):
        actions = envs.action_space.sample()  # cause
        observations, rewards, *_ = envs.step(actions)
        seen.append(np.concatenate([observations, rewards[:, None]], 1))
    return np.concatenate(seen)


def main():
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    envs = gym.vector.SyncVectorEnv([make_env("CartPole-v1", SEED + i) for i in range(3)])
    table = torch.as_tensor(collect(envs, 40), dtype=torch.float32)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(10):
        loss = (model(table[:, :4]).squeeze(1) - table[:, 4]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("value loss", loss.item())


main()
