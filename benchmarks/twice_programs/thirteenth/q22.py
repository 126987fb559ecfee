"""Train a cart-pole policy from several actor processes.

Report: https://github.com/alex-petrenko/sample-factory/issues/65
Actors fill segments under a fixed exploration policy and one learner updates the values.
"""
import argparse
import json
import logging
import os
import random
import time
from pathlib import Path

import numpy as np

from q22_factory import Learner, LearnerConfig

log = logging.getLogger("train")


def seed_everything(seed: int):
    random.seed(seed)
    np.random.seed(seed)
    os.environ["SF_SEED"] = str(seed)


def parse_args():
    ap = argparse.ArgumentParser(description="train_gym")
    ap.add_argument("--env", default="CartPole-v1")
    ap.add_argument("--seed", type=int, default=5)
    ap.add_argument("--num_workers", type=int, default=4)
    ap.add_argument("--rollout", type=int, default=128)
    ap.add_argument("--segments", type=int, default=320)
    ap.add_argument("--train_dir", default="train_dir")
    return ap.parse_args()


def moving_average(values, width=20):
    kernel = np.ones(width) / width
    return np.convolve(values, kernel, mode="valid")


def main():
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s][%(process)05d] %(message)s")
    ns = parse_args()
    seed_everything(ns.seed)
    cfg = LearnerConfig(
        env_id=ns.env,
        actors=ns.num_workers,
        segments=ns.segments,
        length=ns.rollout,
        seed=ns.seed,
    )
    started = time.time()
    learner = Learner(cfg)
    learner.train()
    returns = learner.evaluate()
    out = Path(ns.train_dir)
    out.mkdir(exist_ok=True)
    np.save(out / "weights.npy", learner.policy.w)
    summary = {
        "frames": learner.frames,
        "loss": [round(float(v), 8) for v in moving_average(learner.losses)[::20]],
        "returns": returns,
        "mean_return": float(np.mean(returns)),
    }
    (out / "summary.json").write_text(json.dumps(summary, indent=1))
    print("frames", learner.frames, "mean return", summary["mean_return"])
    print("last loss", summary["loss"][-1])
    log.info("fps %.0f", learner.frames / (time.time() - started))


if __name__ == "__main__":
    main()
