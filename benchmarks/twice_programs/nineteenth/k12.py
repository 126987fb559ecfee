"""Featurize trajectories of a toy molecule with a feature selector, build a
Markov state model on the features and report its timescales and score.

Modelled on: https://github.com/msmbuilder/msmbuilder/pull/920
"""
import json
import logging
import os

import numpy as np

from k12_pkg.features import end_to_end, gyration, pair_distance, torsion_cos, torsion_sin
from k12_pkg.msm import MarkovStateModel, cluster
from k12_pkg.selector import FeatureSelector
from k12_pkg.simulate import make_trajectories

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("msm")

SEED = 12
N_ATOMS = 6
LAG = 5
N_STATES = 20


def all_features():
    """(function, atoms) for everything that can be measured on the chain."""
    features = [(end_to_end, (0, N_ATOMS - 1)), (gyration, tuple(range(N_ATOMS)))]
    for i in range(N_ATOMS - 3):
        atoms = tuple(range(i, i + 4))
        features += [(torsion_sin, atoms), (torsion_cos, atoms)]
    for i in range(N_ATOMS):
        for j in range(i + 2, N_ATOMS):
            features.append((pair_distance, (i, j)))
    return features


def describe(func, atoms):
    return f"{func.__name__}({','.join(map(str, atoms))})"


def main():
    os.makedirs("msm", exist_ok=True)
    trajectories = make_trajectories(n_traj=6, n_frames=6000, n_atoms=N_ATOMS, seed=SEED)
    log.info("%d trajectories of %d frames", len(trajectories), len(trajectories[0]))

    selector = FeatureSelector(all_features(), min_variance=1e-3).fit(trajectories)
    sequences = selector.transform(trajectories)
    names = [describe(*f) for f in selector.selected]
    log.info("%d features selected", len(names))

    scaled = np.concatenate(sequences)
    mean, std = scaled.mean(axis=0), scaled.std(axis=0)
    scaled = (scaled - mean) / std
    _, _, vt = np.linalg.svd(scaled - scaled.mean(axis=0), full_matrices=False)
    projected = [((s - mean) / std) @ vt[:3].T for s in sequences]

    labels, centers = cluster(projected, N_STATES, seed=SEED)
    model = MarkovStateModel(N_STATES, LAG).fit(labels)
    timescales = model.timescales(3)

    np.savetxt("msm/centers.csv", centers, delimiter=",", fmt="%.4f")
    np.savetxt("msm/populations.csv", model.populations, delimiter=",", fmt="%.5f")
    with open("msm/features.txt", "w") as handle:
        for name, weight in zip(names, vt[0]):
            handle.write(f"{name}\t{weight:+.3f}\n")
    result = {
        "n_features": len(names),
        "timescales": [round(float(t), 3) for t in timescales],
        "gmrq": round(float(model.score(3)), 5),
        "n_active": int((model.populations > 0).sum()),
    }
    with open("msm/summary.json", "w") as handle:
        json.dump(result, handle, indent=2)
    print("features:", ", ".join(names[:4]), "...")
    print("timescales:", result["timescales"])
    print("score:", result["gmrq"])


if __name__ == "__main__":
    main()
