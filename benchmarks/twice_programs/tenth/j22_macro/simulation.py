"""Modelled on https://github.com/INET-Complexity/macro-main/issues/102. Quarterly simulation of output, wages and employment."""
import numpy as np
import pandas as pd


class Simulation:
    def __init__(self, cfg, data):
        self.cfg = cfg
        self.data = data
        self.people = data.individuals.copy()
        self.rng = np.random.default_rng(cfg.seed + 1)
        self.leontief = np.linalg.inv(np.eye(len(cfg.industries)) - data.io_matrix.to_numpy())
        self.prices = pd.Series(1.0, index=cfg.industries)
        self.records = []

    def demand(self):
        income = self.people.groupby("household")["wage"].sum()
        propensity = 0.95 - 0.1 * income.rank(pct=True)
        total = float((income * propensity).sum())
        weights = self.data.shares.to_numpy() / self.prices.to_numpy()
        return total * weights / weights.sum()

    def labour_market(self, gap):
        p = self.people
        leave = (p["status"] == "employed").to_numpy() & (self.rng.random(len(p)) < self.cfg.separation_rate)
        p.loc[leave, "status"] = "unemployed"
        seekers = p.index[p["status"] == "unemployed"]
        openings = np.clip(gap, 0, None) + 0.05
        probs = openings / openings.sum()
        hired = seekers[self.rng.random(len(seekers)) < self.cfg.hiring_rate]
        if len(hired):
            p.loc[hired, "industry"] = self.rng.choice(self.cfg.industries, size=len(hired), p=probs)
            p.loc[hired, "status"] = "employed"

    def step(self, t):
        growth = self.rng.normal(self.cfg.growth_mean, self.cfg.growth_std, len(self.cfg.industries))
        emp = self.people.loc[self.people["status"] == "employed"]
        workers = emp["industry"].value_counts().reindex(self.cfg.industries, fill_value=0)
        wages = emp.groupby("industry")["wage"].sum().reindex(self.cfg.industries, fill_value=0.0)
        capacity = wages.to_numpy() * 2.4
        wanted = self.leontief @ self.demand()
        output = np.minimum(capacity, wanted)
        gap = (wanted - capacity) / np.maximum(capacity, 1.0)
        self.prices *= np.exp(0.02 * np.tanh(gap))
        bump = pd.Series(1 + growth + 0.01 * np.tanh(gap), index=self.cfg.industries)
        mask = self.people["status"] == "employed"
        self.people.loc[mask, "wage"] *= self.people.loc[mask, "industry"].map(bump)
        self.labour_market(gap)
        rec = {
            "quarter": t,
            "gdp": float(output.sum()),
            "cpi": float((self.prices * self.data.shares).sum()),
            "unemployment": float((self.people["status"] == "unemployed").sum() / (self.people["status"] != "inactive").sum()),
            "mean_wage": float(emp["wage"].mean()),
            "smallest_industry": int(workers.min()),
        }
        self.records.append(rec)
        return rec

    def run(self):
        for t in range(self.cfg.n_quarters):
            self.step(t)
        return pd.DataFrame(self.records)
