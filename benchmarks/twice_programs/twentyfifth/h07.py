"""Geodemographic clusters of census tracts in a metropolitan area.

Builds a synthetic city of census tracts on a grid, with incomes, rents, ages
and commuting shares that follow distance to the centre and some districts,
groups the tracts into neighbourhood types with a Gaussian mixture, and reports
size, profile, spatial compactness and change of type between two censuses.

Modelled on: https://github.com/oturns/geosnap/pull/330
"""
import json
import time

import numpy as np
import pandas as pd
from scipy import ndimage
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

SIDE = 62
YEARS = (2010, 2020)
N_TYPES = 8
COLUMNS = ["income", "rent", "median_age", "college", "transit", "vacancy"]


def smooth_field(rng, sigma):
    field = ndimage.gaussian_filter(rng.normal(size=(SIDE, SIDE)), sigma, mode="nearest")
    return (field - field.mean()) / field.std()


def make_city(seed):
    """Return a frame with one row per tract and census."""
    rng = np.random.default_rng(seed)
    row, col = np.mgrid[0:SIDE, 0:SIDE]
    distance = np.hypot(row - SIDE / 2, col - SIDE / 2) / SIDE
    wealth = smooth_field(rng, 4.0)
    youth = smooth_field(rng, 3.0)
    growth = smooth_field(rng, 6.0)
    frames = []
    for year in YEARS:
        change = growth * (0.5 if year == YEARS[-1] else 0.0)
        w = wealth + change
        data = {
            "income": np.exp(10.6 + 0.28 * w + 0.3 * distance + rng.normal(0, 0.16, w.shape)),
            "rent": 700 + 180 * w - 420 * distance + rng.normal(0, 80, w.shape),
            "median_age": 37 - 4.5 * youth + 9 * distance + rng.normal(0, 2.2, w.shape),
            "college": 1 / (1 + np.exp(-(0.8 * w + 0.5 * youth - 0.4 + rng.normal(0, 0.35, w.shape)))),
            "transit": np.clip(0.5 - 0.9 * distance + rng.normal(0, 0.08, w.shape), 0.01, 0.9),
            "vacancy": np.clip(0.08 - 0.02 * w + rng.normal(0, 0.02, w.shape), 0.0, 0.4),
        }
        frame = pd.DataFrame({name: values.ravel() for name, values in data.items()})
        frame.insert(0, "geoid", np.arange(SIDE * SIDE))
        frame.insert(1, "year", year)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def standardise(frame):
    """Scale each column within its census, as is usual for such typologies."""
    parts = []
    for _, group in frame.groupby("year", sort=True):
        values = group[COLUMNS].copy()
        values["income"] = np.log(values["income"])
        parts.append(pd.DataFrame(StandardScaler().fit_transform(values),
                                  columns=COLUMNS, index=group.index))
    return pd.concat(parts).sort_index()


def cluster(frame, n_types):
    scaled = standardise(frame)
    model = GaussianMixture(n_types, covariance_type="full", init_params="random_from_data", max_iter=300)  # cause
    labels = model.fit_predict(scaled.to_numpy())
    order = np.argsort(model.means_[:, 0], kind="stable")
    rank = np.empty(n_types, dtype=int)
    rank[order] = np.arange(n_types)
    return rank[labels], model.score(scaled.to_numpy())


def compactness(labels):
    """Share of neighbouring tracts of the same type."""
    grid = labels.reshape(SIDE, SIDE)
    same = (grid[1:] == grid[:-1]).sum() + (grid[:, 1:] == grid[:, :-1]).sum()
    return same / (2 * SIDE * (SIDE - 1))


def patches(labels, n_types):
    grid = labels.reshape(SIDE, SIDE)
    return [int(ndimage.label(grid == t)[1]) for t in range(n_types)]


def transitions(frame):
    wide = frame.pivot(index="geoid", columns="year", values="type")
    table = pd.crosstab(wide[YEARS[0]], wide[YEARS[1]])
    return table.reindex(index=range(N_TYPES), columns=range(N_TYPES), fill_value=0)


def main():
    frame = make_city(330)
    tick = time.perf_counter()
    frame["type"], fit = cluster(frame, N_TYPES)
    print(f"clustered {len(frame)} tracts in {time.perf_counter() - tick:.2f} s")

    profile = frame.groupby("type")[COLUMNS].mean().round(3)
    profile.insert(0, "tracts", frame.groupby("type").size())
    profile.to_csv("profile.csv")
    moves = transitions(frame)
    moves.to_csv("transitions.csv")

    print(f"mean log likelihood {fit:.5f}")
    print(profile[["tracts", "income", "rent"]].to_string())
    summary = {}
    for year in YEARS:
        labels = frame.loc[frame["year"] == year, "type"].to_numpy()
        summary[str(year)] = {
            "compactness": round(float(compactness(labels)), 5),
            "patches": patches(labels, N_TYPES),
        }
        print(year, "compactness", summary[str(year)]["compactness"])
    stable = int(np.trace(moves.to_numpy()))
    summary["unchanged_tracts"] = stable
    print("unchanged tracts", stable, "of", SIDE * SIDE)
    with open("summary.json", "w") as handle:
        json.dump(summary, handle, indent=1)


if __name__ == "__main__":
    main()
