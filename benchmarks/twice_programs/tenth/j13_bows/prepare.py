"""Scenes as feature vectors, captions as word ids, and perturbed captions."""
import argparse
import json
import os
import random

import numpy as np

OBJECTS = ["dog", "cat", "horse", "table", "tree", "car", "bench", "child", "ball", "boat"]
COLOURS = ["red", "blue", "green", "white", "black", "brown"]
RELATIONS = ["left-of", "above", "behind", "inside", "near"]
VOCAB = ["<pad>"] + OBJECTS + COLOURS + RELATIONS


def caption(scene):
    (c1, o1), rel, (c2, o2) = scene
    return [VOCAB.index(w) for w in (c1, o1, rel, c2, o2)]


def swap(scene, task):
    (c1, o1), rel, (c2, o2) = scene
    if task == "relation":
        return (c2, o2), rel, (c1, o1)
    return (c2, o1), rel, (c1, o2)


def random_scene(rng):
    o1, o2 = rng.sample(OBJECTS, 2)
    c1, c2 = rng.sample(COLOURS, 2)
    return (c1, o1), rng.choice(RELATIONS), (c2, o2)


def image_features(scenes, codebook, noise_rng):
    out = []
    for scene in scenes:
        words = caption(scene)
        x = sum(codebook[pos, w] for pos, w in enumerate(words))
        out.append(x + noise_rng.normal(0, 1.5, codebook.shape[2]))
    return np.array(out, dtype=np.float32)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--config", required=True)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    with open(args.config) as fh:
        cfg = json.load(fh)
    rng = random.Random(cfg["seed"])
    nrng = np.random.RandomState(cfg["seed"])
    codebook = nrng.normal(0, 0.6, (5, len(VOCAB), cfg["dim"]))
    for split, n in (("train", cfg["n_train"]), ("test", cfg["n_test"])):
        scenes = [random_scene(rng) for _ in range(n)]
        np.savez(
            os.path.join(args.out, f"{split}.npz"),
            image=image_features(scenes, codebook, nrng),
            caption=np.array([caption(s) for s in scenes]),
            relation=np.array([caption(swap(s, "relation")) for s in scenes]),
            attribution=np.array([caption(swap(s, "attribution")) for s in scenes]),
        )
        print(f"{split}: {n} scenes")


if __name__ == "__main__":
    main()
