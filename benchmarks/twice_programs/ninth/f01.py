"""Q-learning on CartPole with a small network and a batch of environments.

Modelled on https://github.com/sfujim/TD3/issues/36
A user fixes the same random seed in several experiments and every one of them ends differently.
"""
import argparse
import json
import logging
import random
import time

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from f01_rl.buffer import ReplayBuffer

log = logging.getLogger("cartpole")


def make_env(env_id, seed, rank):
    def thunk():
        env = gym.make(env_id)
        env = gym.wrappers.RecordEpisodeStatistics(env)
        env.reset(seed=seed + rank)
        return env
    return thunk


class QNet(nn.Module):
    def __init__(self, obs_dim, n_actions, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(obs_dim, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, n_actions))

    def forward(self, x):
        return self.body(x)


def epsilon(step, cfg):
    frac = min(1.0, step / (0.6 * cfg.steps))
    return 1.0 + frac * (cfg.final_eps - 1.0)


def evaluate(net, cfg, episodes=5):
    env = gym.make(cfg.env)
    totals = []
    for k in range(episodes):
        obs, _ = env.reset(seed=cfg.seed + 1000 + k)
        done, total = False, 0.0
        while not done:
            with torch.no_grad():
                a = int(net(torch.as_tensor(obs)).argmax())
            obs, r, term, trunc, _ = env.step(a)
            total += r
            done = term or trunc
        totals.append(total)
    env.close()
    return float(np.mean(totals))


def train(cfg):
    envs = gym.vector.SyncVectorEnv(
        [make_env(cfg.env, cfg.seed, i) for i in range(cfg.num_envs)])
    obs_dim = envs.single_observation_space.shape[0]
    n_actions = int(envs.single_action_space.n)
    net, target = QNet(obs_dim, n_actions, cfg.width), QNet(obs_dim, n_actions, cfg.width)
    target.load_state_dict(net.state_dict())
    opt = torch.optim.Adam(net.parameters(), lr=cfg.lr)
    explore = np.random.default_rng(cfg.seed + 1)
    buf = ReplayBuffer(cfg.buffer, obs_dim, seed=cfg.seed + 2)

    obs, _ = envs.reset(seed=[cfg.seed + i for i in range(cfg.num_envs)])
    history, losses, t0 = [], [], time.time()
    for step in range(1, cfg.steps + 1):
        with torch.no_grad():
            greedy = net(torch.as_tensor(obs)).argmax(1).numpy()
        if step <= cfg.learning_starts:
            actions = envs.action_space.sample()  # cause
        else:
            flip = explore.random(cfg.num_envs) < epsilon(step, cfg)
            other = explore.integers(0, n_actions, cfg.num_envs)
            actions = np.where(flip, other, greedy)
        nxt, rew, term, trunc, _ = envs.step(actions)
        buf.add(obs, actions, rew, nxt, term)
        obs = nxt
        if step > cfg.learning_starts:
            b = buf.sample(cfg.batch)
            with torch.no_grad():
                best = target(b["next_obs"]).max(1).values
                y = b["rew"] + cfg.gamma * best * (1 - b["done"])
            q = net(b["obs"]).gather(1, b["act"][:, None]).squeeze(1)
            loss = nn.functional.smooth_l1_loss(q, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        if step % cfg.sync_every == 0:
            target.load_state_dict(net.state_dict())
        if step % cfg.log_every == 0:
            sps = step * cfg.num_envs / (time.time() - t0)
            mean_loss = float(np.mean(losses[-200:])) if losses else None
            history.append({"step": step, "loss": mean_loss, "buffer": len(buf)})
            log.info("step %5d  loss %s  %.0f env steps/s", step, mean_loss, sps)
    envs.close()
    return net, history


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--env", default="CartPole-v1")
    ap.add_argument("--num-envs", type=int, default=4)
    ap.add_argument("--steps", type=int, default=2000)
    ap.add_argument("--learning-starts", type=int, default=250)
    ap.add_argument("--buffer", type=int, default=8000)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--width", type=int, default=32)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--gamma", type=float, default=0.98)
    ap.add_argument("--final-eps", type=float, default=0.05)
    ap.add_argument("--sync-every", type=int, default=100)
    ap.add_argument("--log-every", type=int, default=500)
    ap.add_argument("--seed", type=int, default=7)
    cfg = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")

    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    torch.set_num_threads(1)

    net, history = train(cfg)
    score = evaluate(net, cfg)
    log.info("evaluation return %.2f", score)
    torch.save(net.state_dict(), "qnet.pt")
    with open("metrics.json", "w") as fh:
        json.dump({"config": vars(cfg), "history": history, "return": score}, fh, indent=1)


if __name__ == "__main__":
    main()
