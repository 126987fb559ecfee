"""Modelled on https://github.com/edtechre/pybroker/issues/194

Backtests a small moving-average strategy on synthetic prices and reports bootstrap confidence intervals of its metrics.
"""
import argparse
import csv
import json
import logging
import random
import time
from dataclasses import asdict, dataclass, field

import numpy as np
import pandas as pd
from numba import njit

log = logging.getLogger("backtest")


@dataclass
class Config:
    seed: int = 17
    symbols: list = field(default_factory=lambda: ["ALFA", "BRVO", "CHAR", "DLTA"])
    n_days: int = 750
    fast: int = 8
    slow: int = 30
    cash: float = 100_000.0
    fee: float = 0.0005
    boot_samples: int = 1500
    boot_size: int = 250
    start: str = "2019-01-02"


@njit
def sharpe(x):
    s = x.std()
    if s == 0.0:
        return 0.0
    return x.mean() / s * np.sqrt(252.0)


@njit
def profit_factor(x):
    gain = 0.0
    loss = 0.0
    for v in x:
        if v > 0:
            gain += v
        else:
            loss -= v
    if loss == 0.0:
        return 10.0
    return np.log((gain + 1e-9) / loss)


@njit
def max_drawdown(x):
    equity = 1.0
    peak = 1.0
    worst = 0.0
    for v in x:
        equity *= 1.0 + v
        if equity > peak:
            peak = equity
        dd = equity / peak - 1.0
        if dd < worst:
            worst = dd
    return worst


@njit
def resample_metrics(returns, size, n_boot):
    n = returns.shape[0]
    out = np.empty((n_boot, 3))
    buf = np.empty(size)
    for b in range(n_boot):
        for i in range(size):
            buf[i] = returns[np.random.randint(0, n)]  # cause
        out[b, 0] = sharpe(buf)
        out[b, 1] = profit_factor(buf)
        out[b, 2] = max_drawdown(buf)
    return out


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)


def make_prices(cfg):
    days = pd.bdate_range(cfg.start, periods=cfg.n_days)
    market = np.random.normal(0.0003, 0.008, cfg.n_days)
    frames = {}
    for k, sym in enumerate(cfg.symbols):
        beta = 0.7 + 0.2 * k
        own = np.random.normal(0.0001 * k, 0.009, cfg.n_days)
        cycle = 0.002 * np.sin(np.arange(cfg.n_days) / (18.0 + 4 * k))
        close = 50.0 * np.exp(np.cumsum(beta * market + own + cycle))
        frames[sym] = pd.Series(close, index=days)
    return pd.DataFrame(frames)


def signals(prices, cfg):
    fast = prices.rolling(cfg.fast).mean()
    slow = prices.rolling(cfg.slow).mean()
    return (fast > slow).astype(float).shift(1).fillna(0.0)


def run_backtest(prices, cfg):
    pos = signals(prices, cfg) / len(cfg.symbols)
    rets = prices.pct_change().fillna(0.0)
    gross = (pos * rets).sum(axis=1)
    turnover = pos.diff().abs().fillna(0.0).sum(axis=1)
    net = gross - cfg.fee * turnover
    equity = cfg.cash * (1.0 + net).cumprod()
    return net, equity, turnover


def trades(prices, cfg):
    pos = signals(prices, cfg)
    rows = []
    for sym in cfg.symbols:
        p = pos[sym].to_numpy()
        px = prices[sym].to_numpy()
        entry = None
        for i in range(1, len(p)):
            if p[i] > p[i - 1]:
                entry = i
            elif p[i] < p[i - 1] and entry is not None:
                rows.append((sym, prices.index[entry].date(), prices.index[i].date(), px[i] / px[entry] - 1.0))
                entry = None
    return rows


def percentile_ci(values, level):
    a = (1.0 - level) / 2.0
    lo, hi = np.quantile(values, [a, 1.0 - a])
    return float(lo), float(hi)


def confidence_table(net, cfg):
    arr = net.to_numpy()
    boot = resample_metrics(arr, cfg.boot_size, cfg.boot_samples)  # cause
    names = ["sharpe", "log_profit_factor", "max_drawdown"]
    point = [sharpe(arr), profit_factor(arr), max_drawdown(arr)]
    rows = []
    for j, name in enumerate(names):
        for level in (0.975, 0.95, 0.90):
            lo, hi = percentile_ci(boot[:, j], level)
            rows.append({"metric": name, "level": level, "point": point[j], "lower": lo, "upper": hi})
    return rows


def write_outputs(cfg, equity, trade_rows, ci_rows):
    equity.round(4).to_csv("equity.csv", header=["equity"], index_label="date")
    with open("trades.csv", "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["symbol", "entry", "exit", "return"])
        for sym, a, b, r in trade_rows:
            w.writerow([sym, a, b, f"{r:.6f}"])
    with open("report.json", "w") as fh:
        json.dump({"config": asdict(cfg), "final_equity": float(equity.iloc[-1]), "bootstrap": ci_rows}, fh, indent=2)


def parse_args():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--fast", type=int, default=Config.fast)
    ap.add_argument("--slow", type=int, default=Config.slow)
    ap.add_argument("--seed", type=int, default=Config.seed)
    return ap.parse_args()


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    cfg = Config(seed=args.seed, fast=args.fast, slow=args.slow)
    seed_all(cfg.seed)
    prices = make_prices(cfg)
    log.info("prices %s from %s to %s", prices.shape, prices.index[0].date(), prices.index[-1].date())
    net, equity, turnover = run_backtest(prices, cfg)
    rows = trades(prices, cfg)
    wins = sum(r[3] > 0 for r in rows)
    log.info("%d trades, %d winners, turnover %.1f", len(rows), wins, turnover.sum())
    t0 = time.perf_counter()
    ci = confidence_table(net, cfg)
    log.info("bootstrap done in %.2fs", time.perf_counter() - t0)
    write_outputs(cfg, equity, rows, ci)
    print(f"final equity {equity.iloc[-1]:.2f}")
    print(f"{'metric':<20}{'level':>7}{'point':>12}{'lower':>12}{'upper':>12}")
    for r in ci:
        print(f"{r['metric']:<20}{r['level']:>7}{r['point']:>12.5f}{r['lower']:>12.5f}{r['upper']:>12.5f}")


if __name__ == "__main__":
    main()
