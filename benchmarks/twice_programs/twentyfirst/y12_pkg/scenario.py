"""Phases, simulation and outlook."""
import numpy as np
import pandas as pd

from .model import reproduction_number, run


class Scenario:
    def __init__(self, population):
        self.population = population
        self.phases = []

    def add(self, name, start, stop, params):
        self.phases.append({"phase": name, "start": start, "stop": stop, "params": params})

    def _get(self, name):
        return next(p for p in self.phases if p["phase"] == name)

    def reproduction(self, name):
        return reproduction_number(**self._get(name)["params"])

    def table(self):
        return pd.DataFrame([{"phase": p["phase"], "start": p["start"], "stop": p["stop"], **p["params"],
                              "Rt": self.reproduction(p["phase"])} for p in self.phases])

    def simulate(self, first, days_ahead):
        y = first[["S", "I", "R", "F"]].to_numpy(dtype=float)
        parts = []
        for k, p in enumerate(self.phases):
            n = p["stop"] - p["start"] + (days_ahead if k == len(self.phases) - 1 else 0)
            out = run(y, n + 1, population=self.population, **p["params"])
            parts.append(out[:-1])
            y = out[-1]
        return pd.DataFrame(np.vstack(parts), columns=["S", "I", "R", "F"])

    @staticmethod
    def outlook(sim, today):
        ahead = sim.iloc[today:]
        return {"infected_today": float(sim["I"].iloc[today - 1]), "infected_end": float(ahead["I"].iloc[-1]),
                "peak_infected": float(sim["I"].max()), "peak_day": int(sim["I"].idxmax()),
                "new_fatal": float(ahead["F"].iloc[-1] - ahead["F"].iloc[0])}
