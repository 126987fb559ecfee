"""Residual momentum factor from daily stock returns.

Daily returns (integer basis points) are loaded into DuckDB, aggregated to
months and joined with the market. Per stock, market-model residuals are
estimated over a window of past months, the momentum signal is the standardised
sum of the recent residuals, and a long-short portfolio is formed from it.

Modelled on: https://github.com/bkelly-lab/jkp-data/pull/230
"""
import hashlib
import logging
import os
import time
from contextlib import contextmanager

import duckdb
import numpy as np
import pandas as pd

logger = logging.getLogger("factors")

N_STOCKS = 420
N_MONTHS = 96
DAYS = 21
WINDOW = 36
RECENT = 11
N_PORTFOLIOS = 10


@contextmanager
def step(name):
    started = time.perf_counter()
    yield
    logger.info("%s: %.2f s", name, time.perf_counter() - started)


def simulate_daily(seed):
    """One-factor returns with slowly moving residual drift, and delistings."""
    rng = np.random.default_rng(seed)
    n_days = N_MONTHS * DAYS
    market = rng.normal(4, 90, size=n_days)
    frames = []
    for stock in range(N_STOCKS):
        first = rng.integers(0, n_days // 3)
        last = n_days if rng.random() < 0.7 else rng.integers(2 * n_days // 3, n_days)
        days = np.arange(first, last)
        drift = np.repeat(rng.normal(0, 6, size=N_MONTHS), DAYS)[days]
        ret = rng.uniform(0.4, 1.7) * market[days] + drift + rng.normal(0, 180, size=days.size)
        frames.append(pd.DataFrame({"stock_id": stock, "day": days, "month": days // DAYS,
                                    "ret_bp": np.rint(ret).astype(np.int64)}))
    daily = pd.concat(frames, ignore_index=True)
    market_table = pd.DataFrame({"day": np.arange(n_days), "month": np.arange(n_days) // DAYS,
                                 "mkt_bp": np.rint(market).astype(np.int64)})
    return daily, market_table


class FactorDatabase:
    def __init__(self, threads=None):
        self.con = duckdb.connect()
        self.con.execute(f"SET threads TO {threads or max(4, os.cpu_count())}")

    def load(self, daily, market):
        self.con.register("daily_df", daily)
        self.con.register("market_df", market)
        self.con.execute("CREATE TABLE dsf AS SELECT * FROM daily_df ORDER BY stock_id, day")
        self.con.execute("CREATE TABLE mkt AS SELECT * FROM market_df ORDER BY day")

    def prepare_monthly(self):
        self.con.execute(
            """CREATE TABLE msf_mkt AS
               SELECT month, sum(mkt_bp)::BIGINT AS mkt_bp FROM mkt GROUP BY month ORDER BY month"""
        )
        return self.con.execute(  # cause
            """SELECT d.stock_id, d.month, sum(d.ret_bp)::BIGINT AS ret_bp,
                      any_value(m.mkt_bp) AS mkt_bp, count(*) AS n_days
               FROM dsf d JOIN msf_mkt m USING (month)
               GROUP BY d.stock_id, d.month
               HAVING count(*) >= 15"""
        ).fetchdf()


def residual_momentum(monthly):
    """Market-model residuals over the window before each month, per stock."""
    rows = []
    for stock_id, group in monthly.groupby("stock_id", sort=False):
        month = group["month"].to_numpy()
        y = group["ret_bp"].to_numpy(dtype=np.float32) / 1e4
        x = group["mkt_bp"].to_numpy(dtype=np.float32) / 1e4
        for end in range(month.min() + WINDOW, month.max() + 1):
            inside = (month >= end - WINDOW) & (month < end)
            if inside.sum() < 30:
                continue
            design = np.column_stack([np.ones(inside.sum(), dtype=np.float32), x[inside]])
            beta, *_ = np.linalg.lstsq(design, y[inside], rcond=None)
            residual = y[inside] - design @ beta
            recent = month[inside] >= end - 1 - RECENT
            deviation = residual[recent].std()
            if deviation > 0:
                rows.append((stock_id, end, float(beta[1]), float(residual[recent].sum() / deviation)))
    return pd.DataFrame(rows, columns=["stock_id", "month", "beta", "res_mom"])


def form_portfolios(signal, monthly):
    """Equal-weighted decile portfolios of the following month."""
    panel = signal.merge(monthly[["stock_id", "month", "ret_bp"]], on=["stock_id", "month"])
    panel["rank"] = panel.groupby("month")["res_mom"].rank(pct=True, method="first")
    panel["portfolio"] = np.ceil(panel["rank"] * N_PORTFOLIOS).astype(int)
    table = panel.groupby(["month", "portfolio"])["ret_bp"].mean().unstack()
    return table, panel


def fingerprint(frame):
    return hashlib.sha1(frame.to_csv(index=False).encode()).hexdigest()[:16]


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    daily, market = simulate_daily(seed=230)
    database = FactorDatabase()
    with step("load"):
        database.load(daily, market)
    with step("monthly"):
        monthly = database.prepare_monthly()
    with step("residual momentum"):
        signal = residual_momentum(monthly)
    with step("portfolios"):
        table, panel = form_portfolios(signal, monthly)
    spread = table[N_PORTFOLIOS] - table[1]
    signal.to_csv("res_mom.csv", index=False)
    table.round(6).to_csv("portfolios.csv")
    print(f"{len(daily)} daily rows, {len(monthly)} monthly rows, {len(signal)} signals")
    print(f"mean beta {signal['beta'].mean():.4f}")
    for p in sorted(panel["portfolio"].unique()):
        print(f"portfolio {p:2d}: {table[p].mean():8.3f} bp per month")
    print(f"long-short {spread.mean():.3f} bp, t = {spread.mean() / spread.std() * len(spread) ** 0.5:.3f}")
    print("signal fingerprint", fingerprint(signal))


if __name__ == "__main__":
    main()
