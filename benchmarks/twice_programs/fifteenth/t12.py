#!/usr/bin/env python
"""Content-addressed store of reaction records with a derived split.

Modelled on https://github.com/open-reaction-database/ord-schema/pull/560

Writes generated reaction datasets as compressed JSON, registers every file in a
store under the digest of its content, assigns the files to train, validation and
test by digest, and fits a yield model on the training files.
"""
import argparse
import gzip
import hashlib
import json
import logging
import shutil
import tempfile
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.metrics import mean_absolute_error, r2_score

logger = logging.getLogger("ord_store")

SOLVENTS = ["DMF", "DMSO", "THF", "MeCN", "toluene", "water"]
LIGANDS = ["XPhos", "SPhos", "PPh3", "dppf", "none"]


@dataclass
class Options:
    datasets: int = 48
    reactions: int = 70
    seed: int = 560
    root: Path = Path("ord")


def simulate_dataset(index, options):
    rng = np.random.default_rng([options.seed, index])
    offset = rng.normal(0, 8)
    reactions = []
    for i in range(options.reactions):
        solvent = int(rng.integers(len(SOLVENTS)))
        ligand = int(rng.integers(len(LIGANDS)))
        temperature = float(rng.uniform(20, 140))
        hours = float(rng.gamma(2.0, 4.0))
        base = 35 + offset + 6 * np.sin(solvent) + 9 * np.cos(1.7 * ligand)
        kinetics = 40 * (1 - np.exp(-hours / 9)) * np.exp(-((temperature - 95) / 55) ** 2)
        value = float(np.clip(base + kinetics + rng.normal(0, 4), 0, 100))
        reactions.append({
            "reaction_id": f"ord-{index:03d}-{i:04d}",
            "solvent": SOLVENTS[solvent],
            "ligand": LIGANDS[ligand],
            "temperature_c": round(temperature, 2),
            "hours": round(hours, 3),
            "yield": round(value, 2),
        })
    return {"name": f"dataset {index}", "reactions": reactions}


def write_message(message, path):
    """Serialise a message; compressed when the name ends in .gz."""
    data = json.dumps(message, sort_keys=True).encode()
    if path.suffix == ".gz":
        with gzip.open(path, "wb") as fh:  # cause
            fh.write(data)
    else:
        path.write_bytes(data)


def load_message(path):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as fh:
        return json.loads(fh.read())


class Store:
    """Files named by the digest of their bytes."""

    def __init__(self, root):
        self.root = Path(root)
        (self.root / "data").mkdir(parents=True, exist_ok=True)

    def path_of(self, digest):
        return self.root / "data" / digest[:2] / f"ord_dataset-{digest}.json.gz"

    def add(self, source):
        digest = hashlib.sha256(source.read_bytes()).hexdigest()
        target = self.path_of(digest)
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(source, target)
        return digest


def split_of(digest, fractions=(0.7, 0.15)):
    bucket = int(digest[:8], 16) / 0xFFFFFFFF
    if bucket < fractions[0]:
        return "train"
    return "validation" if bucket < sum(fractions) else "test"


def featurise(reactions):
    rows = []
    for r in reactions:
        row = [r["temperature_c"], r["hours"]]
        row += [float(r["solvent"] == s) for s in SOLVENTS]
        row += [float(r["ligand"] == l) for l in LIGANDS]
        rows.append(row)
    return np.array(rows), np.array([r["yield"] for r in reactions])


def build_store(options):
    store = Store(options.root)
    entries = []
    with tempfile.TemporaryDirectory() as tmp:
        staging = Path(tmp) / "staged.json.gz"
        for i in range(options.datasets):
            message = simulate_dataset(i, options)
            write_message(message, staging)
            entries.append((i, store.add(staging)))
    logger.info("stored %d datasets", len(entries))
    return store, entries


def train_and_score(store, entries, seed):
    parts = {"train": [], "validation": [], "test": []}
    for _, digest in entries:
        parts[split_of(digest)].extend(load_message(store.path_of(digest))["reactions"])
    sizes = {k: len(v) for k, v in parts.items()}
    logger.info("reactions per part: %s", sizes)
    x, y = featurise(parts["train"])
    model = GradientBoostingRegressor(n_estimators=120, max_depth=3, subsample=0.8, random_state=seed)
    model.fit(x, y)
    scores = {}
    for part in ("train", "validation", "test"):
        if not parts[part]:
            continue
        px, py = featurise(parts[part])
        pred = model.predict(px)
        scores[part] = {"mae": round(float(mean_absolute_error(py, pred)), 6),
                        "r2": round(float(r2_score(py, pred)), 6)}
    return sizes, scores, model.feature_importances_


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--datasets", type=int, default=Options.datasets)
    p.add_argument("--reactions", type=int, default=Options.reactions)
    p.add_argument("--seed", type=int, default=Options.seed)
    p.add_argument("--root", type=Path, default=Options.root)
    options = Options(**vars(p.parse_args()))
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    np.random.seed(options.seed)
    started = datetime.now(timezone.utc)
    store, entries = build_store(options)
    sizes, scores, importances = train_and_score(store, entries, options.seed)
    (options.root / "splits.json").write_text(
        json.dumps({f"dataset {i}": split_of(d) for i, d in entries}, indent=1))
    (options.root / "scores.json").write_text(json.dumps({
        "sizes": sizes, "scores": scores,
        "importances": [round(float(v), 8) for v in importances]}, indent=1))
    logger.info("finished in %s", datetime.now(timezone.utc) - started)
    print("sizes ", json.dumps(sizes))
    print("scores", json.dumps(scores))


if __name__ == "__main__":
    main()
