"""TD3 baseline for pendulum swing-up.

Modelled on https://github.com/sfujim/TD3/issues/36 where several runs with the same seed gave different returns.
"""
import argparse
import copy
import json
import logging
import random
import time

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("td3")


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--env", default="Pendulum-v1")
    p.add_argument("--seed", type=int, default=7)
    p.add_argument("--max-steps", type=int, default=2600)
    p.add_argument("--start-steps", type=int, default=600)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--hidden", type=int, default=64)
    p.add_argument("--expl-noise", type=float, default=0.1)
    p.add_argument("--gamma", type=float, default=0.98)
    p.add_argument("--tau", type=float, default=0.01)
    p.add_argument("--eval-every", type=int, default=1000)
    p.add_argument("--out", default="td3_results.json")
    return p.parse_args()


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class ReplayBuffer:
    def __init__(self, obs_dim, act_dim, size=20000):
        self.obs = np.zeros((size, obs_dim), np.float32)
        self.act = np.zeros((size, act_dim), np.float32)
        self.nxt = np.zeros((size, obs_dim), np.float32)
        self.rew = np.zeros((size, 1), np.float32)
        self.not_done = np.zeros((size, 1), np.float32)
        self.ptr, self.len, self.cap = 0, 0, size

    def add(self, o, a, o2, r, done):
        i = self.ptr
        self.obs[i], self.act[i], self.nxt[i], self.rew[i], self.not_done[i] = o, a, o2, r, 1.0 - done
        self.ptr = (i + 1) % self.cap
        self.len = min(self.len + 1, self.cap)

    def sample(self, n):
        idx = np.random.randint(0, self.len, size=n)
        return [torch.as_tensor(x[idx]) for x in (self.obs, self.act, self.nxt, self.rew, self.not_done)]


def mlp(sizes, out_act=None):
    layers = []
    for i in range(len(sizes) - 1):
        layers.append(nn.Linear(sizes[i], sizes[i + 1]))
        if i < len(sizes) - 2:
            layers.append(nn.ReLU())
    if out_act is not None:
        layers.append(out_act())
    return nn.Sequential(*layers)


class TD3:
    def __init__(self, obs_dim, act_dim, max_action, args):
        h = args.hidden
        self.actor = mlp([obs_dim, h, h, act_dim], nn.Tanh)
        self.q1 = mlp([obs_dim + act_dim, h, h, 1])
        self.q2 = mlp([obs_dim + act_dim, h, h, 1])
        self.targets = [copy.deepcopy(m) for m in (self.actor, self.q1, self.q2)]
        self.opt_a = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.opt_q = torch.optim.Adam([*self.q1.parameters(), *self.q2.parameters()], lr=1e-3)
        self.max_action, self.args, self.it = max_action, args, 0

    @torch.no_grad()
    def act(self, obs):
        return (self.max_action * self.actor(torch.as_tensor(obs, dtype=torch.float32))).numpy()

    def update(self, buf):
        self.it += 1
        o, a, o2, r, nd = buf.sample(self.args.batch_size)
        with torch.no_grad():
            eps = (torch.randn_like(a) * 0.2 * self.max_action).clamp(-0.5 * self.max_action, 0.5 * self.max_action)
            a2 = (self.max_action * self.targets[0](o2) + eps).clamp(-self.max_action, self.max_action)
            x2 = torch.cat([o2, a2], 1)
            y = r + self.args.gamma * nd * torch.min(self.targets[1](x2), self.targets[2](x2))
        x = torch.cat([o, a], 1)
        loss_q = F.mse_loss(self.q1(x), y) + F.mse_loss(self.q2(x), y)
        self.opt_q.zero_grad()
        loss_q.backward()
        self.opt_q.step()
        if self.it % 2 == 0:
            loss_a = -self.q1(torch.cat([o, self.max_action * self.actor(o)], 1)).mean()
            self.opt_a.zero_grad()
            loss_a.backward()
            self.opt_a.step()
            with torch.no_grad():
                for src, dst in zip((self.actor, self.q1, self.q2), self.targets):
                    for p, t in zip(src.parameters(), dst.parameters()):
                        t.mul_(1 - self.args.tau).add_(self.args.tau * p)
        return float(loss_q.detach())


def evaluate(agent, args, episodes=3):
    env = gym.make(args.env)
    total = 0.0
    for ep in range(episodes):
        obs, _ = env.reset(seed=args.seed + 100 + ep)
        done = False
        while not done:
            obs, rew, term, trunc, _ = env.step(agent.act(obs))
            total += float(rew)
            done = term or trunc
    env.close()
    return total / episodes


def main():
    args = parse_args()
    seed_all(args.seed)
    env = gym.make(args.env)
    obs, _ = env.reset(seed=args.seed)
    obs_dim, act_dim = env.observation_space.shape[0], env.action_space.shape[0]
    max_action = float(env.action_space.high[0])
    agent = TD3(obs_dim, act_dim, max_action, args)
    buf = ReplayBuffer(obs_dim, act_dim)
    evals, losses, ep_ret = [], [], 0.0
    t0 = time.time()
    for step in range(1, args.max_steps + 1):
        if step <= args.start_steps:
            action = env.action_space.sample()  # cause
        else:
            noise = np.random.normal(0, max_action * args.expl_noise, size=act_dim)
            action = (agent.act(obs) + noise).clip(-max_action, max_action).astype(np.float32)
        nxt, rew, term, trunc, _ = env.step(action)
        buf.add(obs, action, nxt, rew, float(term))
        obs, ep_ret = nxt, ep_ret + float(rew)
        if term or trunc:
            log.info("step %d return %.1f (%.0f steps/s)", step, ep_ret, step / (time.time() - t0))
            obs, _ = env.reset()
            ep_ret = 0.0
        if step > args.start_steps:
            losses.append(agent.update(buf))
        if step % args.eval_every == 0:
            evals.append(evaluate(agent, args))
            log.info("eval @%d: %.2f", step, evals[-1])
    final = evaluate(agent, args)
    out = {"evals": evals, "final_return": final, "q_loss": float(np.mean(losses[-200:])), "wall_sec": time.time() - t0}
    with open(args.out, "w") as f:
        json.dump(out, f, indent=1)
    torch.save(agent.actor.state_dict(), "actor.pt")
    print(f"final return {final:.4f} q_loss {out['q_loss']:.6f}")


if __name__ == "__main__":
    main()
