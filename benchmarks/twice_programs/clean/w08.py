"""PPO on a small custom Gymnasium environment, single file, with a stable-baselines3 style logger
(human table on stdout, progress.csv, progress.json) and a monitor file per environment."""
import csv
import io
import json
import os
import pickle
import time
import zipfile
from collections import deque
from dataclasses import asdict, dataclass
from datetime import datetime

import gymnasium as gym
import numpy as np
import torch as th
import torch.nn as nn
from gymnasium import spaces
from torch.distributions import Categorical


@dataclass
class Args:
    exp_name: str = "ppo_corridor"
    seed: int = 1
    total_timesteps: int = 6144
    n_envs: int = 4
    n_steps: int = 128
    learning_rate: float = 2e-3
    gamma: float = 0.98
    gae_lambda: float = 0.95
    n_epochs: int = 4
    batch_size: int = 128
    clip_range: float = 0.2
    ent_coef: float = 0.01
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5


class WindyGrid(gym.Env):
    """6x6 grid; reach the goal; random wind pushes the agent sometimes."""

    metadata = {"render_modes": []}

    def __init__(self, size=6, wind=0.15, max_steps=60):
        self.size, self.wind, self.max_steps = size, wind, max_steps
        self.observation_space = spaces.Box(-1, 1, (4,), np.float32)
        self.action_space = spaces.Discrete(4)

    def _obs(self):
        return np.array([*self.pos, *(self.goal - self.pos)], np.float32) / self.size

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        self.pos = self.np_random.integers(0, self.size, 2)
        self.goal = self.np_random.integers(0, self.size, 2)
        while (self.pos == self.goal).all():
            self.goal = self.np_random.integers(0, self.size, 2)
        return self._obs(), {}

    def step(self, action):
        if self.np_random.random() < self.wind:
            action = self.np_random.integers(4)
        d = [(0, 1), (0, -1), (1, 0), (-1, 0)][int(action)]
        self.pos = np.clip(self.pos + d, 0, self.size - 1)
        self.t += 1
        done = bool((self.pos == self.goal).all())
        return self._obs(), (1.0 if done else -0.02), done, self.t >= self.max_steps, {}


class Monitor(gym.Wrapper):
    def __init__(self, env, filename):
        super().__init__(env)
        self.t_start = time.time()
        self.file = open(filename, "w", newline="")
        self.file.write("#" + json.dumps({"t_start": self.t_start, "env_id": "WindyGrid-v0"}) + "\n")
        self.w = csv.writer(self.file)
        self.w.writerow(["r", "l", "t"])

    def reset(self, **kw):
        self.rewards = []
        return self.env.reset(**kw)

    def step(self, a):
        obs, r, term, trunc, info = self.env.step(a)
        self.rewards.append(r)
        if term or trunc:
            ep = {"r": round(sum(self.rewards), 6), "l": len(self.rewards), "t": round(time.time() - self.t_start, 6)}
            self.w.writerow(ep.values())
            info["episode"] = ep
        return obs, r, term, trunc, info


class Logger:
    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.dir, self.kv, self.keys = folder, {}, None
        self.json = open(os.path.join(folder, "progress.json"), "wt")
        self.csv = open(os.path.join(folder, "progress.csv"), "wt", newline="")

    def record(self, k, v):
        self.kv[k] = v

    def dump(self):
        lines, tag = [], None
        for k, v in sorted(self.kv.items()):
            t, name = k.split("/")
            if t != tag:
                lines.append((t + "/", ""))
                tag = t
            lines.append(("   " + name, f"{v:<8.3g}" if isinstance(v, float) else str(v)))
        kw, vw = max(len(a) for a, _ in lines), max(len(b) for _, b in lines)
        dash = "-" * (kw + vw + 7)
        print("\n".join([dash] + [f"| {a:<{kw}} | {b:<{vw}} |" for a, b in lines] + [dash]))
        self.json.write(json.dumps(self.kv) + "\n")
        if self.keys is None:
            self.keys = sorted(self.kv)
            csv.writer(self.csv).writerow(self.keys)
        csv.writer(self.csv).writerow([self.kv[k] for k in self.keys])
        self.kv = {}


class ActorCritic(nn.Module):
    def __init__(self, obs_dim, n_act):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(obs_dim, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, n_act))
        self.vf = nn.Sequential(nn.Linear(obs_dim, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, obs):
        return Categorical(logits=self.pi(obs)), self.vf(obs).squeeze(-1)


def collect(envs, obs, net, a, infos):
    buf = {k: [] for k in ("obs", "act", "logp", "val", "rew", "done")}
    for _ in range(a.n_steps):
        with th.no_grad():
            dist, v = net(th.as_tensor(obs))
            act = dist.sample()
        nxt, rew, done = [], [], []
        for e, env in enumerate(envs):
            o, r, term, trunc, info = env.step(int(act[e]))
            if term or trunc:
                infos.append(info["episode"])
                o, _ = env.reset()
            nxt.append(o); rew.append(r); done.append(float(term or trunc))
        for k, val in zip(buf, (th.as_tensor(obs), act, dist.log_prob(act), v, th.tensor(rew), th.tensor(done))):
            buf[k].append(val)
        obs = np.stack(nxt)
    buf = {k: th.stack(v) for k, v in buf.items()}
    with th.no_grad():
        last = net(th.as_tensor(obs))[1]
    adv, g = th.zeros_like(buf["rew"]), 0.0
    for t in reversed(range(a.n_steps)):
        nv = last if t == a.n_steps - 1 else buf["val"][t + 1]
        delta = buf["rew"][t] + a.gamma * nv * (1 - buf["done"][t]) - buf["val"][t]
        g = delta + a.gamma * a.gae_lambda * (1 - buf["done"][t]) * g
        adv[t] = g
    buf["adv"], buf["ret"] = adv, adv + buf["val"]
    return obs, {k: v.flatten(0, 1) for k, v in buf.items()}


def update(net, opt, b, a):
    stats = {k: [] for k in ("policy_gradient_loss", "value_loss", "entropy_loss", "approx_kl", "clip_fraction")}
    n = len(b["obs"])
    for _ in range(a.n_epochs):
        for idx in th.randperm(n).split(a.batch_size):
            dist, v = net(b["obs"][idx])
            adv = b["adv"][idx]
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            ratio = (dist.log_prob(b["act"][idx]) - b["logp"][idx]).exp()
            pg = -th.min(adv * ratio, adv * ratio.clamp(1 - a.clip_range, 1 + a.clip_range)).mean()
            vl = ((v - b["ret"][idx]) ** 2).mean()
            ent = dist.entropy().mean()
            opt.zero_grad()
            (pg + a.vf_coef * vl - a.ent_coef * ent).backward()
            nn.utils.clip_grad_norm_(net.parameters(), a.max_grad_norm)
            opt.step()
            with th.no_grad():
                lr = ratio.log()
                vals = (pg, vl, -ent, ((ratio - 1) - lr).mean(), ((ratio - 1).abs() > a.clip_range).float().mean())
            for k, x in zip(stats, vals):
                stats[k].append(x.item())
    return {k: float(np.mean(v)) for k, v in stats.items()}


def save_zip(path, net, opt, a, extra):
    """Model archive laid out like SB3: data (json), policy.pth, policy.optimizer.pth, system_info.txt."""
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("data", json.dumps({**asdict(a), **extra}, indent=2))
        for name, obj in (("policy.pth", net.state_dict()), ("policy.optimizer.pth", opt.state_dict())):
            bio = io.BytesIO()
            th.save(obj, bio)
            z.writestr(name, bio.getvalue())
        z.writestr("system_info.txt", f"- PyTorch: {th.__version__}\n- Numpy: {np.__version__}\n- Gymnasium: {gym.__version__}\n")


def main():
    a = Args()
    th.manual_seed(a.seed)
    np.random.seed(a.seed)
    th.set_num_threads(1)
    run_name = f"{a.exp_name}__{a.seed}__{int(time.time())}"
    folder = os.path.join("runs", run_name)
    logger = Logger(folder)
    print(f"Using cpu device\nLogging to {folder}")
    envs = [Monitor(WindyGrid(), os.path.join(folder, f"{i}.monitor.csv")) for i in range(a.n_envs)]
    obs = np.stack([e.reset(seed=a.seed + i)[0] for i, e in enumerate(envs)])
    net = ActorCritic(4, 4)
    opt = th.optim.Adam(net.parameters(), lr=a.learning_rate, eps=1e-5)
    infos, start_ns, steps, it, n_updates = deque(maxlen=100), time.time_ns(), 0, 0, 0
    while steps < a.total_timesteps:
        obs, b = collect(envs, obs, net, a, infos)
        steps += a.n_envs * a.n_steps
        it += 1
        st = update(net, opt, b, a)
        n_updates += a.n_epochs
        elapsed = max((time.time_ns() - start_ns) / 1e9, 1e-9)
        logger.record("time/fps", int(steps / elapsed))
        logger.record("time/iterations", it)
        logger.record("time/time_elapsed", int(elapsed))
        logger.record("time/total_timesteps", steps)
        logger.record("rollout/ep_rew_mean", float(np.mean([i["r"] for i in infos])))
        logger.record("rollout/ep_len_mean", float(np.mean([i["l"] for i in infos])))
        logger.record("train/n_updates", n_updates)
        for k, v in st.items():
            logger.record("train/" + k, v)
        logger.dump()
    for e in envs:
        e.file.close()
    with open(os.path.join(folder, "ep_info_buffer.pkl"), "wb") as f:
        pickle.dump(list(infos), f)
    save_zip(os.path.join(folder, "final_model.zip"), net, opt, a,
             {"start_time": start_ns, "num_timesteps": steps, "saved": datetime.now().isoformat(timespec="seconds")})
    env, rets = WindyGrid(), []
    for ep in range(30):
        o, _ = env.reset(seed=1000 + ep)
        done, tot = False, 0.0
        while not done:
            with th.no_grad():
                act = net.pi(th.as_tensor(o)).argmax().item()
            o, r, term, trunc, _ = env.step(act)
            tot, done = tot + r, term or trunc
        rets.append(tot)
    print(f"mean_reward:{np.mean(rets):.4f} +/- {np.std(rets):.4f}")


if __name__ == "__main__":
    main()
