"""https://github.com/sfujim/TD3/issues/36 - during the first random phase the actions come from env.action_space.sample(), whose generator is separate from the environment's and was never seeded."""
import json
import os
import random
import time
from collections import deque

import gymnasium as gym
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SEED = 3
START_STEPS = 400
TOTAL_STEPS = 1400
BATCH = 64


class Actor(nn.Module):
    def __init__(self, obs_dim, act_dim, limit):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs_dim, 48), nn.ReLU(), nn.Linear(48, act_dim), nn.Tanh())
        self.limit = limit

    def forward(self, s):
        return self.limit * self.net(s)


class Critic(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.q1 = nn.Sequential(nn.Linear(obs_dim + act_dim, 48), nn.ReLU(), nn.Linear(48, 1))
        self.q2 = nn.Sequential(nn.Linear(obs_dim + act_dim, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, s, a):
        x = torch.cat([s, a], 1)
        return self.q1(x), self.q2(x)


class ReplayBuffer:
    def __init__(self, capacity=5000):
        self.items = deque(maxlen=capacity)

    def add(self, *transition):
        self.items.append(transition)

    def sample(self, n):
        batch = random.sample(self.items, n)
        cols = [np.asarray(c, dtype=np.float32) for c in zip(*batch)]
        s, a, r, s2, d = (torch.from_numpy(c) for c in cols)
        return s, a, r[:, None], s2, d[:, None]


class TD3:
    def __init__(self, obs_dim, act_dim, limit):
        self.actor, self.actor_t = Actor(obs_dim, act_dim, limit), Actor(obs_dim, act_dim, limit)
        self.critic, self.critic_t = Critic(obs_dim, act_dim), Critic(obs_dim, act_dim)
        self.actor_t.load_state_dict(self.actor.state_dict())
        self.critic_t.load_state_dict(self.critic.state_dict())
        self.a_opt = torch.optim.Adam(self.actor.parameters(), 1e-3)
        self.c_opt = torch.optim.Adam(self.critic.parameters(), 1e-3)
        self.limit, self.updates = limit, 0

    @torch.no_grad()
    def act(self, s):
        return self.actor(torch.as_tensor(s, dtype=torch.float32)[None])[0].numpy()

    def update(self, buffer):
        self.updates += 1
        s, a, r, s2, d = buffer.sample(BATCH)
        with torch.no_grad():
            noise = (torch.randn_like(a) * 0.2).clamp(-0.5, 0.5)
            a2 = (self.actor_t(s2) + noise).clamp(-self.limit, self.limit)
            q_t = r + 0.98 * (1 - d) * torch.min(*self.critic_t(s2, a2))
        q1, q2 = self.critic(s, a)
        loss = F.mse_loss(q1, q_t) + F.mse_loss(q2, q_t)
        self.c_opt.zero_grad()
        loss.backward()
        self.c_opt.step()
        if self.updates % 2 == 0:
            pi_loss = -self.critic(s, self.actor(s))[0].mean()
            self.a_opt.zero_grad()
            pi_loss.backward()
            self.a_opt.step()
            for net, tgt in ((self.actor, self.actor_t), (self.critic, self.critic_t)):
                for p, q in zip(net.parameters(), tgt.parameters()):
                    q.data.mul_(0.99).add_(0.01 * p.data)
        return loss.item()


def evaluate(agent, episodes=2):
    env = gym.make("Pendulum-v1")
    total = 0.0
    for k in range(episodes):
        s, _ = env.reset(seed=SEED + 100 + k)
        done = False
        while not done:
            s, r, term, trunc, _ = env.step(agent.act(s))
            total += float(r)
            done = term or trunc
    env.close()
    return total / episodes


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    env = gym.make("Pendulum-v1")
    limit = float(env.action_space.high[0])
    agent = TD3(env.observation_space.shape[0], env.action_space.shape[0], limit)
    buffer = ReplayBuffer()
    t0 = time.time()
    print("pid", os.getpid(), "started", time.ctime())

    s, _ = env.reset(seed=SEED)
    log, losses = [], []
    for step in range(TOTAL_STEPS):
        if step < START_STEPS:
            a = env.action_space.sample()  # cause
        else:
            a = agent.act(s) + np.random.normal(0, 0.1 * limit, size=1)
            a = a.clip(-limit, limit).astype(np.float32)
        s2, r, term, trunc, _ = env.step(a)
        buffer.add(s, a, r, s2, float(term))
        s = s2
        if term or trunc:
            s, _ = env.reset()
        if step >= START_STEPS:
            losses.append(agent.update(buffer))
        if step % 350 == 349:
            ret = evaluate(agent)
            log.append({"step": step + 1, "return": ret, "critic_loss": float(np.mean(losses[-50:] or [0.0]))})
            print(f"step {step + 1:5d} return {ret:9.3f}  [{time.time() - t0:.1f}s]")
    json.dump(log, open("td3_log.json", "w"), indent=1)


if __name__ == "__main__":
    main()
