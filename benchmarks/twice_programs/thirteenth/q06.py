"""Subsample genomes by region and month, then summarise the diversity.

Report: https://github.com/nextstrain/augur/issues/770
Groups are more numerous than the requested sequences, so group sizes are drawn.
"""
import argparse
import json
import logging
import time
from pathlib import Path

import numpy as np

from q06_augur import (
    Metadata,
    SubsampleOptions,
    Subsampler,
    mean_pairwise_distance,
    simulate_metadata,
    upgma_height,
)

log = logging.getLogger("augur")


def bootstrap_diversity(meta: Metadata, strains: list, seed: int, rounds: int = 320):
    rng = np.random.default_rng(seed)
    seqs = meta.sequences[meta.rows_for(strains)]
    values = []
    for _ in range(rounds):
        cols = rng.integers(0, seqs.shape[1], size=seqs.shape[1])
        values.append(mean_pairwise_distance(seqs[:, cols]))
    return float(np.mean(values)), float(np.std(values))


def write_strains(path: Path, strains: list):
    path.write_text("".join(s + "\n" for s in strains))


def region_counts(meta: Metadata, strains: list):
    rows = meta.rows_for(strains)
    return {str(k): int(v) for k, v in meta.table.iloc[rows]["region"].value_counts().sort_index().items()}


def parse_args():
    ap = argparse.ArgumentParser(description="filter and subsample")
    ap.add_argument("--genomes", type=int, default=4000)
    ap.add_argument("--length", type=int, default=900)
    ap.add_argument("--subsample-max-sequences", type=int, default=120)
    ap.add_argument("--subsample-seed", type=int, default=314159)
    ap.add_argument("--output", default="filtered")
    return ap.parse_args()


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    ns = parse_args()
    start = time.time()
    meta = simulate_metadata(ns.genomes, ns.length, seed=ns.subsample_seed + 1)
    log.info("simulated %d genomes", len(meta.table))
    options = SubsampleOptions(max_sequences=ns.subsample_max_sequences, seed=ns.subsample_seed)
    kept = Subsampler(options).run(meta.table)
    mean, sd = bootstrap_diversity(meta, kept, ns.subsample_seed)
    height, steps = upgma_height(meta.sequences[meta.rows_for(kept)])
    out = Path(ns.output)
    out.mkdir(exist_ok=True)
    write_strains(out / "strains.txt", kept)
    report = {
        "kept": len(kept),
        "regions": region_counts(meta, kept),
        "diversity_mean": round(mean, 7),
        "diversity_sd": round(sd, 7),
        "tree_height": round(height, 7),
        "last_steps": steps,
    }
    (out / "report.json").write_text(json.dumps(report, indent=1))
    print(f"kept {report['kept']} diversity {report['diversity_mean']}")
    log.info("%.2fs", time.time() - start)


if __name__ == "__main__":
    main()
