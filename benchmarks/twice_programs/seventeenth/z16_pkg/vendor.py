"""Synthetic vendor extracts: daily prices, security header history, fx."""
import logging
from datetime import date, timedelta

import numpy as np
import polars as pl

log = logging.getLogger(__name__)
EXCHANGES = {"USA": [11, 12, 14], "CAN": [7, 9], "ROW": [201, 219, 240]}
CURRENCY = {"USA": "USD", "CAN": "CAD", "ROW": "EUR"}


def trading_days(n):
    day, out = date(2021, 1, 4), []
    while len(out) < n:
        if day.weekday() < 5:
            out.append(day)
        day += timedelta(days=1)
    return out


def prices(rng, n_firms, days):
    n = len(days)
    frames = []
    regions = rng.choice(list(EXCHANGES), n_firms, p=[0.6, 0.15, 0.25])
    for k in range(n_firms):
        gvkey = f"{1000 + k:06d}"
        for iid in ("01", "02")[: 1 + int(rng.random() < 0.25)]:
            ret = rng.normal(0.0004, 0.02, n)
            price = np.round(rng.uniform(5, 120) * np.exp(np.cumsum(ret)), 4)
            frames.append(pl.DataFrame({
                "gvkey": [gvkey] * n,
                "iid": [iid] * n,
                "datadate": days,
                "prccd": price,
                "cshoc": np.full(n, np.round(rng.lognormal(3, 1.2), 3)),
                "ajexdi": np.where(np.arange(n) < n // 2, float(rng.choice([1, 1, 1, 2])), 1.0),
                "region": [regions[k]] * n,
                "exchg": np.full(n, rng.choice(EXCHANGES[regions[k]])),
            }))
    return pl.concat(frames)


def header_history(rng, keys, days):
    """Validity ranges of the primary issue and of the share-count basis."""
    first, last = days[0], days[-1]
    rows = []
    for gvkey in keys:
        cuts = sorted(rng.integers(10, len(days) - 10, rng.integers(1, 4)).tolist())
        edges = [first] + [days[c] for c in cuts] + [last + timedelta(days=1)]
        for a, b in zip(edges[:-1], edges[1:]):
            late = int(rng.integers(0, 9))
            rows.append((gvkey, a, b + timedelta(days=late),
                         str(rng.choice(["01", "01", "01", "02"])),
                         float(np.round(rng.uniform(0.8, 1.2), 3))))
    return pl.DataFrame(rows, schema=["gvkey", "valid_from", "valid_to", "prim_iid", "float_adj"],
                        orient="row")


def revised(rng, px):
    """Second delivery: covers most of the first one, some closes restated."""
    keep = rng.random(px.height) < 0.9
    shift = np.where(rng.random(px.height) < 0.3, rng.normal(1.0, 0.004, px.height), 1.0)
    return (px.with_columns((pl.col("prccd") * pl.Series(shift)).round(4)).filter(pl.Series(keep)))


def fx_rates(rng, days):
    out = []
    for cur, base in (("USD", 1.0), ("CAD", 0.79), ("EUR", 1.18)):
        path = base * np.exp(np.cumsum(rng.normal(0, 0.003, len(days)))) if cur != "USD" \
            else np.ones(len(days))
        out.append(pl.DataFrame({"curcdd": [cur] * len(days), "datadate": days, "fx": path}))
    return pl.concat(out)


def write_extracts(raw, n_firms, n_days, seed):
    rng = np.random.default_rng(seed)
    days = trading_days(n_days)
    px = prices(rng, n_firms, days)
    px = px.with_columns(pl.col("region").replace_strict(CURRENCY).alias("curcdd"))
    hist = header_history(rng, px["gvkey"].unique(maintain_order=True).to_list(), days)
    late = revised(rng, px)
    feed = pl.concat([px, late])[rng.permutation(px.height + late.height)]
    feed.write_parquet(raw / "secd.parquet", row_group_size=20_000)
    hist.write_parquet(raw / "header.parquet")
    fx_rates(rng, days).write_parquet(raw / "fx.parquet")
    log.info("%d + %d price rows, %d header ranges, %d trading days", px.height, late.height,
             hist.height, n_days)
