"""Embeddings of molecules from predicted structures.

Modelled on https://github.com/blazejba/Monroe/issues/2
Predicts a structure for every molecule, encodes it with a transformer and fits a linear probe.
"""
import argparse
import json
import logging
import os
import random
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

from s11_embed import Featurizer, StructureEncoder

log = logging.getLogger("embed")


@dataclass
class EmbedConfig:
    seed: int = 2026
    molecules: int = 50
    workers: int = 2
    chunk: int = 2
    batch: int = 32


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def random_smiles(rng, size):
    out, depth = "C", 0
    atoms = 1
    while atoms < size:
        if rng.random() < 0.2 and out[-1] not in "()":
            out += "("
            depth += 1
        elif depth and rng.random() < 0.3 and out[-1] != "(":
            out += ")"
            depth -= 1
            continue
        out += rng.choice("CCCNOS")
        atoms += 1
    return out + ")" * depth


def build_set(cfg):
    rng = random.Random(cfg.seed)
    smiles = [random_smiles(rng, rng.randint(6, 16)) for _ in range(cfg.molecules)]
    target = [0.4 * s.count("C") - 1.1 * s.count("N") - 0.9 * s.count("O") + 0.3 * s.count("(")
              for s in smiles]
    return smiles, np.array(target)


def collate(features):
    longest = max(len(f) for f in features)
    x = torch.zeros(len(features), longest, features[0].shape[1])
    mask = torch.zeros(len(features), longest)
    for k, f in enumerate(features):
        x[k, : len(f)] = torch.from_numpy(f)
        mask[k, : len(f)] = 1
    return x, mask


@torch.no_grad()
def embed_smiles(smiles, encoder, cfg):
    features = Featurizer(cfg.workers, cfg.chunk, cfg.seed)(smiles)
    encoder.eval()
    parts = []
    for start in range(0, len(features), cfg.batch):
        x, mask = collate(features[start:start + cfg.batch])
        parts.append(encoder(x, mask))
    return torch.cat(parts).numpy()


def probe(embeddings, target, cfg):
    train, test = train_test_split(np.arange(len(target)), test_size=0.3, random_state=cfg.seed)
    model = Ridge(1e-2).fit(embeddings[train], target[train])
    pred = model.predict(embeddings)
    return pred, float(r2_score(target[test], pred[test]))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--molecules", type=int, default=EmbedConfig.molecules)
    ap.add_argument("--workers", type=int, default=EmbedConfig.workers)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(1)
    cfg = EmbedConfig(molecules=args.molecules, workers=args.workers)
    set_seed(cfg.seed)
    log.info("pid %d", os.getpid())
    smiles, target = build_set(cfg)
    encoder = StructureEncoder(features=20)
    t0 = time.perf_counter()
    embeddings = embed_smiles(smiles, encoder, cfg)
    log.info("embedded %d molecules in %.2f s", len(smiles), time.perf_counter() - t0)
    pred, r2 = probe(embeddings, target, cfg)
    out = Path("embeddings")
    out.mkdir(exist_ok=True)
    np.save(out / "embeddings.npy", embeddings)
    pd.DataFrame({"smiles": smiles, "target": target, "pred": pred.round(5)}).to_csv(
        out / "predictions.csv", index=False)
    (out / "metrics.json").write_text(json.dumps({"r2": round(r2, 7)}))
    print(f"probe r2 {r2:.6f}")
    print("norm", np.linalg.norm(embeddings, axis=1).round(4)[:8].tolist())


if __name__ == "__main__":
    main()
