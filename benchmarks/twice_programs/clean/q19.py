"""One year of a two zone building (RC network), reported in EnergyPlus' files.

Output format: EnergyPlus console lines, eplusout.err, eplusout.end,
eplusout.sql (Simulations table with a TimeStamp) and the tabular HTML report.
Seen at: https://github.com/NatLabRockies/EnergyPlus/issues/7779
         https://github.com/IBM/rl-testbed-for-energyplus/issues/13
Field: building energy simulation.
"""
import math
import os
import random
import sqlite3
import sys
import time
from dataclasses import dataclass, field
from datetime import datetime

STEPS_PER_HOUR = 60
DT = 3600 / STEPS_PER_HOUR
MONTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
COP, BOILER = 3.1, 0.88
VERSION = "EnergyPlus, Version 9.2.0-921312fa1d"


@dataclass
class Zone:
    name: str
    area: float
    ua: float                 # W/K to outside
    cap: float                # J/K
    window: float             # effective solar area, m2
    temp: float = 20.0
    heat: list = field(default_factory=lambda: [0.0] * 12)
    cool: list = field(default_factory=lambda: [0.0] * 12)
    peak_h: float = 0.0
    peak_c: float = 0.0
    unmet: int = 0

    def step(self, outside, sun, gains, other, coupling, occupied, month):
        low, high = (20.0, 25.0) if occupied else (16.0, 29.0)
        flow = self.ua * (outside - self.temp) + coupling * (other - self.temp) + sun * self.window + gains * self.area
        free = self.temp + flow * DT / self.cap
        power = 0.0
        if free < low:
            power = min((low - free) * self.cap / DT, 90.0 * self.area)
            self.heat[month] += power * DT / 3.6e6
            self.peak_h = max(self.peak_h, power)
        elif free > high:
            power = -min((free - high) * self.cap / DT, 70.0 * self.area)
            self.cool[month] -= power * DT / 3.6e6
            self.peak_c = max(self.peak_c, -power)
        self.temp = free + power * DT / self.cap
        if occupied and not (low - 0.2 <= self.temp <= high + 0.2):
            self.unmet += 1


def weather(seed=94846):
    rng, drift = random.Random(seed), 0.0
    for hour in range(8760):
        day = hour // 24
        drift = 0.985 * drift + rng.gauss(0, 0.55)
        temp = 10.5 - 12.5 * math.cos(2 * math.pi * (day - 18) / 365) - 4.5 * math.cos(2 * math.pi * ((hour % 24) - 3) / 24) + drift
        elevation = math.sin(math.pi * ((hour % 24) - 6) / 12) * (0.62 - 0.35 * math.cos(2 * math.pi * (day + 10) / 365))
        yield temp, max(elevation, 0.0) * 780 * (0.35 + 0.65 * rng.random())


def month_of(day):
    for m, n in enumerate(MONTHS):
        if day < n:
            return m
        day -= n
    return 11


def run_time(secs):
    return f"{int(secs // 3600):02d}hr {int(secs % 3600 // 60):02d}min {secs % 60:5.2f}sec"


def main():
    t0 = time.perf_counter()
    stamp = datetime.now().strftime("%Y.%m.%d %H:%M")
    header = f"Program Version,{VERSION}, YMD={stamp},"
    err = [header]
    print("EnergyPlus Starting\n" + VERSION + f", YMD={stamp}")
    print("Initializing Response Factors\nCalculating CTFs for \"EXTERIOR-WALL\"\nInitializing Simulation")
    print(f"Reporting Surfaces (working in {os.getcwd()}, process {os.getpid()})")
    err += ["   ************* Beginning Zone Sizing Calculations", "   ************* Testing Individual Branch Integrity",
            "   ************* All Branches passed integrity testing", "   ************* No node connection errors were found.",
            "   ************* Beginning Simulation"]
    zones = [Zone("OFFICE", 420.0, 310.0, 9.0e7, 24.0), Zone("STORE", 260.0, 240.0, 1.1e8, 6.0)]
    days = ("Warming up",) * 6
    for n, word in enumerate(days, 1):
        print(f"{word} {{{n}}}")
    warn, hot, last, series = 0, 0, -1, []
    begin = time.perf_counter()
    for hour, (outside, sun) in enumerate(weather()):
        day, h = divmod(hour, 24)
        month = month_of(day)
        if month != last:
            secs = time.perf_counter() - begin
            print(f"Continuing Simulation at {month + 1:02d}/01/2017 for RUN PERIOD 1   ({secs:.2f} s, {hour / max(secs, 1e-6):.0f} h/s)")
            last = month
        occupied = day % 7 < 5 and 7 <= h < 19
        gains = 14.0 if occupied else 2.5
        for _ in range(STEPS_PER_HOUR):
            a, b = zones[0].temp, zones[1].temp
            zones[0].step(outside, sun, gains, b, 180.0, occupied, month)
            zones[1].step(outside, sun, gains * 0.4, a, 180.0, occupied, month)
        series.append((hour, outside, zones[0].temp, zones[1].temp))
        if zones[0].temp > 28.9:
            hot += 1
            if hot <= 3:
                warn += 1
                err.append(f"   ** Warning ** Zone=\"OFFICE\" air temperature [{zones[0].temp:.2f}] near the upper limit")
                err.append(f"   **   ~~~   **  Environment=RUN PERIOD 1, at Simulation time={month + 1:02d} hour {hour}")
    sim_secs = time.perf_counter() - begin
    gas = sum(sum(z.heat) for z in zones) / BOILER
    power = sum(sum(z.cool) for z in zones) / COP
    db = sqlite3.connect("eplusout.sql")
    db.executescript("DROP TABLE IF EXISTS Simulations; DROP TABLE IF EXISTS Monthly; DROP TABLE IF EXISTS Hourly;"
                     "CREATE TABLE Simulations(SimulationIndex INTEGER PRIMARY KEY, EnergyPlusVersion TEXT, TimeStamp TEXT, ElapsedSeconds REAL, Completed BOOL);"
                     "CREATE TABLE Monthly(Zone TEXT, Month INTEGER, Heating REAL, Cooling REAL);"
                     "CREATE TABLE Hourly(TimeIndex INTEGER PRIMARY KEY, Outdoor REAL, Office REAL, Store REAL);")
    db.execute("INSERT INTO Simulations VALUES(1,?,?,?,1)", (f"{VERSION}, YMD={stamp}", f"YMD={stamp}", sim_secs))
    for z in zones:
        db.executemany("INSERT INTO Monthly VALUES(?,?,?,?)", [(z.name, m + 1, round(z.heat[m], 4), round(z.cool[m], 4)) for m in range(12)])
    db.executemany("INSERT INTO Hourly VALUES(?,?,?,?)", [(h, round(o, 4), round(a, 4), round(b, 4)) for h, o, a, b in series])
    db.commit()
    mean = db.execute("SELECT AVG(Outdoor), AVG(Office), AVG(Store) FROM Hourly").fetchone()
    monthly = db.execute("SELECT Month, ROUND(SUM(Heating),1), ROUND(SUM(Cooling),1) FROM Monthly GROUP BY Month ORDER BY Month").fetchall()
    db.close()
    with open("eplustbl.htm", "w") as fh:
        now = datetime.now()
        fh.write(f"<!DOCTYPE html><html><head><title> RUN PERIOD 1 ** Chicago\n  {now:%Y-%m-%d}\n {now:%H:%M:%S}\n - EnergyPlus</title></head><body>\n"
                 f"<p>Program Version:<b>{VERSION}, YMD={stamp}</b></p><p>Timestamp: <b>{now:%Y-%m-%d}\n    {now:%H:%M:%S}</b></p>\n<table border=\"1\">\n")
        for m, heat, cool in monthly:
            fh.write(f"<tr><td>{m}</td><td>{heat:.1f}</td><td>{cool:.1f}</td></tr>\n")
        fh.write("</table></body></html>\n")
    total = time.perf_counter() - t0
    done = f"EnergyPlus Completed Successfully-- {warn} Warning; 0 Severe Errors; Elapsed Time={run_time(total)}"
    err += ["   ************* Simulation Error Summary *************",
            f"   ************* EnergyPlus Warmup Error Summary. During Warmup: 0 Warning; 0 Severe Errors.", f"   ************* {done}"]
    with open("eplusout.err", "w") as fh:
        fh.write("\n".join(err) + "\n")
    with open("eplusout.end", "w") as fh:
        fh.write(done + "\n")
    print("Writing tabular output file results using HTML format.\nWriting final SQL reports")
    print("\nMonth   Heating [kWh]   Cooling [kWh]")
    for m, heat, cool in monthly:
        print(f"{m:5d}{heat:16.1f}{cool:16.1f}")
    print(f"\nTotal site energy: gas {gas:.1f} kWh, electricity for cooling {power:.1f} kWh, EUI {(gas + power) / sum(z.area for z in zones):.3f} kWh/m2")
    for z in zones:
        print(f"{z.name:<7} peak heating {z.peak_h / 1000:.3f} kW, peak cooling {z.peak_c / 1000:.3f} kW, unmet {z.unmet / STEPS_PER_HOUR:.1f} h")
    print(f"mean temperatures: outdoor {mean[0]:.4f}, office {mean[1]:.4f}, store {mean[2]:.4f}; hours near the limit {hot}")
    print(f" EnergyPlus Run Time={run_time(time.perf_counter() - t0)}")
    print("EnergyPlus Completed Successfully.", file=sys.stderr)


if __name__ == "__main__":
    main()
