"""Daily security file and total returns."""
import logging

import polars as pl

log = logging.getLogger(__name__)
KEY = ["gvkey", "iid", "datadate"]


def add_primary_sec(px, hist):
    """Attach the header record whose validity range covers the date."""
    return (
        px.join(hist, on="gvkey", how="left")
        .filter((pl.col("datadate") >= pl.col("valid_from"))
                & (pl.col("datadate") < pl.col("valid_to")))
        .with_columns((pl.col("iid") == pl.col("prim_iid")).cast(pl.Int8).alias("primary_sec"))
        .drop("valid_from", "valid_to", "prim_iid")
    )


def add_usd(px, fx):
    return (
        px.join(fx, on=["curcdd", "datadate"], how="left")
        .with_columns((pl.col("prccd") * pl.col("fx")).alias("prc"),
                      (pl.col("prccd") * pl.col("fx") * pl.col("cshoc")
                       * pl.col("float_adj")).alias("me"))
    )


def build_daily(raw, target):
    px = pl.scan_parquet(raw / "secd.parquet")
    hist = pl.scan_parquet(raw / "header.parquet")
    fx = pl.scan_parquet(raw / "fx.parquet")
    joined = add_usd(add_primary_sec(px, hist), fx)
    daily = joined.unique(KEY)  # cause
    out = daily.sort(KEY).collect(engine="streaming").rechunk()
    out.write_parquet(target)
    log.info("daily file: %d rows, %d securities, %.2f %% flagged primary", out.height,
             out.select("gvkey", "iid").n_unique(), 100 * out["primary_sec"].mean())


def build_returns(source, target):
    adj = pl.col("prc") / pl.col("ajexdi")
    out = (
        pl.read_parquet(source)
        .with_columns(adj.alias("adjprc"))
        .with_columns((pl.col("adjprc") / pl.col("adjprc").shift(1).over("gvkey", "iid") - 1)
                      .alias("ret"),
                      pl.col("me").shift(1).over("gvkey", "iid").alias("me_lag"))
        .with_columns(pl.col("datadate").dt.month_end().alias("eom"))
        .drop_nulls(["ret", "me_lag"])
    )
    out.write_parquet(target)
    log.info("returns: %d rows, mean %.3e, std %.4f", out.height, out["ret"].mean(),
             out["ret"].std())
