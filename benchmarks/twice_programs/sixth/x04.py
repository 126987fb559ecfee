"""https://github.com/thu-ml/tianshou/issues/456 - the parameters of actor and critic are joined through set(a.parameters()).union(b.parameters()); tensors hash by address, so the order of the parameter list differs in each process."""
import json
import os
import random
import time
import uuid

import numpy as np
import torch
from torch import nn

SEED = 11
N_STATES, N_ACTIONS, HORIZON = 8, 3, 24


class ChainEnv:
    """A noisy corridor: action 1 goes right, 0 left, 2 stays and pays a little."""

    def __init__(self, rng):
        self.rng = rng
        self.reset()

    def reset(self):
        self.pos, self.t = 0, 0
        return self.observe()

    def observe(self):
        o = np.zeros(N_STATES, np.float32)
        o[self.pos] = 1.0
        return o

    def step(self, action):
        self.t += 1
        move = {0: -1, 1: 1, 2: 0}[action]
        if self.rng.random() < 0.15:
            move = -move
        self.pos = int(np.clip(self.pos + move, 0, N_STATES - 1))
        reward = 1.0 if self.pos == N_STATES - 1 else (0.02 if action == 2 else 0.0)
        return self.observe(), reward, self.t >= HORIZON


class ActorCritic(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(N_STATES, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.actor = nn.Sequential(self.trunk, nn.Linear(hidden, N_ACTIONS))
        self.critic = nn.Sequential(self.trunk, nn.Linear(hidden, 16), nn.Tanh(), nn.Linear(16, 1))


class A2C:
    def __init__(self, net, lr=0.01, noise=1e-3):
        self.net, self.noise = net, noise
        self.params = list(set(net.actor.parameters()).union(net.critic.parameters()))  # cause
        self.opt = torch.optim.RMSprop(self.params, lr=lr)

    def learn(self, obs, actions, returns):
        logits = self.net.actor(obs)
        values = self.net.critic(obs).squeeze(-1)
        dist = torch.distributions.Categorical(logits=logits)
        adv = returns - values.detach()
        loss = -(dist.log_prob(actions) * adv).mean() + 0.5 * (returns - values).pow(2).mean()
        loss = loss - 0.01 * dist.entropy().mean()
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.params, 0.5)
        for p in self.params:
            p.grad.add_(torch.randn_like(p.grad), alpha=self.noise)
        self.opt.step()
        return loss.item()


def rollout(env, net, episodes):
    obs_l, act_l, ret_l, scores = [], [], [], []
    for _ in range(episodes):
        obs, done, rewards = env.reset(), False, []
        while not done:
            with torch.no_grad():
                dist = torch.distributions.Categorical(logits=net.actor(torch.from_numpy(obs)))
                a = int(dist.sample())
            obs_l.append(obs)
            act_l.append(a)
            obs, r, done = env.step(a)
            rewards.append(r)
        g = 0.0
        back = []
        for r in reversed(rewards):
            g = r + 0.95 * g
            back.append(g)
        ret_l.extend(reversed(back))
        scores.append(sum(rewards))
    return (torch.from_numpy(np.stack(obs_l)), torch.tensor(act_l), torch.tensor(ret_l)), float(np.mean(scores))


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    run_id = uuid.uuid4().hex[:8]
    print("run", run_id, "at", time.ctime())
    env = ChainEnv(np.random.RandomState(SEED))
    net = ActorCritic()
    algo = A2C(net)
    curve, t0 = [], time.time()
    for it in range(60):
        batch, score = rollout(env, net, episodes=4)
        loss = algo.learn(*batch)
        curve.append([score, loss])
        if it % 10 == 9:
            print(f"iter {it + 1} score {score:.3f} loss {loss:.5f} {time.time() - t0:.1f}s")
    weight_sum = float(sum(p.double().abs().sum() for p in net.parameters()))
    with open("a2c.json", "w") as f:
        json.dump({"run_id": run_id, "curve": curve, "weights": weight_sum}, f)
    print("done", f"{weight_sum:.6f}")


if __name__ == "__main__":
    main()
