"""Vanilla policy gradient on CartPole.

Modelled on: openai/spinningup (spinup/utils/logx.py EpochLogger, spinup/utils/run_utils.py and
spinup/algos/pytorch/vpg): data/<date>_<exp>/<date_time>-<exp>_s<seed>/progress.txt with a Time
column, config.json, vars.pkl and pyt_save/model.pt.
"""
import argparse
import json
import os
import os.path as osp
import time

import gymnasium as gym
import joblib
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

COLORS = dict(green=32, cyan=36, magenta=35)


def colorize(text, color="green", bold=True):
    return f"\x1b[{COLORS[color]}{';1' if bold else ''}m{text}\x1b[0m"


def setup_logger_kwargs(exp_name, seed, data_dir="data", datestamp=True):
    """data/YY-MM-DD_exp/YY-MM-DD_HH-MM-SS-exp_s0, as the run utilities of the project do."""
    ymd = time.strftime("%Y-%m-%d_") if datestamp else ""
    top = ymd + exp_name
    hms = time.strftime("%Y-%m-%d_%H-%M-%S") if datestamp else ""
    sub = f"{hms}-{exp_name}_s{seed}"
    return dict(output_dir=osp.join(data_dir, top, sub), exp_name=exp_name)


class EpochLogger:
    def __init__(self, output_dir, exp_name):
        self.output_dir, self.exp_name = output_dir, exp_name
        os.makedirs(output_dir, exist_ok=True)
        self.file = open(osp.join(output_dir, "progress.txt"), "w")
        print(colorize(f"Logging data to {self.file.name}"))
        self.headers, self.row, self.store_, self.first = [], {}, {}, True

    def save_config(self, config):
        config = dict(config, exp_name=self.exp_name)
        text = json.dumps(config, separators=(",", ":\t"), indent=4, sort_keys=True)
        print(colorize("Saving config:\n", "cyan"))
        print(text)
        with open(osp.join(self.output_dir, "config.json"), "w") as out:
            out.write(text)

    def store(self, **kw):
        for k, v in kw.items():
            self.store_.setdefault(k, []).append(v)

    def tabular(self, key, val=None, minmax=False):
        if val is not None:
            self.row[key] = val
            if self.first:
                self.headers.append(key)
            return
        x = np.asarray(self.store_.pop(key), dtype=np.float64)
        self.tabular("Average" + key, x.mean())
        self.tabular("Std" + key, x.std())
        if minmax:
            self.tabular("Max" + key, x.max())
            self.tabular("Min" + key, x.min())

    def dump(self):
        width = max(15, max(map(len, self.headers)))
        print("-" * (width + 22))
        for key in self.headers:
            val = self.row[key]
            print(f"| {key:>{width}} | {'%8.3g' % val if not isinstance(val, str) else val:>15} |")
        print("-" * (width + 22), flush=True)
        if self.first:
            self.file.write("\t".join(self.headers) + "\n")
        self.file.write("\t".join(str(self.row[k]) for k in self.headers) + "\n")
        self.file.flush()
        self.row, self.first = {}, False

    def save_state(self, state, model):
        joblib.dump(state, osp.join(self.output_dir, "vars.pkl"))
        os.makedirs(osp.join(self.output_dir, "pyt_save"), exist_ok=True)
        torch.save(model.state_dict(), osp.join(self.output_dir, "pyt_save", "model.pt"))


def mlp(sizes, activation=nn.Tanh):
    layers = []
    for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:])):
        layers += [nn.Linear(a, b), activation() if i < len(sizes) - 2 else nn.Identity()]
    return nn.Sequential(*layers)


class ActorCritic(nn.Module):
    def __init__(self, obs_dim, n_act, hidden):
        super().__init__()
        self.pi = mlp([obs_dim, *hidden, n_act])
        self.v = mlp([obs_dim, *hidden, 1])

    @torch.no_grad()
    def step(self, obs):
        dist = Categorical(logits=self.pi(obs))
        a = dist.sample()
        return a.item(), self.v(obs).item()


def discount(x, g):
    out, run = np.zeros(len(x), dtype=np.float32), 0.0
    for i in reversed(range(len(x))):
        run = x[i] + g * run
        out[i] = run
    return out


def vpg(args, logger):
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    env = gym.make(args.env)
    ac = ActorCritic(env.observation_space.shape[0], env.action_space.n, [args.hid] * args.l)
    n = [sum(p.numel() for p in m.parameters()) for m in (ac.pi, ac.v)]
    print(colorize("\nNumber of parameters: \t pi: %d, \t v: %d\n" % tuple(n)))
    pi_opt = torch.optim.Adam(ac.pi.parameters(), lr=3e-3)
    v_opt = torch.optim.Adam(ac.v.parameters(), lr=1e-2)
    start = time.time()
    obs, _ = env.reset(seed=args.seed)
    for epoch in range(args.epochs):
        O, A, R, V, adv, ret = [], [], [], [], [], []
        ep_r, ep_v = [], []
        for t in range(args.steps):
            a, v = ac.step(torch.as_tensor(obs, dtype=torch.float32))
            nxt, r, term, trunc, _ = env.step(a)
            O.append(obs), A.append(a), ep_r.append(r), ep_v.append(v)
            logger.store(VVals=v)
            obs = nxt
            cut = t == args.steps - 1
            if term or trunc or cut:
                last = 0.0 if term else ac.step(torch.as_tensor(obs, dtype=torch.float32))[1]
                rews, vals = np.append(ep_r, last), np.append(ep_v, last)
                adv.append(discount(rews[:-1] + args.gamma * vals[1:] - vals[:-1], args.gamma * args.lam))
                ret.append(discount(rews, args.gamma)[:-1])
                if term or trunc:
                    logger.store(EpRet=sum(ep_r), EpLen=len(ep_r))
                ep_r, ep_v = [], []
                obs, _ = env.reset()
        O = torch.as_tensor(np.array(O), dtype=torch.float32)
        A = torch.as_tensor(A)
        adv = torch.as_tensor(np.concatenate(adv))
        adv = (adv - adv.mean()) / adv.std()
        ret = torch.as_tensor(np.concatenate(ret))
        dist = Categorical(logits=ac.pi(O))
        loss_pi = -(dist.log_prob(A) * adv).mean()
        pi_opt.zero_grad(), loss_pi.backward(), pi_opt.step()
        for _ in range(args.v_iters):
            loss_v = ((ac.v(O).squeeze(-1) - ret) ** 2).mean()
            v_opt.zero_grad(), loss_v.backward(), v_opt.step()
        logger.tabular("Epoch", epoch)
        logger.tabular("EpRet", minmax=True)
        logger.tabular("EpLen")
        logger.tabular("VVals", minmax=True)
        logger.tabular("TotalEnvInteracts", (epoch + 1) * args.steps)
        logger.tabular("LossPi", loss_pi.item())
        logger.tabular("LossV", loss_v.item())
        logger.tabular("Entropy", dist.entropy().mean().item())
        logger.tabular("Time", time.time() - start)
        logger.dump()
    logger.save_state({"epoch": args.epochs, "last_obs": obs}, ac)
    env.close()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--env", default="CartPole-v1")
    p.add_argument("--hid", type=int, default=32)
    p.add_argument("--l", type=int, default=2)
    p.add_argument("--gamma", type=float, default=0.99)
    p.add_argument("--lam", type=float, default=0.97)
    p.add_argument("--seed", "-s", type=int, default=3)
    p.add_argument("--steps", type=int, default=600)
    p.add_argument("--v_iters", type=int, default=20)
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--exp_name", default="vpg")
    args = p.parse_args()
    torch.set_num_threads(1)
    logger = EpochLogger(**setup_logger_kwargs(args.exp_name, args.seed))
    logger.save_config(vars(args) | {"output_dir": logger.output_dir})
    vpg(args, logger)
