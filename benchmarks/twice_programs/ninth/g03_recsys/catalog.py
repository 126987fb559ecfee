"""Item catalogue and interaction tables."""
import numpy as np
import polars as pl


def simulate_events(users, items, n, seed):
    rng = np.random.default_rng(seed)
    pop = 1.0 / np.arange(1, items + 1) ** 0.8
    pop /= pop.sum()
    taste_u = rng.normal(size=(users, 4))
    taste_i = rng.normal(size=(items, 4))
    u = rng.integers(0, users, n)
    i = rng.choice(items, n, p=pop)
    score = 3.2 + 0.45 * (taste_u[u] * taste_i[i]).sum(1) + rng.normal(0, 0.4, n)
    return pl.DataFrame({
        "user": u,
        "sku": [f"SKU-{k:05d}" for k in i],
        "stars": np.clip(np.rint(score), 1, 5).astype(np.float32),
        "ts": np.sort(rng.integers(1_700_000_000, 1_705_000_000, n)),
    })


def build_catalog(events, min_count):
    """One row per item that was rated often enough, with its statistics."""
    stats = (
        events.lazy()
        .group_by("sku")  # cause
        .agg(pl.len().alias("n"), pl.col("stars").mean().alias("avg"), pl.col("ts").max().alias("last_ts"))
        .filter(pl.col("n") >= min_count)
        .collect()
    )
    return stats.with_row_index("item")


def attach_ids(events, catalog):
    return (
        events.join(catalog.select("sku", "item"), on="sku", how="inner", maintain_order="left")
        .select("user", pl.col("item").cast(pl.Int64), "stars", "ts")
    )
