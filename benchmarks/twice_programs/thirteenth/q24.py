"""Posterior of a stock assessment model from several chains.

Report: https://github.com/pacific-hake/hake-assessment/issues/1211
Chains run side by side and the management quantities are taken from the merged draws.
"""
import argparse
import json
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

log = logging.getLogger("mcmc")


@dataclass
class AssessmentConfig:
    years: int = 40
    chains: int = 4
    draws: int = 12000
    warmup: int = 800
    step: float = 0.03
    seed: int = 4921
    out: str = "posterior"


@dataclass
class Data:
    catch: np.ndarray
    index: np.ndarray
    sd: float


class SurplusProduction:
    """Schaefer dynamics with parameters log r, log K, log q."""

    names = ("r", "K", "q")

    def __init__(self, data: Data):
        self.data = data

    def biomass(self, theta):
        r, k, _ = np.exp(theta)
        b = k
        series = []
        for c in self.data.catch:
            b = max(b + r * b * (1 - b / k) - c, 1e-3 * k)
            series.append(b)
        return np.array(series)

    def logp(self, theta):
        b = self.biomass(theta)
        q = np.exp(theta[2])
        resid = np.log(self.data.index) - np.log(q * b)
        prior = -0.5 * ((theta[0] + 1.2) / 0.5) ** 2 - 0.5 * ((theta[1] - 7.0) / 0.6) ** 2
        return float(prior - 0.5 * (resid**2).sum() / self.data.sd**2)


def simulate(cfg: AssessmentConfig) -> Data:
    rng = np.random.default_rng(cfg.seed - 1)
    r, k, q, b = 0.28, 1100.0, 0.004, 1100.0
    catch, index = [], []
    for y in range(cfg.years):
        c = 30 + 45 * np.sin(y / 9.0) ** 2 + rng.normal(0, 3)
        b = max(b + r * b * (1 - b / k) - c, 10.0)
        catch.append(c)
        index.append(q * b * np.exp(rng.normal(0, 0.15)))
    return Data(np.array(catch), np.array(index), 0.15)


def run_chain(number, model, cfg, start, rng):
    theta = np.array(start, dtype=float)
    logp = model.logp(theta)
    kept, accepted = [], 0
    scale = np.array([1.0, 0.6, 0.6]) * cfg.step
    for it in range(cfg.draws + cfg.warmup):
        proposal = theta + scale * rng.standard_normal(3)  # cause
        log_u = np.log(rng.random())  # cause
        new = model.logp(proposal)
        if log_u < new - logp:
            theta, logp = proposal, new
            accepted += 1
        if it >= cfg.warmup:
            kept.append(theta.copy())
    log.info("chain %d acceptance %.3f", number, accepted / (cfg.draws + cfg.warmup))
    return np.array(kept)


def sample(model, cfg):
    rng = np.random.default_rng(cfg.seed)  # cause
    starts = [(-1.2 + 0.1 * c, 7.0 - 0.05 * c, -5.5 + 0.05 * c) for c in range(cfg.chains)]
    with ThreadPoolExecutor(cfg.chains) as pool:
        jobs = [pool.submit(run_chain, c, model, cfg, starts[c], rng) for c in range(cfg.chains)]
        return np.stack([j.result() for j in jobs])


def rhat(chains):
    m, n, _ = chains.shape
    means = chains.mean(1)
    between = n * means.var(0, ddof=1)
    within = chains.var(1, ddof=1).mean(0)
    return np.sqrt(((n - 1) / n * within + between / n) / within)


def management(model, chains):
    draws = chains.reshape(-1, 3)[::25]
    r, k = np.exp(draws[:, 0]), np.exp(draws[:, 1])
    depletion = np.array([model.biomass(d)[-1] for d in draws]) / k
    return {
        "msy": np.quantile(r * k / 4, [0.05, 0.5, 0.95]).round(5).tolist(),
        "depletion": np.quantile(depletion, [0.05, 0.5, 0.95]).round(6).tolist(),
        "prob_below_40": round(float((depletion < 0.4).mean()), 6),
    }


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(threadName)s %(message)s")
    ap = argparse.ArgumentParser()
    ap.add_argument("--draws", type=int, default=AssessmentConfig.draws)
    ap.add_argument("--chains", type=int, default=AssessmentConfig.chains)
    ns = ap.parse_args()
    cfg = AssessmentConfig(draws=ns.draws, chains=ns.chains)
    t0 = time.time()
    model = SurplusProduction(simulate(cfg))
    chains = sample(model, cfg)
    report = management(model, chains)
    report["rhat"] = rhat(chains).round(6).tolist()
    report["mean"] = dict(zip(model.names, np.exp(chains).mean((0, 1)).round(6).tolist()))
    out = Path(cfg.out)
    out.mkdir(exist_ok=True)
    np.save(out / "chains.npy", chains)
    (out / "management.json").write_text(json.dumps(report, indent=1))
    print("depletion", report["depletion"], "msy", report["msy"][1])
    log.info("%.1fs", time.time() - t0)


if __name__ == "__main__":
    main()
