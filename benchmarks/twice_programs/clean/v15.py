"""PPO on CartPole with Stable-Baselines3 and its own logger, Monitor files and evaluations.

Output follows https://github.com/DLR-RM/stable-baselines3 (README, docs/common/logger.rst): tables with
time/fps, time/time_elapsed, progress.csv, progress.json, monitor.csv with t_start and t, evaluations.npz; run folders as in
https://github.com/DLR-RM/rl-baselines3-zoo.
"""
import os
import platform
import time
import uuid
from datetime import datetime

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.utils import set_random_seed

SEED = 7
ENV = "CartPole-v1"
TOTAL = 2048


class Throughput(BaseCallback):
    """Writes a line at every rollout: steps, steps per second, remaining time."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def _on_training_start(self):
        self.t0 = time.perf_counter()
        self.f = open(self.path, "w")
        self.f.write("timesteps,steps_per_s,eta_s,mean_reward\n")

    def _on_rollout_end(self):
        el = time.perf_counter() - self.t0
        rate = self.num_timesteps / el
        rewards = [e["r"] for e in self.model.ep_info_buffer]
        self.f.write(f"{self.num_timesteps},{rate:.1f},{(TOTAL - self.num_timesteps) / rate:.2f},{np.mean(rewards):.3f}\n")

    def _on_training_end(self):
        self.f.close()

    def _on_step(self):
        return True


class WallClock(gym.Wrapper):
    """Adds the seconds since the start of the run to info, as some wrappers do."""

    def __init__(self, env):
        super().__init__(env)
        self.t0 = time.time()

    def step(self, action):
        obs, r, term, trunc, info = self.env.step(action)
        info["wall"] = time.time() - self.t0
        return obs, r, term, trunc, info


def make_env(folder, seed, name):
    env = Monitor(WallClock(gym.make(ENV)), os.path.join(folder, name), info_keywords=("wall",))
    env.reset(seed=seed)
    env.action_space.seed(seed)
    return env


def rollout(model, episodes, seed):
    env = gym.make(ENV)
    returns, lengths = [], []
    t = time.perf_counter()
    for k in range(episodes):
        obs, _ = env.reset(seed=seed + k)
        total, n, done = 0.0, 0, False
        while not done:
            action, _ = model.predict(obs, deterministic=True)
            obs, r, term, trunc, _ = env.step(int(action))
            total, n, done = total + float(r), n + 1, term or trunc
        returns.append(total)
        lengths.append(n)
    dt = time.perf_counter() - t
    print(f"{episodes} episodes: {np.mean(returns):.2f} +/- {np.std(returns):.2f}  ({sum(lengths)} steps, {sum(lengths) / dt:.0f} fps)")
    return returns


def main():
    torch.set_num_threads(1)
    set_random_seed(SEED)
    uuid_str = f"_{uuid.uuid4()}"
    stamp = datetime.now().strftime("%Y-%m-%d-%H-%M-%S")
    folder = os.path.join("logs", "ppo", f"{ENV}_1{uuid_str}")
    os.makedirs(folder)
    print(f"========== {ENV} ==========\nSeed: {SEED}\nLog path: {folder}\nStarted {stamp}, pid {os.getpid()} on {platform.node()}")
    env = make_env(folder, SEED, "0")
    eval_env = make_env(folder, SEED + 100, "eval")
    model = PPO("MlpPolicy", env, n_steps=512, batch_size=64, n_epochs=4, learning_rate=1e-3, gamma=0.98, seed=SEED,
                verbose=1, device="cpu", policy_kwargs={"net_arch": [32, 32]})
    model.set_logger(configure(folder, ["stdout", "csv", "json", "log"]))
    cb = [Throughput(os.path.join(folder, "throughput.csv")),
          EvalCallback(eval_env, n_eval_episodes=3, eval_freq=1024, log_path=folder, best_model_save_path=folder, verbose=1)]
    model.learn(total_timesteps=TOTAL, callback=cb)
    print(f"Saving to {folder}")
    model.save(os.path.join(folder, f"{ENV}_{stamp}"))
    returns = rollout(model, 2, 5000)
    state = model.policy.state_dict()
    np.savez(os.path.join("logs", "final.npz"), returns=np.array(returns), started=stamp,
             **{k.replace(".", "_"): v.numpy() for k, v in state.items()})
    print("sum of weights %.6f" % sum(float(v.double().sum()) for v in state.values()))


if __name__ == "__main__":
    main()
