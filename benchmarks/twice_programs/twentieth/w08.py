"""Hyper-parameter optimisation of knowledge graph embedding models.

Searches embedding size, learning rate, margin and negatives for two scoring
functions on a small family-relations graph, ranks the trials by validation MRR
and retrains the winner for the final test numbers.

Modelled on: https://github.com/pykeen/pykeen/issues/537
"""
import json
import os
import sys
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from w08_pkg.evaluation import rank_based
from w08_pkg.hpo import HpoPipeline
from w08_pkg.training import train_model
from w08_pkg.triples import load_family

RANDOM_SEED = 1470630583


def main():
    start = time.time()
    triples = load_family(n_generations=5, families=9, seed=RANDOM_SEED)
    print(f"triples: {len(triples.training)} training, {len(triples.validation)} validation, "
          f"{len(triples.testing)} testing; {triples.num_entities} entities, "
          f"{triples.num_relations} relations")

    results = {}
    for model in ("TransE", "DistMult"):
        pipeline = HpoPipeline(triples, model=model, metric="mrr", n_trials=24,
                               random_seed=RANDOM_SEED)
        study = pipeline.optimize()
        best = pipeline.best()
        print(f"{model}: best trial {best['number']} with mrr {best['value']:.6f} "
              f"({time.time() - start:.1f} s)")
        print("   " + ", ".join(f"{k}={v:.5g}" for k, v in best["params"].items()))
        pipeline.to_csv(f"trials_{model.lower()}.csv")
        results[model] = {"n_trials": len(study.trials), **best}

    winner = max(results, key=lambda name: results[name]["value"])
    final = train_model(triples, winner, random_seed=RANDOM_SEED, epochs=14,
                        **results[winner]["params"])
    metrics = rank_based(final, triples.testing, triples.known)
    print(f"winner {winner}: test mrr {metrics['mrr']:.6f}  hits@10 {metrics['hits_at_10']:.5f}  "
          f"mean rank {metrics['mean_rank']:.3f}")

    np.savez("embeddings.npz", entities=final.entities, relations=final.relations)
    with open("results.json", "w") as fh:
        json.dump({"hpo": results, "winner": winner, "test": metrics}, fh, indent=2)


if __name__ == "__main__":
    main()
