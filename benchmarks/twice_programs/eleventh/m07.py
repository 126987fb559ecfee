"""Train a team of units in a skirmish game.

Modelled on https://github.com/oxwhirl/smacv2/pull/54
Trains a shared Q-table on a procedurally generated battle and reports win rates.
"""
import argparse
import json
import logging
import random
import time
from pathlib import Path

import numpy as np

from m07_skirmish import SkirmishEnv, TeamLearner, load_map
from m07_skirmish.env import ACTIONS

log = logging.getLogger("skirmish")

CONFIG = {
    "map": "3v3",
    "seed": 12,
    "episodes": 250,
    "test_every": 50,
    "test_episodes": 30,
    "capabilities": {"teams": "weighted_teams", "starts": "surrounded"},
}


def set_global_seed(seed):
    random.seed(seed)
    np.random.seed(seed)


def play(env, learner, explore):
    states = env.reset()
    total, done, info = 0.0, False, {}
    while not done:
        actions = learner.act(states, explore)
        following, reward, done, info = env.step(actions)
        if explore:
            learner.update(states, actions, reward, following, done)
        states = following
        total += reward
    return total, info["won"], env.steps


def test(env, learner, episodes):
    outcomes = [play(env, learner, explore=False) for _ in range(episodes)]
    returns, wins, lengths = zip(*outcomes)
    return {
        "return": round(float(np.mean(returns)), 5),
        "win_rate": round(float(np.mean(wins)), 5),
        "length": round(float(np.mean(lengths)), 3),
    }


def train(config):
    env = SkirmishEnv(load_map(config["map"]), config["capabilities"])
    learner = TeamLearner(len(ACTIONS))
    curve, history = [], []
    started = time.time()
    for episode in range(1, config["episodes"] + 1):
        total, won, length = play(env, learner, explore=True)
        learner.end_episode()
        curve.append((episode, round(float(total), 5), int(won), length))
        if episode % config["test_every"] == 0:
            result = test(env, learner, config["test_episodes"])
            result["episode"] = episode
            history.append(result)
            log.info("episode %d: return %.3f win rate %.3f (%.1fs)", episode,
                     result["return"], result["win_rate"], time.time() - started)
    return learner, curve, history


def describe_policy(learner):
    rows = {}
    for state in sorted(learner.q):
        values = learner.q[state]
        rows["|".join(map(str, state))] = {
            "best": ACTIONS[int(np.argmax(values))],
            "value": round(float(values.max()), 5),
        }
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=CONFIG["seed"])
    parser.add_argument("--episodes", type=int, default=CONFIG["episodes"])
    parser.add_argument("--map", default=CONFIG["map"])
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    config = dict(CONFIG, seed=args.seed, episodes=args.episodes, map=args.map)
    set_global_seed(config["seed"])

    learner, curve, history = train(config)
    out = Path("skirmish_results")
    out.mkdir(exist_ok=True)
    (out / "config.json").write_text(json.dumps(config, indent=1))
    (out / "history.json").write_text(json.dumps(history, indent=1))
    (out / "policy.json").write_text(json.dumps(describe_policy(learner), indent=1))
    with open(out / "curve.csv", "w") as fh:
        fh.write("episode,return,won,length\n")
        for row in curve:
            fh.write(",".join(map(str, row)) + "\n")

    for row in history:
        print(f"episode {row['episode']:4d}  return {row['return']:8.4f}  "
              f"wins {row['win_rate']:.3f}  length {row['length']:.2f}")
    print(f"states in table: {len(learner.q)}")


if __name__ == "__main__":
    main()
