"""Self-exciting order arrivals: simulation and maximum-likelihood fit.

Modelled on https://github.com/X-DataInitiative/tick/issues/436
Simulates a multivariate Hawkes process with exponential kernels and refits its parameters.
"""
import argparse
import json
import logging
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize

logger = logging.getLogger("hawkes")


@dataclass
class MarketConfig:
    run_id: int = 1337
    end_time: float = 9000.0
    decay: float = 1.0
    venues: tuple = ("bid", "ask", "trade")


class SimuHawkesExpKernels:
    """Ogata thinning for exponential kernels."""

    def __init__(self, adjacency, decays, baseline, end_time, seed=None, verbose=False):
        self.adjacency = np.asarray(adjacency, float)
        self.decays = float(decays)
        self.baseline = np.asarray(baseline, float)
        self.end_time = end_time
        self.verbose = verbose
        self._rng = np.random.RandomState(seed)
        self.timestamps = [[] for _ in self.baseline]

    @property
    def n_nodes(self):
        return len(self.baseline)

    def spectral_radius(self):
        return float(np.max(np.abs(np.linalg.eigvals(self.adjacency))))

    def simulate(self):
        if self.spectral_radius() >= 1:
            raise ValueError("process is not stationary")
        t = 0.0
        state = np.zeros(self.n_nodes)
        while True:
            lam = self.baseline + state
            bound = lam.sum()
            wait = self._rng.exponential(1.0 / bound)
            if t + wait > self.end_time:
                break
            t += wait
            state = state * np.exp(-self.decays * wait)
            lam = self.baseline + state
            u = self._rng.uniform() * bound
            if u <= lam.sum():
                node = int(np.searchsorted(np.cumsum(lam), u))
                self.timestamps[node].append(t)
                state = state + self.decays * self.adjacency[:, node]
                if self.verbose:
                    logger.debug("event on %d at %.3f", node, t)
        return self

    def counts(self):
        return [len(ts) for ts in self.timestamps]


class HawkesLikelihood:
    def __init__(self, timestamps, decay, end_time):
        self.n = len(timestamps)
        self.decay = decay
        self.end_time = end_time
        events = sorted((t, k) for k, ts in enumerate(timestamps) for t in ts)
        self.times = np.array([t for t, _ in events])
        self.marks = np.array([k for _, k in events])
        self._prepare()

    def _prepare(self):
        state = np.zeros(self.n)
        self.features = np.zeros((len(self.times), self.n))
        last = 0.0
        for idx, (t, k) in enumerate(zip(self.times, self.marks)):
            state *= np.exp(-self.decay * (t - last))
            self.features[idx] = state
            state[k] += self.decay
            last = t
        self.comp = np.zeros(self.n)
        for k in range(self.n):
            tk = self.times[self.marks == k]
            self.comp[k] = np.sum(1 - np.exp(-self.decay * (self.end_time - tk)))

    def loss(self, params):
        mu = np.exp(params[: self.n])
        alpha = np.exp(params[self.n:]).reshape(self.n, self.n)
        lam = mu[self.marks] + np.einsum("ij,ij->i", self.features, alpha[self.marks])
        return float(mu.sum() * self.end_time + (alpha @ self.comp).sum() - np.log(lam).sum())

    def fit(self):
        start = np.log(np.full(self.n + self.n ** 2, 0.2))
        res = minimize(self.loss, start, method="L-BFGS-B", options={"maxiter": 60})
        mu = np.exp(res.x[: self.n])
        alpha = np.exp(res.x[self.n:]).reshape(self.n, self.n)
        return mu, alpha, float(res.fun)


def make_simulation(cfg):
    adjacency = np.array([[0.30, 0.05, 0.20], [0.05, 0.30, 0.20], [0.15, 0.15, 0.25]])
    baseline = np.array([0.5, 0.45, 0.3])
    return SimuHawkesExpKernels(
        adjacency=adjacency,
        decays=cfg.decay,
        baseline=baseline,
        end_time=cfg.end_time,
        verbose=False,
        seed=np.random.seed(cfg.run_id),  # cause
    )


def bar_table(timestamps, cfg, width=10.0):
    edges = np.arange(0, cfg.end_time + width, width)
    data = {v: np.histogram(ts, edges)[0] for v, ts in zip(cfg.venues, timestamps)}
    frame = pd.DataFrame(data, index=edges[:-1])
    frame["imbalance"] = (frame["bid"] - frame["ask"]).rolling(3, min_periods=1).mean()
    return frame


def bootstrap_interval(values, n=4000):
    picks = np.random.choice(values, size=(n, len(values)))
    return np.percentile(picks.mean(1), [5, 95])


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--run-id", type=int, default=MarketConfig.run_id)
    ap.add_argument("--end-time", type=float, default=MarketConfig.end_time)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO)
    logger.info("started %s", datetime.now().isoformat(timespec="seconds"))
    cfg = MarketConfig(run_id=args.run_id, end_time=args.end_time)

    sim = make_simulation(cfg).simulate()
    counts = dict(zip(cfg.venues, sim.counts()))
    logger.info("events %s", counts)

    mu, alpha, nll = HawkesLikelihood(sim.timestamps, cfg.decay, cfg.end_time).fit()
    bars = bar_table(sim.timestamps, cfg)
    lo, hi = bootstrap_interval(bars["imbalance"].to_numpy())

    out = Path("hawkes_out")
    out.mkdir(exist_ok=True)
    bars.to_csv(out / "bars.csv")
    result = {
        "counts": counts,
        "baseline": mu.round(5).tolist(),
        "adjacency": alpha.round(5).tolist(),
        "nll": round(nll, 5),
        "imbalance_90": [round(float(lo), 5), round(float(hi), 5)],
    }
    (out / "fit.json").write_text(json.dumps(result, indent=1))
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
