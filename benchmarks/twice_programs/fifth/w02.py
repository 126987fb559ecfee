"""Permutation importance without random_state, and NumPy is not seeded (scikit-learn, common pitfalls: controlling randomness)."""
import json
import random

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.inspection import permutation_importance
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split

SEED = 3


def main():
    random.seed(SEED)
    x, y = make_friedman1(200, random_state=SEED)
    train, test, a, b = train_test_split(x, y, random_state=SEED)
    model = Ridge().fit(train, a)
    result = permutation_importance(model, test, b, n_repeats=4)  # cause
    table = {f"x{i}": m for i, m in enumerate(result.importances_mean.tolist())}
    print("score", model.score(test, b))
    json.dump(table, open("importance.json", "w"))


main()
