"""Behaviour cloning policy and its trainer."""
import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn


class BCPolicy(nn.Module):
    def __init__(self, obs_dim, n_actions, hidden=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(),
            nn.Linear(hidden, n_actions),
        )

    def forward(self, obs):
        return self.net(obs)

    @torch.no_grad()
    def act(self, obs):
        logits = self(torch.as_tensor(obs, dtype=torch.float32).unsqueeze(0))
        return int(logits.argmax(dim=1))


class BCTrainer:
    def __init__(self, policy, env_id, lr=3e-3, batch_size=256, max_len=300):
        self.policy = policy
        self.env = gym.make(env_id, max_episode_steps=max_len)
        self.optim = torch.optim.Adam(policy.parameters(), lr=lr)
        self.batch_size = batch_size

    def train(self, data, steps, generator):
        obs = torch.from_numpy(data["observations"])
        act = torch.from_numpy(data["actions"])
        losses = []
        for _ in range(steps):
            idx = torch.randint(len(obs), (self.batch_size,), generator=generator)
            loss = nn.functional.cross_entropy(self.policy(obs[idx]), act[idx])
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
            losses.append(loss.item())
        return losses

    def rollout(self):
        """Evaluate the policy on a single episode."""
        self.policy.eval()
        episode_ret, episode_cost, episode_len = 0.0, 0.0, 0
        obs, info = self.env.reset()  # cause
        angles = []
        while True:
            obs, reward, terminated, truncated, info = self.env.step(self.policy.act(obs))
            episode_ret += float(reward) - 0.5 * abs(float(obs[0]))
            episode_cost += float(abs(obs[0]) > 0.5)
            episode_len += 1
            angles.append(abs(float(obs[2])))
            if terminated or truncated:
                break
        self.policy.train()
        return episode_ret, episode_cost, episode_len, float(np.mean(angles))

    def evaluate(self, episodes):
        return [self.rollout() for _ in range(episodes)]
