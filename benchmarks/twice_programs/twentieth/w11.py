"""Corner sweep of an RC-diode rectifier with a small transient simulator.

Builds one netlist per process corner, simulates all of them on a few worker
threads, measures ripple, settling time and power, fits a response surface over
the corner parameters and writes the measurements, surface and worst cases.

Modelled on: https://github.com/Vlsir/Vlsir/issues/86
"""
import argparse
import csv
import datetime
import itertools
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass

import numpy as np

VT = 0.02585


@dataclass(frozen=True)
class Corner:
    """Parameters of one simulation."""

    resistance: float
    capacitance: float
    temperature: float
    supply: float

    def features(self):
        return np.array([np.log(self.resistance / 1e3), np.log(self.capacitance / 1e-6),
                         (self.temperature - 300.0) / 50.0, self.supply / 5.0 - 1.0])


@dataclass
class SimInput:
    name: str
    netlist: "Netlist"
    t_stop: float
    dt: float


@dataclass
class SimResult:
    time: np.ndarray
    voltages: np.ndarray
    source_current: np.ndarray
    newton_iterations: int


class Netlist:
    """Nodal description with resistors, capacitors, diodes and one sine source."""

    def __init__(self, n_nodes):
        self.n = n_nodes
        self.conductance = np.zeros((n_nodes, n_nodes))
        self.capacitance = np.zeros((n_nodes, n_nodes))
        self.diodes = []
        self.source = None

    @staticmethod
    def _stamp(matrix, a, b, value):
        if a >= 0:
            matrix[a, a] += value
        if b >= 0:
            matrix[b, b] += value
        if a >= 0 and b >= 0:
            matrix[a, b] -= value
            matrix[b, a] -= value

    def resistor(self, a, b, ohms):
        self._stamp(self.conductance, a, b, 1.0 / ohms)

    def capacitor(self, a, b, farads):
        self._stamp(self.capacitance, a, b, farads)

    def diode(self, a, b, i_sat, vt):
        self.diodes.append((a, b, i_sat, vt))

    def sine(self, node, amplitude, frequency, series):
        self.source = (node, amplitude, frequency, 1.0 / series)
        self.conductance[node, node] += 1.0 / series


def rectifier(corner):
    """Half-wave rectifier with a two-stage RC filter and a load."""
    net = Netlist(4)
    vt = VT * corner.temperature / 300.0
    i_sat = 1e-9 * 2 ** ((corner.temperature - 300.0) / 12.0)
    net.sine(0, corner.supply, 1000.0, 50.0)
    net.diode(0, 1, i_sat, 1.8 * vt)
    net.capacitor(1, -1, corner.capacitance)
    net.resistor(1, 2, corner.resistance / 10)
    net.capacitor(2, -1, corner.capacitance / 2)
    net.resistor(2, 3, corner.resistance / 20)
    net.capacitor(3, -1, corner.capacitance / 4)
    net.resistor(3, -1, corner.resistance)
    return net


def transient(sim):
    """Backward Euler with a damped Newton iteration at every time point."""
    net, dt = sim.netlist, sim.dt
    steps = int(round(sim.t_stop / dt))
    node, amplitude, frequency, g_source = net.source
    c_dt = net.capacitance / dt
    base = net.conductance + c_dt + 1e-12 * np.eye(net.n)
    v = np.zeros(net.n)
    times = np.arange(1, steps + 1) * dt
    voltages, current, iterations = np.empty((steps, net.n)), np.empty(steps), 0
    for k, t in enumerate(times):
        drive = amplitude * np.sin(2 * np.pi * frequency * t)
        fixed = c_dt @ v
        fixed[node] += g_source * drive
        guess = v.copy()
        for _ in range(40):
            iterations += 1
            jac, rhs = base.copy(), fixed.copy()
            for a, b, i_sat, vt in net.diodes:
                drop = min(guess[a] - guess[b], 0.9)
                e = np.exp(drop / vt)
                g = i_sat * e / vt
                i_eq = i_sat * (e - 1.0) - g * drop
                net._stamp(jac, a, b, g)
                rhs[a] -= i_eq
                rhs[b] += i_eq
            new = np.linalg.solve(jac, rhs)
            delta = new - guess
            largest = np.abs(delta).max()
            guess = guess + delta * min(1.0, 0.5 / max(largest, 1e-12))
            if largest < 1e-7:
                break
        v = guess
        voltages[k] = v
        current[k] = g_source * (drive - v[node])
    return SimResult(times, voltages, current, iterations)


def run_all(inputs, workers):
    """Run every simulation and return the list of results."""
    results = []
    with ThreadPoolExecutor(max_workers=workers) as pool:
        futures = [pool.submit(transient, sim) for sim in inputs]
        for future in as_completed(futures):  # cause
            results.append(future.result())
            if len(results) % 8 == 0:
                print(f"{datetime.datetime.now():%H:%M:%S}   {len(results)}/{len(inputs)} done",
                      flush=True)
    return results


def measure(result):
    """Scalar measurements of one waveform."""
    out = result.voltages[:, 3]
    tail = out[-len(out) // 3:]
    level = float(tail.mean())
    reached = np.flatnonzero(out > 0.9 * level)
    return {
        "level": level,
        "ripple": float(tail.max() - tail.min()),
        "settling": float(result.time[reached[0]]) if len(reached) else float("nan"),
        "power": float(np.mean(result.source_current * result.voltages[:, 0])),
    }


def response_surface(corners, values):
    """Least-squares linear surface; returns coefficients and R squared."""
    X = np.stack([np.r_[1.0, c.features()] for c in corners])
    y = np.asarray(values)
    coef, *_ = np.linalg.lstsq(X, y, rcond=None)
    residual = y - X @ coef
    return coef, float(1 - residual @ residual / np.sum((y - y.mean()) ** 2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--t-stop", type=float, default=6e-3)
    args = parser.parse_args()

    corners = [Corner(*p) for p in itertools.product(
        (1e3, 2.2e3, 4.7e3), (0.22e-6, 0.47e-6), (270.0, 300.0, 360.0), (3.3, 5.0))]
    inputs = [SimInput(f"corner{k:02d}", rectifier(c), args.t_stop, 4e-6)
              for k, c in enumerate(corners)]
    print(f"{len(inputs)} corners, {args.workers} workers")
    start = time.perf_counter()
    results = run_all(inputs, args.workers)
    print(f"simulated in {time.perf_counter() - start:.2f} s, "
          f"{sum(r.newton_iterations for r in results)} Newton iterations")

    rows = [{"name": sim.name, **asdict(corner), **measure(result)}
            for sim, corner, result in zip(inputs, corners, results)]
    with open("measurements.csv", "w", newline="") as fh:
        out = csv.DictWriter(fh, fieldnames=list(rows[0]))
        out.writeheader()
        out.writerows(rows)

    surfaces = {}
    for quantity in ("level", "ripple", "settling", "power"):
        coef, r2 = response_surface(corners, [row[quantity] for row in rows])
        surfaces[quantity] = {"coefficients": coef.tolist(), "r2": r2}
        print(f"{quantity:9s} r2 {r2:.6f}  d/dlogR {coef[1]: .6g}  d/dlogC {coef[2]: .6g}")
    worst = max(rows, key=lambda row: row["ripple"])
    print(f"worst ripple {worst['ripple']:.6f} V at {worst['name']}")
    np.save("waveforms.npy", np.stack([r.voltages[:, 3] for r in results]))
    with open("surface.json", "w") as fh:
        json.dump({"surfaces": surfaces, "worst": worst}, fh, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
