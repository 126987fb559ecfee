"""Monthly sorts on size and trailing return."""
import logging

import polars as pl

log = logging.getLogger(__name__)


def security_months(source):
    df = pl.read_parquet(source).filter(pl.col("primary_sec") == 1)
    return (
        df.group_by("gvkey", "iid", "eom", maintain_order=True)
        .agg(((pl.col("ret") + 1).product() - 1).alias("mret"),
             pl.col("me_lag").first().alias("size"),
             pl.len().alias("days"))
        .filter(pl.col("days") >= 5)
        .sort("gvkey", "iid", "eom")
        .with_columns(pl.col("mret").shift(1).over("gvkey", "iid").alias("mom"))
    )


def sort_into(df, column, n, name):
    rank = pl.col(column).rank("ordinal").over("eom")
    count = pl.col(column).count().over("eom")
    return df.with_columns((((rank - 1) * n) // count).alias(name))


def monthly(source, processed):
    months = security_months(source).drop_nulls("mom")
    months = sort_into(months, "size", 5, "q_size")
    months = sort_into(months, "mom", 5, "q_mom")
    months.write_csv(processed / "security_months.csv", float_precision=8)
    port = (
        months.group_by("eom", "q_size", "q_mom", maintain_order=True)
        .agg(((pl.col("mret") * pl.col("size")).sum() / pl.col("size").sum()).alias("vw"),
             pl.col("mret").mean().alias("ew"),
             pl.len().alias("n"))
        .sort("eom", "q_size", "q_mom")
    )
    log.info("%d security months, %d portfolio months", months.height, port.height)
    return port
