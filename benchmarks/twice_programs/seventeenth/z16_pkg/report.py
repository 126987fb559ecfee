"""Averages over months."""
import polars as pl


def summary(port):
    return (
        port.group_by("q_size", "q_mom", maintain_order=True)
        .agg(pl.col("vw").mean(), pl.col("ew").mean(), pl.col("n").sum())
        .sort("q_size", "q_mom")
    )


def write(port, path):
    summary(port).write_csv(path, float_precision=8)


def show(port):
    table = summary(port)
    print("value-weighted mean monthly return, size quintile by momentum quintile (%)")
    for q in range(5):
        row = table.filter(pl.col("q_size") == q)["vw"]
        print(f"  size {q + 1}: " + "  ".join(f"{100 * v:8.4f}" for v in row))
    big = table.filter(pl.col("q_mom") == 4)["ew"].mean()
    small = table.filter(pl.col("q_mom") == 0)["ew"].mean()
    print(f"winner minus loser: {100 * (big - small):.5f} %")
