"""PPO on CartPole with the stock logger, the monitor file and an evaluation callback.

Modelled on: DLR-RM/rl-baselines3-zoo (train.py on Stable-Baselines3; progress.csv,
progress.json, monitor.csv, evaluations.npz; time/fps and time/time_elapsed in tables).
"""
import json
import os
import time
import uuid
from datetime import datetime
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
import yaml
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import DummyVecEnv

HYPER = {
    "env": "CartPole-v1",
    "n_envs": 4,
    "n_timesteps": 4096,
    "policy": "MlpPolicy",
    "n_steps": 128,
    "batch_size": 128,
    "n_epochs": 5,
    "gae_lambda": 0.8,
    "gamma": 0.98,
    "ent_coef": 0.0,
    "learning_rate": 1e-3,
    "clip_range": 0.2,
    "seed": 42,
}


def make_env(rank, log_dir, seed):
    def _init():
        env = gym.make(HYPER["env"])
        env = Monitor(env, str(log_dir / str(rank)))
        env.reset(seed=seed + rank)
        env.action_space.seed(seed + rank)
        return env
    return _init


class ThroughputCallback(BaseCallback):
    """Steps per second between two rollouts, kept in a small JSON lines file."""

    def __init__(self, path):
        super().__init__()
        self.path = path
        self.last = None
        self.steps = 0

    def _on_training_start(self):
        self.last = time.perf_counter()
        self.fh = open(self.path, "w")

    def _on_step(self):
        return True

    def _on_rollout_end(self):
        now = time.perf_counter()
        n = self.num_timesteps - self.steps
        self.fh.write(json.dumps({"timesteps": self.num_timesteps, "rollout_s": now - self.last,
                                  "sps": n / (now - self.last), "ts": datetime.now().isoformat()}) + "\n")
        self.fh.flush()
        self.last, self.steps = now, self.num_timesteps

    def _on_training_end(self):
        self.fh.close()


def main():
    torch.set_num_threads(1)
    seed = HYPER["seed"]
    set_random_seed(seed)
    run_id = uuid.uuid4().hex[:8]
    log_dir = Path("logs/ppo") / f"{HYPER['env']}_1"
    log_dir.mkdir(parents=True, exist_ok=True)
    print("========== {} ==========".format(HYPER["env"]))
    print(f"Seed: {seed}")
    print(f"Run id: {run_id} (pid {os.getpid()})")
    print("Default hyperparameters for environment (ones being tuned will be overridden):")
    for k in sorted(HYPER):
        print(f"  {k}: {HYPER[k]}")
    (log_dir / "config.yml").write_text(yaml.safe_dump({**HYPER, "run_id": run_id, "started": datetime.now()}))

    env = DummyVecEnv([make_env(i, log_dir, seed) for i in range(HYPER["n_envs"])])
    env.seed(seed)
    eval_env = DummyVecEnv([lambda: Monitor(gym.make(HYPER["env"]))])
    eval_env.seed(seed + 1000)
    model = PPO(
        HYPER["policy"], env, n_steps=HYPER["n_steps"], batch_size=HYPER["batch_size"], n_epochs=HYPER["n_epochs"],
        gae_lambda=HYPER["gae_lambda"], gamma=HYPER["gamma"], ent_coef=HYPER["ent_coef"],
        learning_rate=HYPER["learning_rate"], clip_range=HYPER["clip_range"], seed=seed, verbose=1, device="cpu",
    )
    model.set_logger(configure(str(log_dir), ["stdout", "csv", "json", "tensorboard"]))
    callbacks = CallbackList([
        EvalCallback(eval_env, n_eval_episodes=3, eval_freq=256, log_path=str(log_dir),
                     best_model_save_path=str(log_dir), deterministic=True, verbose=1),
        ThroughputCallback(log_dir / "throughput.jsonl"),
    ])
    t0 = time.time()
    model.learn(HYPER["n_timesteps"], callback=callbacks, log_interval=1)
    took = time.time() - t0
    print(f"Saving to {log_dir}")
    torch.save(model.policy.state_dict(), log_dir / "policy.pth")

    mean, std = evaluate_policy(model, eval_env, n_eval_episodes=5, deterministic=True)
    print(f"Mean reward: {mean:.2f} +/- {std:.2f}")
    print(f"Training took {took:.2f} s, {HYPER['n_timesteps'] / took:.0f} fps")
    flat = torch.cat([p.detach().flatten() for p in model.policy.parameters()])
    summary = {"run_id": run_id, "env": HYPER["env"], "mean_reward": float(mean), "std_reward": float(std),
               "weight_norm": float(flat.norm()), "n_params": int(flat.numel()), "train_time": took,
               "date": datetime.now().strftime("%Y-%m-%d %H:%M:%S")}
    (log_dir / "summary.json").write_text(json.dumps(summary, indent=2))
    evals = np.load(log_dir / "evaluations.npz")
    for step, res in zip(evals["timesteps"], evals["results"]):
        print(f"  eval at {step:6d}: {res.mean():.1f}")


if __name__ == "__main__":
    main()
