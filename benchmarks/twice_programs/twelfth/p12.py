"""Segment days of market statistics by k-means and study the transitions between segments.

Modelled on https://github.com/scikit-learn/scikit-learn/issues/9646
Daily statistics are differenced, clustered, and the sequence of labels is summarised and used for a simple signal.
"""
import argparse
import json
import logging
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score
from sklearn.preprocessing import StandardScaler

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s: %(message)s")
log = logging.getLogger("regimes")


@dataclass
class RegimeConfig:
    seed: int = 17
    days: int = 800
    window: int = 10
    n_regimes: int = 6
    horizon: int = 5
    train_fraction: float = 0.7
    out_dir: str = "regimes"


def simulate_market(cfg):
    """Prices of one instrument with three hidden volatility states, and its volume."""
    rng = np.random.default_rng(cfg.seed)
    stay = np.array([[0.96, 0.03, 0.01], [0.05, 0.92, 0.03], [0.02, 0.10, 0.88]])
    drift = np.array([0.0006, 0.0, -0.0015])
    vol = np.array([0.006, 0.012, 0.028])
    state, states, returns, volume = 0, [], [], []
    for _ in range(cfg.days):
        state = int(rng.choice(3, p=stay[state]))
        states.append(state)
        returns.append(rng.normal(drift[state], vol[state]))
        volume.append(rng.lognormal(10 + 0.4 * state, 0.25))
    index = pd.bdate_range("2015-01-01", periods=cfg.days)
    close = 100 * np.exp(np.cumsum(returns))
    return pd.DataFrame({"close": close, "volume": volume, "state": states}, index=index)


def statistics(market, window):
    ret = np.log(market.close).diff()
    stats = pd.DataFrame({
        "ret": ret,
        "vol": ret.rolling(window).std(),
        "skew": ret.rolling(2 * window).skew(),
        "momentum": np.log(market.close).diff(window),
        "drawdown": market.close / market.close.cummax() - 1,
        "rel_volume": market.volume / market.volume.rolling(window).mean(),
    })
    stats["vol_change"] = stats.vol.diff()
    return stats.dropna()


class RegimeModel:
    def __init__(self, cfg):
        self.cfg = cfg
        self.scaler = StandardScaler()
        self.kmeans = KMeans(n_clusters=cfg.n_regimes, n_init=1, max_iter=60)  # cause

    def fit(self, stats):
        self.columns = list(stats.columns)
        self.kmeans.fit(self.scaler.fit_transform(stats))  # cause
        return self

    def label(self, stats):
        return pd.Series(self.kmeans.predict(self.scaler.transform(stats)), index=stats.index)

    def centres(self):
        raw = self.scaler.inverse_transform(self.kmeans.cluster_centers_)
        return pd.DataFrame(raw, columns=self.columns)


def transition_matrix(labels, k):
    m = np.zeros((k, k))
    for a, b in zip(labels.values, labels.values[1:]):
        m[a, b] += 1
    return m / np.maximum(m.sum(axis=1, keepdims=True), 1)


def durations(labels):
    runs = (labels != labels.shift()).cumsum()
    return labels.groupby(runs).size().groupby(labels.groupby(runs).first()).mean()


def forward_returns(market, horizon):
    logp = np.log(market.close)
    return logp.shift(-horizon) - logp


def signal_table(labels, fwd):
    joined = pd.DataFrame({"label": labels, "fwd": fwd}).dropna()
    return joined.groupby("label").fwd.agg(["mean", "std", "count"])


def backtest(labels, table, market):
    """Be invested on the days after a label with a positive average forward return."""
    good = set(table.index[table["mean"] > 0])
    position = labels.isin(good).astype(float).shift().fillna(0)
    ret = np.log(market.close).diff().reindex(labels.index).fillna(0)
    pnl = position * ret
    sharpe = pnl.mean() / pnl.std() * np.sqrt(252) if pnl.std() > 0 else 0.0
    return {"total": round(float(pnl.sum()), 5), "sharpe": round(float(sharpe), 4),
            "exposure": round(float(position.mean()), 4),
            "buy_and_hold": round(float(ret.sum()), 5)}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--regimes", type=int, default=RegimeConfig.n_regimes)
    ap.add_argument("--days", type=int, default=RegimeConfig.days)
    args = ap.parse_args()
    cfg = RegimeConfig(n_regimes=args.regimes, days=args.days)
    out = Path(cfg.out_dir)
    out.mkdir(exist_ok=True)

    market = simulate_market(cfg)
    stats = statistics(market, cfg.window)
    cut = int(len(stats) * cfg.train_fraction)
    train, test = stats.iloc[:cut], stats.iloc[cut:]
    log.info("days: %d train, %d test, %d statistics", len(train), len(test), stats.shape[1])

    model = RegimeModel(cfg).fit(train)
    labels = model.label(stats)
    train_labels, test_labels = labels.iloc[:cut], labels.iloc[cut:]
    quality = silhouette_score(model.scaler.transform(train), train_labels)
    table = signal_table(train_labels, forward_returns(market, cfg.horizon))
    result = backtest(test_labels, table, market)
    trans = transition_matrix(train_labels, cfg.n_regimes)
    dur = durations(train_labels)

    model.centres().to_csv(out / "centres.csv", float_format="%.6g")
    labels.to_csv(out / "labels.csv", header=["regime"])
    table.to_csv(out / "signal.csv", float_format="%.6g")
    np.savetxt(out / "transitions.csv", trans, delimiter=",", fmt="%.5f")
    (out / "result.json").write_text(json.dumps(
        {"config": asdict(cfg), "inertia": float(model.kmeans.inertia_),
         "silhouette": float(quality), "backtest": result}, indent=1))

    log.info("inertia %.4f silhouette %.4f", model.kmeans.inertia_, quality)
    for k in range(cfg.n_regimes):
        n = int((train_labels == k).sum())
        print(f"regime {k}: days={n:4d} stay={trans[k, k]:.3f} duration={dur.get(k, 0.0):.2f}")
    print(f"label changes: {int((labels != labels.shift()).sum()) - 1}")
    print("backtest:", " ".join(f"{k}={v}" for k, v in result.items()))


if __name__ == "__main__":
    main()
