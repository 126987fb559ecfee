"""A2C on a gridworld with Stable-Baselines3 style outputs.

Modelled on DLR-RM/stable-baselines3: common/monitor.py (monitor.csv with "#{"t_start": ...}" and r,l,t
columns), common/logger.py HumanOutputFormat tables + progress.csv (time/fps, time/time_elapsed),
EvalCallback's evaluations.npz and rl-baselines3-zoo's logs/<algo>/<env>_1 layout. numpy only.
"""
import csv
import json
import os
import time
from collections import deque

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class GridEnv(gym.Env):
    def __init__(self, size=5):
        self.size, self.observation_space, self.action_space = size, spaces.Discrete(size * size), spaces.Discrete(4)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.pos, self.t = np.array([self.np_random.integers(2), self.np_random.integers(2)]), 0
        return self._obs(), {}

    def _obs(self):
        return int(self.pos[0] * self.size + self.pos[1])

    def step(self, action):
        if self.np_random.random() < 0.1:
            action = self.np_random.integers(4)
        self.pos = np.clip(self.pos + [(0, 1), (1, 0), (0, -1), (-1, 0)][action], 0, self.size - 1)
        self.t += 1
        goal = bool((self.pos == self.size - 1).all())
        pit = tuple(self.pos) in ((2, 2), (1, 3))
        return self._obs(), 1.0 if goal else (-0.5 if pit else -0.01), goal or pit, self.t >= 50, {}


class Monitor(gym.Wrapper):
    def __init__(self, env, filename):
        super().__init__(env)
        self.t_start = time.time()
        os.makedirs(os.path.dirname(filename), exist_ok=True)
        self.f = open(filename, 'w', newline='\n')
        self.f.write('#%s\n' % json.dumps({'t_start': self.t_start, 'env_id': 'Grid-v0'}))
        self.w = csv.DictWriter(self.f, fieldnames=('r', 'l', 't'))
        self.w.writeheader()
        self.rewards = []

    def reset(self, **kw):
        self.rewards = []
        return self.env.reset(**kw)

    def step(self, action):
        obs, r, term, trunc, info = self.env.step(action)
        self.rewards.append(float(r))
        if term or trunc:
            ep = {'r': round(sum(self.rewards), 6), 'l': len(self.rewards), 't': round(time.time() - self.t_start, 6)}
            self.w.writerow(ep)
            self.f.flush()
            info['episode'] = ep
        return obs, r, term, trunc, info


class Logger:
    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.kv, self.file, self.keys = {}, open(os.path.join(folder, 'progress.csv'), 'w'), None

    def record(self, k, v):
        self.kv[k] = v

    def dump(self):
        rows, tag = [], None
        for k in sorted(self.kv):
            if k.split('/')[0] != tag:
                tag = k.split('/')[0]
                rows.append((tag + '/', ''))
            v = self.kv[k]
            rows.append(('   ' + k.split('/')[1], f'{v:<8.3g}' if isinstance(v, float) else str(v)))
        kw, vw = max(len(r[0]) for r in rows), max(len(r[1]) for r in rows)
        dashes = '-' * (kw + vw + 7)
        print('\n'.join([dashes] + [f'| {a}{" " * (kw - len(a))} | {b}{" " * (vw - len(b))} |' for a, b in rows] + [dashes]))
        if self.keys is None:
            self.keys = sorted(self.kv)
            self.file.write(','.join(self.keys) + '\n')
        self.file.write(','.join(str(self.kv[k]) for k in self.keys) + '\n')
        self.file.flush()
        self.kv = {}


class A2C:
    def __init__(self, env, seed, lr=0.15, gamma=0.98, n_steps=16, ent_coef=0.01):
        self.env, self.lr, self.gamma, self.n_steps, self.ent = env, lr, gamma, n_steps, ent_coef
        self.rng = np.random.default_rng(seed)
        self.theta, self.v = np.zeros((25, 4)), np.zeros(25)
        self.num_timesteps, self.n_updates, self.ep_info = 0, 0, deque(maxlen=100)

    def probs(self, s):
        z = np.exp(self.theta[s] - self.theta[s].max())
        return z / z.sum()

    def predict(self, s):
        return int(self.theta[s].argmax())

    def learn(self, total, logger, callback, log_interval=200, seed=0):
        s, _ = self.env.reset(seed=seed)
        t0, it = time.time_ns(), 0
        while self.num_timesteps < total:
            traj = []
            for _ in range(self.n_steps):
                a = int(self.rng.choice(4, p=self.probs(s)))
                s2, r, term, trunc, info = self.env.step(a)
                traj.append((s, a, r, s2, term))
                self.num_timesteps += 1
                if 'episode' in info:
                    self.ep_info.append(info['episode'])
                s = self.env.reset()[0] if term or trunc else s2
            ret, vl, pl, en = self.v[traj[-1][3]] * (not traj[-1][4]), 0.0, 0.0, 0.0
            for st, a, r, s2, term in reversed(traj):
                ret = r + self.gamma * (0 if term else ret)
                adv = ret - self.v[st]
                p = self.probs(st)
                vl, pl, en = vl + adv ** 2, pl - np.log(p[a]) * adv, en - (p * np.log(p)).sum()
                self.v[st] += self.lr * adv
                g = -p * adv
                g[a] += adv
                self.theta[st] += self.lr * (g - self.ent * p * (np.log(p) + (-(p * np.log(p)).sum())))
            it += 1
            self.n_updates += 1
            callback(self)
            if it % log_interval == 0:
                elapsed = max((time.time_ns() - t0) / 1e9, 1e-9)
                logger.record('rollout/ep_rew_mean', float(np.mean([e['r'] for e in self.ep_info])))
                logger.record('rollout/ep_len_mean', float(np.mean([e['l'] for e in self.ep_info])))
                logger.record('time/fps', int(self.num_timesteps / elapsed))
                logger.record('time/iterations', it)
                logger.record('time/time_elapsed', int(elapsed))
                logger.record('time/total_timesteps', self.num_timesteps)
                logger.record('train/entropy_loss', float(-en / self.n_steps))
                logger.record('train/value_loss', float(vl / self.n_steps))
                logger.record('train/policy_loss', float(pl / self.n_steps))
                logger.record('train/n_updates', self.n_updates)
                logger.dump()
        return self


class EvalCallback:
    def __init__(self, folder, freq=8000):
        self.env, self.folder, self.freq, self.best = GridEnv(), folder, freq, -np.inf
        self.steps, self.res, self.len = [], [], []

    def __call__(self, model):
        if model.num_timesteps % self.freq:
            return
        rs, ls = [], []
        for ep in range(20):
            s, _ = self.env.reset(seed=ep)
            R, l, done = 0.0, 0, False
            while not done:
                s, r, te, tr, _ = self.env.step(model.predict(s))
                R, l, done = R + r, l + 1, te or tr
            rs.append(R)
            ls.append(l)
        self.steps.append(model.num_timesteps)
        self.res.append(rs)
        self.len.append(ls)
        np.savez(f'{self.folder}/evaluations', timesteps=self.steps, results=self.res, ep_lengths=self.len)
        print(f'Eval num_timesteps={model.num_timesteps}, episode_reward={np.mean(rs):.2f} +/- {np.std(rs):.2f}')
        print(f'Episode length: {np.mean(ls):.2f} +/- {np.std(ls):.2f}')
        if np.mean(rs) > self.best:
            self.best = np.mean(rs)
            print('New best mean reward!')
            np.savez(f'{self.folder}/best_model', theta=model.theta, v=model.v)


if __name__ == '__main__':
    folder = 'logs/a2c/Grid-v0_1'
    env = Monitor(GridEnv(), f'{folder}/0.monitor.csv')
    print('Using cpu device')
    model = A2C(env, seed=3)
    t0 = time.time()
    model.learn(48_000, Logger(folder), EvalCallback(folder), log_interval=400, seed=3)
    json.dump({'algo': 'a2c', 'n_timesteps': model.num_timesteps, 'seed': 3, 'policy': [model.predict(s) for s in range(25)],
               'train_time_s': round(time.time() - t0, 2)}, open(f'{folder}/config.json', 'w'), indent=1)
    print(f'Saving to {folder} ... done in {time.time() - t0:.1f}s')
