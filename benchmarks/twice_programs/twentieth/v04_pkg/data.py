"""A synthetic stand-in for the body-fat data."""
import numpy as np

NAMES = ["age", "weight", "height", "neck", "chest", "abdomen", "hip", "thigh", "knee", "ankle",
         "bicep", "forearm", "wrist", "bmi", "waist_hip", "shoulder", "calf", "skinfold_a",
         "skinfold_b", "pulse", "grip", "reach", "sitting_height", "foot"]


def load_body_fat(n, seed):
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n)
    fat = rng.normal(size=n)
    columns = []
    for k, _ in enumerate(NAMES):
        a, b = rng.uniform(0.2, 1.0), rng.uniform(-0.1, 0.7)
        columns.append(a * size + b * fat + rng.normal(scale=rng.uniform(0.4, 1.0), size=n))
    X = np.column_stack(columns)
    y = 19.0 + 6.0 * fat - 1.0 * size + 0.6 * X[:, 5] - 0.5 * X[:, 12] + rng.normal(scale=3.0, size=n)
    return X, y, NAMES
