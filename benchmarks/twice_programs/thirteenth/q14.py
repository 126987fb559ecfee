"""Degrade clean document pages and train a quality classifier on them.

Report: https://github.com/sparkfish/augraphy/pull/221
The pipeline of augmentations is applied to rendered pages of two text densities.
"""
import argparse
import csv
import json
import logging
import random
import time
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from q14_augment import (
    AugmentationSequence,
    Brightness,
    DirtyDrum,
    InkBleed,
    draw_page,
    features,
)

log = logging.getLogger("augraphy")
WORDS = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor".split()


def set_seed(seed: int):
    random.seed(seed)
    np.random.seed(seed)


def pipeline() -> AugmentationSequence:
    return AugmentationSequence([InkBleed(), DirtyDrum(), Brightness()])


def make_page(dense: bool):
    n = random.randint(5, 6) if dense else random.randint(3, 5)
    return draw_page([" ".join(random.choices(WORDS, k=random.randint(4, 8))) for _ in range(n)])


def build(n: int):
    augment = pipeline()
    rows, labels, last = [], [], None
    for i in range(n):
        dense = i % 2 == 0
        image = augment(make_page(dense))
        rows.append(features(image))
        labels.append(int(dense))
        last = image
    return np.array(rows), np.array(labels), last


def parse_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--pages", type=int, default=160)
    ap.add_argument("--seed", type=int, default=42)
    ap.add_argument("--out", default="degraded")
    return ap.parse_args()


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    ns = parse_args()
    t0 = time.time()
    set_seed(ns.seed)
    x, y, last = build(ns.pages)
    log.info("%d pages in %.1fs", len(x), time.time() - t0)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=400))
    scores = cross_val_score(model, x, y, cv=5)
    out = Path(ns.out)
    out.mkdir(exist_ok=True)
    Image.fromarray(np.clip(last, 0, 255).astype(np.uint8)).save(out / "sample.png")
    with open(out / "features.csv", "w", newline="") as fh:
        csv.writer(fh).writerows([[f"{v:.6f}" for v in row] for row in x])
    (out / "scores.json").write_text(json.dumps([round(float(s), 6) for s in scores]))
    print("accuracy %.4f mean darkness %.5f" % (scores.mean(), 255 - x[:, 2].mean()))


if __name__ == "__main__":
    main()
