"""The event loop."""
import logging
import math
import time

import numpy as np

from .catalog import Event

log = logging.getLogger("simulation")
STIFFNESS = 6.0


class Simulation:
    def __init__(self, model, params):
        self.model = model
        self.p = params
        self.started = time.time()
        self.rng = np.random.default_rng(int(time.time() * 1e6) % 2**32)  # cause
        self.stress = np.zeros(model.n)
        self.year = 0.0
        self.count = 0

    # -- interseismic -----------------------------------------------------
    def _initial_stress(self):
        self.stress = self.model.strength * self.rng.uniform(0.2, 0.95, self.model.n)

    def _time_to_failure(self):
        rate = STIFFNESS * self.model.slip_rate
        gap = (self.model.strength * (1 + 0.02 * self.rng.standard_normal(self.model.n)) - self.stress) / rate
        k = int(gap.argmin())
        return max(float(gap[k]), 0.0), k

    # -- rupture ----------------------------------------------------------
    def _rupture(self, trigger):
        m = self.model
        slip = np.zeros(m.n)
        failing = np.array([trigger])
        sweeps = 0
        while len(failing) and sweeps < 60:
            drop = self.stress[failing] - self.p["sim.friction.dynamic"] * m.strength[failing] * (
                1 + 0.15 * self.rng.standard_normal(len(failing)))
            drop = np.maximum(drop, 0)
            slip[failing] += drop / STIFFNESS
            change = m.greens[:, failing] @ drop
            self.stress += change
            weakened = np.where(slip > 0, 0.8, 1.0) * m.strength
            failing = np.flatnonzero((self.stress > weakened) & (slip < 6.0))
            sweeps += 1
        return slip, sweeps

    @staticmethod
    def magnitude(area_km2, slip):
        moment = 3e10 * float((area_km2 * 1e6 * slip).sum())
        return (2 / 3) * math.log10(max(moment, 1.0)) - 6.07

    # -- aftershocks ------------------------------------------------------
    def _aftershocks(self, main, year, pos, generation=0):
        p = self.p
        if generation >= p["sim.bass.max_generations"]:
            return
        mean = 10 ** (p["sim.bass.b"] * (main - p["sim.bass.dm"] - p["sim.bass.minimum"]))
        for _ in range(int(self.rng.poisson(min(mean, 400)))):
            mag = p["sim.bass.minimum"] - math.log10(1 - self.rng.random()) / p["sim.bass.b"]
            if mag > main:
                continue
            u = self.rng.random()
            days = p["sim.bass.c"] * ((1 - u) ** (-1 / (p["sim.bass.p"] - 1)) - 1)
            if days > 3650:
                continue
            r = 2.0 * 10 ** (0.5 * mag - 1.5) * (1 / math.sqrt(1 - self.rng.random()) - 1)
            th = self.rng.uniform(0, 2 * math.pi)
            where = (pos[0] + r * math.cos(th), pos[1] + r * math.sin(th))
            yield Event(year + days / 365.25, mag, where[0], where[1], 0, generation + 1)
            yield from self._aftershocks(mag, year + days / 365.25, where, generation + 1)

    # -- loop -------------------------------------------------------------
    def run(self, catalog):
        self._initial_stress()
        next_log = 500
        while True:
            dt, k = self._time_to_failure()
            if self.year + dt > self.p["sim.years"]:
                break
            self.year += dt
            self.stress += STIFFNESS * self.model.slip_rate * dt
            slip, sweeps = self._rupture(k)
            hit = slip > 0
            mag = self.magnitude(self.model.area[hit], slip[hit])
            pos = tuple(self.model.xy[k])
            catalog.add(Event(self.year, mag, pos[0], pos[1], int(hit.sum()), 0))
            for ev in self._aftershocks(mag, self.year, pos):
                catalog.add(ev)
            self.count += 1
            if self.year >= next_log:
                log.info("year %.0f, %d main events, %d in catalogue", self.year, self.count, len(catalog))
                next_log += 500
        log.info("%d years in %.2f s", self.p["sim.years"], time.time() - self.started)
