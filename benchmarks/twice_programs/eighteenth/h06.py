"""Trains a tabular agent on a small dice driven board game and evaluates it.

Modelled on: https://github.com/njustesen/botbowl/issues/70
"""
import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from h06_pkg.agent import QAgent  # noqa: E402
from h06_pkg.env import DiceBallEnv  # noqa: E402
from h06_pkg.runner import evaluate, train  # noqa: E402


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--episodes", type=int, default=1500)
    ap.add_argument("--eval-episodes", type=int, default=300)
    ap.add_argument("--seed", type=int, default=12345)
    args = ap.parse_args()

    env = DiceBallEnv()
    env.action_space.seed(args.seed)
    agent = QAgent(env.n_states, env.action_space.n, seed=args.seed)

    history = train(env, agent, args.episodes, args.seed, "progress.csv")
    result = evaluate(env, agent, args.eval_episodes, args.seed + 1)
    agent.save("q_table.npy")
    with open("evaluation.json", "w") as f:
        json.dump({"seed": args.seed, "train_return": history[-1]["return"], **result}, f, indent=2)
    print("evaluation:", json.dumps(result))


if __name__ == "__main__":
    main()
