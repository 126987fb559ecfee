"""Modelled on https://github.com/RocketPy-Team/RocketPy/issues/1053

Monte Carlo dispersion analysis of a sounding rocket: samples stochastic inputs, flies each case in worker processes and fits landing ellipses.
"""
import argparse
import json
import logging
import math
import multiprocessing as mp
import time
from dataclasses import asdict, dataclass, field

import numpy as np

log = logging.getLogger("montecarlo")

G = 9.80665


@dataclass(frozen=True)
class StochasticRocket:
    dry_mass: tuple = (14.4, 0.12)
    propellant_mass: tuple = (2.9, 0.03)
    burn_time: tuple = (3.6, 0.08)
    total_impulse: tuple = (6050.0, 60.0)
    drag_coefficient: tuple = (0.46, 0.02)
    radius: float = 0.0635
    chute_cds: tuple = (3.1, 0.15)
    chute_lag: tuple = (1.2, 0.3)

    def sample(self, rng):
        names = ["dry_mass", "propellant_mass", "burn_time", "total_impulse", "drag_coefficient", "chute_cds"]
        out = {n: float(rng.normal(*getattr(self, n))) for n in names}
        out["chute_lag"] = float(max(0.0, rng.normal(*self.chute_lag)))
        out["radius"] = self.radius
        return out


@dataclass(frozen=True)
class StochasticEnvironment:
    wind_mean: tuple = (3.0, -1.5)
    wind_std: float = 1.6
    shear: tuple = (0.0012, 0.0003)
    density_factor: tuple = (1.0, 0.015)

    def sample(self, rng):
        return {
            "wind_x": float(rng.normal(self.wind_mean[0], self.wind_std)),
            "wind_y": float(rng.normal(self.wind_mean[1], self.wind_std)),
            "shear": float(rng.normal(*self.shear)),
            "density_factor": float(rng.normal(*self.density_factor)),
        }


@dataclass(frozen=True)
class StochasticFlight:
    inclination: tuple = (84.7, 1.0)
    heading: tuple = (133.0, 2.0)

    def sample(self, rng):
        return {"inclination": float(rng.normal(*self.inclination)), "heading": float(rng.normal(*self.heading))}


@dataclass(frozen=True)
class MonteCarloConfig:
    number_of_simulations: int = 120
    n_workers: int = 2
    dt: float = 0.05
    max_time: float = 900.0
    rocket: StochasticRocket = field(default_factory=StochasticRocket)
    environment: StochasticEnvironment = field(default_factory=StochasticEnvironment)
    flight: StochasticFlight = field(default_factory=StochasticFlight)


def air_density(z, factor):
    return factor * 1.225 * math.exp(-max(z, 0.0) / 8500.0)


def fly(rocket, env, flight, dt, max_time):
    inc, head = math.radians(flight["inclination"]), math.radians(flight["heading"])
    direction = (math.cos(inc) * math.sin(head), math.cos(inc) * math.cos(head), math.sin(inc))
    area = math.pi * rocket["radius"] ** 2
    thrust = rocket["total_impulse"] / rocket["burn_time"]
    x = y = z = vx = vy = vz = t = 0.0
    apogee, apogee_time, max_speed, chute_at = 0.0, 0.0, 0.0, None
    while t < max_time:
        burning = t < rocket["burn_time"]
        left = max(0.0, 1.0 - t / rocket["burn_time"])
        mass = rocket["dry_mass"] + rocket["propellant_mass"] * left
        wx = env["wind_x"] * (1 + env["shear"] * max(z, 0.0))
        wy = env["wind_y"] * (1 + env["shear"] * max(z, 0.0))
        rx, ry, rz = vx - wx, vy - wy, vz
        rel = math.sqrt(rx * rx + ry * ry + rz * rz) + 1e-9
        open_chute = chute_at is not None and t >= chute_at
        cda = rocket["chute_cds"] if open_chute else rocket["drag_coefficient"] * area
        k = 0.5 * air_density(z, env["density_factor"]) * cda * rel
        k = min(k, 0.9 * mass / dt)
        ax, ay, az = -k * rx / mass, -k * ry / mass, -k * rz / mass - G
        if burning:
            speed = math.sqrt(vx * vx + vy * vy + vz * vz)
            if speed > 20.0:
                direction = (vx / speed, vy / speed, vz / speed)
            ax += thrust * direction[0] / mass
            ay += thrust * direction[1] / mass
            az += thrust * direction[2] / mass
        vx, vy, vz = vx + ax * dt, vy + ay * dt, vz + az * dt
        x, y, z = x + vx * dt, y + vy * dt, z + vz * dt
        t += dt
        max_speed = max(max_speed, math.sqrt(vx * vx + vy * vy + vz * vz))
        if z > apogee:
            apogee, apogee_time = z, t
        elif chute_at is None and vz < 0 and not burning:
            chute_at = t + rocket["chute_lag"]
        if z < 0 and t > 1.0:
            break
    return {"apogee": apogee, "apogee_time": apogee_time, "max_speed": max_speed, "x_impact": x, "y_impact": y, "t_final": t, "impact_velocity": vz}


def simulate_chunk(job):
    cfg, seed, indices = job
    rng = np.random.default_rng(seed)
    rows = []
    for i in indices:
        rocket = cfg.rocket.sample(rng)
        env = cfg.environment.sample(rng)
        flight = cfg.flight.sample(rng)
        out = fly(rocket, env, flight, cfg.dt, cfg.max_time)
        rows.append({"index": i, "inputs": {**rocket, **env, **flight}, "outputs": out})
    return rows


class MonteCarlo:
    def __init__(self, cfg, filename):
        self.cfg = cfg
        self.filename = filename
        self.results = []

    def simulate(self):
        n, w = self.cfg.number_of_simulations, self.cfg.n_workers
        seeds = np.random.SeedSequence().spawn(w)  # cause
        jobs = [(self.cfg, seeds[k], list(range(k, n, w))) for k in range(w)]
        with mp.get_context("fork").Pool(w) as pool:
            chunks = pool.map(simulate_chunk, jobs, chunksize=1)
        self.results = sorted((r for c in chunks for r in c), key=lambda r: r["index"])
        self.export()
        return self.results

    def export(self):
        with open(f"{self.filename}.inputs.txt", "w") as fi, open(f"{self.filename}.outputs.txt", "w") as fo:
            for r in self.results:
                fi.write(json.dumps({"index": r["index"], **r["inputs"]}) + "\n")
                fo.write(json.dumps({"index": r["index"], **r["outputs"]}) + "\n")

    def column(self, name):
        return np.array([r["outputs"][name] for r in self.results])

    def landing_ellipse(self, n_std):
        pts = np.stack([self.column("x_impact"), self.column("y_impact")])
        vals, vecs = np.linalg.eigh(np.cov(pts))
        angle = math.degrees(math.atan2(vecs[1, 1], vecs[0, 1])) % 180.0
        return {
            "n_std": n_std,
            "centre": [float(v) for v in pts.mean(axis=1)],
            "semi_major": float(n_std * math.sqrt(vals[1])),
            "semi_minor": float(n_std * math.sqrt(vals[0])),
            "angle_deg": angle,
        }

    def summary(self):
        names = ["apogee", "apogee_time", "max_speed", "x_impact", "y_impact", "t_final", "impact_velocity"]
        return {n: {"mean": float(self.column(n).mean()), "std": float(self.column(n).std(ddof=1))} for n in names}


def nominal(cfg):
    mean = lambda v: v[0] if isinstance(v, tuple) else v
    rocket = {k: mean(v) for k, v in asdict(cfg.rocket).items()}
    wind = cfg.environment.wind_mean
    env = {"wind_x": wind[0], "wind_y": wind[1], "shear": cfg.environment.shear[0], "density_factor": 1.0}
    flight = {k: mean(v) for k, v in asdict(cfg.flight).items()}
    return fly(rocket, env, flight, cfg.dt, cfg.max_time)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("-n", type=int, default=MonteCarloConfig.number_of_simulations)
    ap.add_argument("--workers", type=int, default=MonteCarloConfig.n_workers)
    ap.add_argument("--name", default="calisto")
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    np.random.seed(42)
    cfg = MonteCarloConfig(number_of_simulations=args.n, n_workers=args.workers)
    base = nominal(cfg)
    print(f"nominal apogee {base['apogee']:.2f} m, landing ({base['x_impact']:.1f}, {base['y_impact']:.1f})")
    mc = MonteCarlo(cfg, args.name)
    t0 = time.perf_counter()
    mc.simulate()
    log.info("%d flights in %.2fs", len(mc.results), time.perf_counter() - t0)
    summary = mc.summary()
    ellipses = [mc.landing_ellipse(k) for k in (1, 2, 3)]
    for name, s in summary.items():
        print(f"{name:<16} mean {s['mean']:>11.4f}  std {s['std']:>10.4f}")
    for e in ellipses:
        print(f"{e['n_std']} sigma ellipse: {e['semi_major']:.1f} x {e['semi_minor']:.1f} m at {e['angle_deg']:.1f} deg")
    with open(f"{args.name}.results.json", "w") as fh:
        json.dump({"nominal": base, "summary": summary, "ellipses": ellipses}, fh, indent=2)


if __name__ == "__main__":
    main()
