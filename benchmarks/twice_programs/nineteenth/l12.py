"""Offline reinforcement learning baseline: behaviour cloning and evaluation.

Collects a logged dataset, clones the safe part of it, checkpoints the policy
and evaluates it over a number of episodes (return, cost, length).

Modelled on: https://github.com/liuzuxin/OSRL/issues/27
"""
import argparse
import csv
import json
import random
from datetime import datetime
from pathlib import Path

import numpy as np
import torch

from l12_pkg.bc import BCPolicy, BCTrainer
from l12_pkg.dataset import collect


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def keep_safe(data):
    safe = data["costs"] == 0
    return {k: v[safe] for k, v in data.items()}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--task", default="CartPole-v1")
    ap.add_argument("--mode", choices=["all", "safe"], default="safe")
    ap.add_argument("--seed", type=int, default=20)
    ap.add_argument("--update-steps", type=int, default=250)
    ap.add_argument("--eval-episodes", type=int, default=12)
    ap.add_argument("--logdir", default="logs")
    args = ap.parse_args()

    torch.set_num_threads(1)
    seed_all(args.seed)
    run = Path(args.logdir) / f"{args.task}-BC-{args.mode}-seed{args.seed}"
    run.mkdir(parents=True, exist_ok=True)
    print(datetime.now().strftime("%H:%M:%S"), "run folder", run)

    data = collect(args.task, 5000, noise=0.15, seed=args.seed)
    if args.mode == "safe":
        data = keep_safe(data)
    print(f"{len(data['actions'])} transitions, share of action 1: {data['actions'].mean():.4f}")

    policy = BCPolicy(data["observations"].shape[1], 2)
    trainer = BCTrainer(policy, args.task)
    generator = torch.Generator().manual_seed(args.seed)
    losses = trainer.train(data, args.update_steps, generator)
    torch.save(policy.state_dict(), run / "policy.pt")
    with open(run / "train.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["step", "loss"])
        writer.writerows((i, f"{v:.6f}") for i, v in enumerate(losses))
    print(f"final loss {np.mean(losses[-20:]):.6f}")

    episodes = trainer.evaluate(args.eval_episodes)
    with open(run / "eval.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["episode", "return", "cost", "length", "mean_angle"])
        for i, (ret, cost, length, angle) in enumerate(episodes):
            writer.writerow([i, f"{ret:.4f}", f"{cost:.0f}", length, f"{angle:.6f}"])
    ret, cost, length, angle = np.mean(episodes, axis=0)
    summary = {"return": round(ret, 4), "cost": round(cost, 4), "length": round(length, 2), "angle": round(angle, 6)}
    (run / "summary.json").write_text(json.dumps(summary, indent=2))
    print("Eval reward: {return}, cost: {cost}, length: {length}, angle: {angle}".format(**summary))


if __name__ == "__main__":
    main()
