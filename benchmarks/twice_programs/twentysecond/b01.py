"""Residential energy model: run one dwelling for several retrofit scenarios.

A single zone building with a heat pump, a water heater and an electric
vehicle is simulated with quarter-hour steps over three years.  For every
retrofit scenario the yearly-style metrics (energy, peak, discomfort) are
collected in one table, and the load profile of the base case is kept as csv.

Modelled on: https://github.com/NatLabRockies/OCHRE/issues/136
"""
import csv
import json
import logging
import time
import zlib
from dataclasses import dataclass, field

import numpy as np

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("dwelling")

STEPS_PER_DAY = 96
HOURS = 24 / STEPS_PER_DAY


@dataclass
class Envelope:
    ua: float = 0.22           # kW/K
    capacity: float = 9.0      # kWh/K
    solar_aperture: float = 6.0


@dataclass
class Weather:
    days: int
    temperature: np.ndarray = field(init=False)
    irradiance: np.ndarray = field(init=False)

    def __post_init__(self):
        n = self.days * STEPS_PER_DAY
        hour = np.arange(n) * HOURS
        day = hour / 24
        self.temperature = 4 + 6 * np.sin(2 * np.pi * (hour - 9) / 24) + 3 * np.sin(day / 3.1)
        sun = np.clip(np.sin(2 * np.pi * (hour - 6) / 24), 0, None)
        self.irradiance = 0.55 * sun * (0.6 + 0.4 * np.cos(day / 1.7))


class HeatPump:
    def __init__(self, capacity_kw=7.0, setpoint=20.5, deadband=0.8):
        self.capacity = capacity_kw
        self.setpoint = setpoint
        self.deadband = deadband
        self.on = False

    def cop(self, outdoor):
        return max(1.5, 3.4 + 0.07 * (outdoor - 7))

    def step(self, indoor, outdoor):
        if indoor < self.setpoint - self.deadband / 2:
            self.on = True
        elif indoor > self.setpoint + self.deadband / 2:
            self.on = False
        if not self.on:
            return 0.0, 0.0
        return self.capacity, self.capacity / self.cop(outdoor)


class WaterHeater:
    def __init__(self, start_temperature, volume_l=200):
        self.temperature = start_temperature
        self.kwh_per_k = volume_l * 4.186 / 3600
        self.on = False

    def step(self, litres):
        self.temperature -= litres * 4.186 / 3600 * (self.temperature - 12) / self.kwh_per_k
        self.temperature -= 0.0015 * (self.temperature - 20)
        if self.temperature < 49:
            self.on = True
        elif self.temperature > 55:
            self.on = False
        power = 3.0 if self.on else 0.0
        self.temperature += power * HOURS / self.kwh_per_k
        return power


class ElectricVehicle:
    def __init__(self, capacity_kwh=60, charger_kw=7.2):
        self.capacity = capacity_kwh
        self.charger = charger_kw
        self.need = 0.0
        self.arrival = None

    def plan_day(self, rng):
        distance = rng.gamma(3.0, 16.0)
        self.arrival = int(np.clip(rng.normal(18, 1.6), 12, 23) / HOURS)
        self.need = min(self.capacity, self.need + 0.18 * distance)

    def step(self, quarter):
        if self.need <= 0 or quarter < self.arrival:
            return 0.0
        power = min(self.charger, self.need / HOURS)
        self.need -= power * HOURS
        return power


class Dwelling:
    """All equipment of one building and the loop over time."""

    def __init__(self, name, weather, envelope, heat_pump, output_path=None, seed=None, with_ev=True):
        self.name = name
        self.weather = weather
        self.envelope = envelope
        self.heat_pump = heat_pump
        if seed is None and output_path is not None:
            seed = zlib.crc32(output_path.encode())
        self.rng = np.random.default_rng(seed)  # cause
        self.indoor = heat_pump.setpoint + self.rng.uniform(-0.4, 0.4)
        self.water = WaterHeater(self.rng.uniform(49, 55))
        self.ev = ElectricVehicle() if with_ev else None

    def simulate(self):
        n = len(self.weather.temperature)
        load = np.zeros(n)
        indoor = np.zeros(n)
        for t in range(n):
            quarter = t % STEPS_PER_DAY
            if quarter == 0 and self.ev is not None:
                self.ev.plan_day(self.rng)
            outdoor = self.weather.temperature[t]
            heat, power = self.heat_pump.step(self.indoor, outdoor)
            gains = 0.35 + self.envelope.solar_aperture * self.weather.irradiance[t] * 0.5
            flow = heat + gains - self.envelope.ua * (self.indoor - outdoor)
            self.indoor += flow * HOURS / self.envelope.capacity
            litres = 2.2 if 26 <= quarter <= 34 or 74 <= quarter <= 88 else 0.4
            power += self.water.step(litres)
            if self.ev is not None:
                power += self.ev.step(quarter)
            load[t] = power
            indoor[t] = self.indoor
        return load, indoor


def metrics(load, indoor, setpoint):
    daily = load.reshape(-1, STEPS_PER_DAY)
    return {
        "energy_kwh": round(float(load.sum() * HOURS), 3),
        "peak_kw": round(float(load.max()), 3),
        "mean_daily_peak_kw": round(float(daily.max(axis=1).mean()), 3),
        "discomfort_kh": round(float(np.clip(setpoint - 0.4 - indoor, 0, None).sum() * HOURS), 3),
        "mean_indoor": round(float(indoor.mean()), 4),
    }


SCENARIOS = {
    "base": dict(ua=0.22, aperture=6.0, capacity=7.0),
    "attic": dict(ua=0.18, aperture=6.0, capacity=7.0),
    "windows": dict(ua=0.19, aperture=4.8, capacity=7.0),
    "deep": dict(ua=0.13, aperture=4.8, capacity=5.0),
}


def build(name, options, weather):
    dwelling_args = {
        "name": name,
        "weather": weather,
        "envelope": Envelope(ua=options["ua"], solar_aperture=options["aperture"]),
        "heat_pump": HeatPump(capacity_kw=options["capacity"]),
    }
    return Dwelling(**dwelling_args)  # cause


def main():
    began = time.time()
    weather = Weather(days=1095)
    table = {}
    for name, options in SCENARIOS.items():
        dwelling = build(name, options, weather)
        load, indoor = dwelling.simulate()
        table[name] = metrics(load, indoor, dwelling.heat_pump.setpoint)
        log.info("%s done after %.1f s", name, time.time() - began)
        if name == "base":
            with open("base_profile.csv", "w", newline="") as handle:
                writer = csv.writer(handle)
                writer.writerow(["step", "load_kw", "indoor_c"])
                for t in range(0, len(load), 24):
                    writer.writerow([t, f"{load[t]:.4f}", f"{indoor[t]:.4f}"])
    with open("metrics.json", "w") as handle:
        json.dump(table, handle, indent=2)
    columns = list(next(iter(table.values())))
    print("scenario  " + "  ".join(f"{c:>18}" for c in columns))
    for name, row in table.items():
        print(f"{name:<9} " + "  ".join(f"{row[c]:>18}" for c in columns))
    saved = table["base"]["energy_kwh"] - table["deep"]["energy_kwh"]
    print(f"deep retrofit saves {saved:.1f} kWh")


if __name__ == "__main__":
    main()
