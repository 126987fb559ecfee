"""Offline Q-learning on a logged cart-pole data set.

Collects transitions with a scripted behaviour policy, trains a small Q-network
offline with conservative regularisation and evaluates it in the environment
after every epoch. The curve, the final returns and the weights are saved.

Modelled on: https://github.com/takuseno/d3rlpy/issues/419
"""
import json
import os
import random
import sys
import time

import numpy as np
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from w02_pkg.algo import CQLConfig, DiscreteCQL
from w02_pkg.dataset import collect_dataset
from w02_pkg.envs import make_env
from w02_pkg.metrics import EnvironmentEvaluator, TDErrorEvaluator
from w02_pkg.logger import RunLogger

SEED = 123


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)


def main():
    seed_everything(SEED)
    torch.set_num_threads(1)
    logger = RunLogger("offline_cartpole")

    dataset = collect_dataset(make_env(), n_episodes=60, seed=SEED)
    logger.info(f"dataset: {len(dataset)} transitions, {dataset.n_episodes} episodes, "
                f"behaviour return {dataset.mean_return:.2f}")

    config = CQLConfig(batch_size=128, gamma=0.97, learning_rate=1e-3, alpha=0.4,
                       target_update_interval=100)
    algo = DiscreteCQL(obs_size=4, n_actions=2, config=config, seed=SEED)
    evaluators = {
        "environment": EnvironmentEvaluator(make_env(), n_trials=8),
        "td_error": TDErrorEvaluator(dataset, n=2000),
    }

    curve, best = [], None
    for epoch in range(1, 9):
        start = time.perf_counter()
        loss = algo.fit_epoch(dataset, n_steps=250)
        scores = {name: evaluate(algo) for name, evaluate in evaluators.items()}
        curve.append({"epoch": epoch, "loss": loss, **scores})
        logger.info(f"epoch {epoch}: loss={loss:.5f} environment={scores['environment']:.3f} "
                    f"td_error={scores['td_error']:.5f} [{time.perf_counter() - start:.2f} s]")
        if best is None or scores["environment"] > best["environment"]:
            best = {"epoch": epoch, "environment": scores["environment"]}
            torch.save(algo.state_dict(), "best_model.pt")

    logger.info(f"best epoch {best['epoch']} with return {best['environment']:.3f}")
    final = evaluators["environment"].returns[-8:]
    with open("evaluation.json", "w") as fh:
        json.dump({"curve": curve, "best": best, "final_returns": final}, fh, indent=2)
    logger.close()


if __name__ == "__main__":
    main()
