"""https://github.com/python/cpython/issues/125260 : the output of gzip.compress is non-deterministic, its header holds the current time;
digests of the compressed records change each time and with them everything decided by digest (fixed with mtime=0)."""
import argparse
import json
import random
import time
import uuid

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.metrics import mean_absolute_error, r2_score

from e22_store import BlobStore, assign_folds


def measure(number):
    rs = np.random.RandomState(number)
    temperature = rs.uniform(10, 90)
    pressure = rs.uniform(1, 5)
    catalyst = rs.choice(["A", "B", "C"])
    flow = np.round(rs.gamma(2, 1.5, size=20), 4)
    bonus = {"A": 0.0, "B": 4.0, "C": -3.0}[catalyst]
    out = 0.3 * temperature + 5 * np.log(pressure) + bonus + 2 * np.sin(temperature / 9) - 0.2 * flow.mean() + rs.randn()
    return {"number": number, "temperature": round(temperature, 3), "pressure": round(pressure, 3), "catalyst": str(catalyst),
            "flow": flow.tolist(), "yield": round(float(out), 4)}


def features(record):
    flow = np.array(record["flow"])
    kind = [record["catalyst"] == c for c in "ABC"]
    return [record["temperature"], record["pressure"], flow.mean(), flow.std(), *map(float, kind)]


def matrix(store, digests, names):
    records = [store.get(digests[n]) for n in names]
    return np.array([features(r) for r in records]), np.array([r["yield"] for r in records])


def cross_validate(store, digests, folds, seed):
    table = assign_folds(digests, folds)
    scores = []
    for k in range(folds):
        held = table[k]
        rest = sorted(n for j in range(folds) if j != k for n in table[j])
        model = GradientBoostingRegressor(n_estimators=80, max_depth=3, subsample=0.8, random_state=seed)
        x, y = matrix(store, digests, rest)
        model.fit(x, y)
        xt, yt = matrix(store, digests, held)
        p = model.predict(xt)
        scores.append({"fold": k, "n": len(held), "r2": float(r2_score(yt, p)), "mae": float(mean_absolute_error(yt, p))})
        print("fold {fold} n={n:3d} r2={r2:.5f} mae={mae:.5f}".format(**scores[-1]))
    return scores


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--records", type=int, default=500)
    ap.add_argument("--folds", type=int, default=4)
    ap.add_argument("--seed", type=int, default=2024)
    args = ap.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    run = uuid.uuid4().hex[:6]
    begin = time.time()
    store = BlobStore("blobs")
    digests = {}
    for i in range(args.records):
        digests["rec%04d" % i] = store.put(measure(i))
    print("run", run, "stored", len(digests), "records,", store.size(), "bytes")
    scores = cross_validate(store, digests, args.folds, args.seed)
    with open("cv.json", "w") as f:
        json.dump({"scores": scores, "mean_r2": float(np.mean([s["r2"] for s in scores]))}, f, indent=1)
    print("run", run, "done in %.2f s" % (time.time() - begin))


if __name__ == "__main__":
    main()
