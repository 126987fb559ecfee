"""Offline augmentation of a leaf-disease picture set.

Renders the base pictures, applies the augmentation pipeline to each of them a
few times, stores the augmented set as one archive and trains the little
baseline classifier on its colour/texture features.

Modelled on: https://github.com/aleju/imgaug/issues/804
"""
import hashlib
import json
import logging
import time

import numpy as np

from y06_pkg import augmenters as iaa
from y06_pkg.classify import evaluate
from y06_pkg.pictures import render_set

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("augment")
SEED = 42


def pipeline(rng):
    return iaa.Sequential([
        iaa.Fliplr(0.5, seed=rng),
        iaa.Translate(4, seed=rng),
        iaa.AddToBrightness((-30, 30), seed=rng),
        iaa.Dropout((0.0, 0.05), seed=rng),
        iaa.GaussianBlur((0.0, 0.9), seed=rng),
    ])


def main():
    t0 = time.perf_counter()
    images, labels = render_set(150, size=48, seed=SEED)
    seq = pipeline(iaa.RNG(SEED))
    log.info("pipeline: %s", seq)
    copies, targets = [], []
    for k in range(3):
        copies.append(seq(images))
        targets.append(labels)
        log.info("pass %d: mean level %.4f", k, copies[-1].mean())
    aug, y = np.concatenate(copies), np.concatenate(targets)
    np.savez_compressed("augmented.npz", images=aug, labels=y)
    result = evaluate(aug, y, images, labels, seed=SEED)
    result["mean_level"] = float(aug.mean())
    result["digest"] = hashlib.sha256(aug.tobytes()).hexdigest()[:16]
    with open("augment.json", "w") as fh:
        json.dump(result, fh, indent=1)
    for k, v in result.items():
        print(f"{k:<16s} {v}")
    log.info("%d pictures in %.2f s", len(aug), time.perf_counter() - t0)


if __name__ == "__main__":
    main()
