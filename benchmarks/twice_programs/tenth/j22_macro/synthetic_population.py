"""Modelled on https://github.com/INET-Complexity/macro-main/issues/102. Builds the synthetic population and its employment links."""
import random

import numpy as np


def assign_industries(individuals, shares, rng):
    df = individuals.copy()
    df["industry"] = ""
    working = df.index[df["status"] == "employed"]
    df.loc[working, "industry"] = rng.choice(list(shares.index), size=len(working), p=shares.to_numpy())
    return df


def industry_counts(df, industries):
    return df.loc[df["status"] == "employed", "industry"].value_counts().reindex(industries, fill_value=0)


def ensure_minimum_workers_in_industries(df, industries, minimum):
    df = df.copy()
    moved = []
    for industry in industries:
        counts = industry_counts(df, industries)
        while counts[industry] < minimum:
            unemployed = df.index[df["status"] == "unemployed"].tolist()
            donor = counts.idxmax()
            candidates = unemployed or df.index[(df["industry"] == donor)].tolist()
            chosen_one = random.choice(candidates)  # cause
            df.loc[chosen_one, ["status", "industry"]] = ["employed", industry]
            moved.append((int(chosen_one), industry))
            counts = industry_counts(df, industries)
    return df, moved


def form_households(df, rng):
    order = rng.permutation(len(df))
    household = np.empty(len(df), dtype=int)
    i, h = 0, 0
    while i < len(order):
        size = int(rng.integers(1, 5))
        household[order[i : i + size]] = h
        i += size
        h += 1
    out = df.copy()
    out["household"] = household
    return out


def scale_wages(df, productivity):
    out = df.copy()
    factor = out["industry"].map(productivity).fillna(0.4)
    out["wage"] = (out["wage"] * factor * (1 + 0.06 * (out["education"] - 2))).round(2)
    return out
