"""Lennard-Jones argon with a Langevin thermostat.

Modelled on: openmm/openmm (wrappers/python/openmm/app/statedatareporter.py, checkpointreporter.py,
examples/argon-chemical-potential.py) and mdtraj's HDF5 trajectories: data.csv with
#"Progress (%)","Step","Time (ps)",energies,"Temperature (K)","Speed (ns/day)","Elapsed Time (s)",
"Time Remaining". Time (ps) is simulated time; speed, elapsed and remaining are clock readings.
"""
import datetime
import getpass
import platform
import time

import h5py
import numba
import numpy as np

KB = 0.0083144626  # kJ/mol/K
SIGMA, EPS, MASS = 0.34, 0.996, 39.948
N_SIDE, DENSITY, T0, GAMMA, DT = 5, 0.75, 120.0, 1.0, 0.004
STEPS, REPORT = 3000, 300


@numba.njit(cache=False)
def forces(x, box, rc):
    n = x.shape[0]
    f = np.zeros_like(x)
    e = 0.0
    w = 0.0
    s6c = (SIGMA / rc) ** 6
    shift = 4 * EPS * (s6c * s6c - s6c)
    for i in range(n):
        for j in range(i + 1, n):
            dx = x[i, 0] - x[j, 0]
            dy = x[i, 1] - x[j, 1]
            dz = x[i, 2] - x[j, 2]
            dx -= box * np.round(dx / box)
            dy -= box * np.round(dy / box)
            dz -= box * np.round(dz / box)
            r2 = dx * dx + dy * dy + dz * dz
            if r2 < rc * rc:
                s6 = (SIGMA * SIGMA / r2) ** 3
                e += 4 * EPS * (s6 * s6 - s6) - shift
                g = 24 * EPS * (2 * s6 * s6 - s6) / r2
                w += g * r2
                f[i, 0] += g * dx
                f[i, 1] += g * dy
                f[i, 2] += g * dz
                f[j, 0] -= g * dx
                f[j, 1] -= g * dy
                f[j, 2] -= g * dz
    return f, e, w


class StateDataReporter:
    COLS = ["Progress (%)", "Step", "Time (ps)", "Potential Energy (kJ/mole)", "Kinetic Energy (kJ/mole)",
            "Temperature (K)", "Pressure (bar)", "Speed (ns/day)", "Elapsed Time (s)", "Time Remaining"]

    def __init__(self, path, total):
        self.out, self.total = open(path, "w"), total
        head = "#" + ",".join(f'"{c}"' for c in self.COLS)
        self.out.write(head + "\n")
        print(head)
        self.t0 = None

    def report(self, step, pe, ke, temp, pres):
        now = time.time()
        if self.t0 is None:
            self.t0, self.step0, speed, left = now, step, "--", "--"
        else:
            done = step - self.step0
            el = now - self.t0
            speed = "%.3g" % (done * DT * 1e-3 * 86400 / el)
            secs = int((self.total - step) * el / done)
            left = f"{secs // 60}:{secs % 60:02d}"
        row = [f"{100 * step / self.total:.1f}%", step, round(step * DT, 6), pe, ke, temp, pres, speed, now - self.t0, left]
        line = ",".join(map(str, row))
        self.out.write(line + "\n")
        self.out.flush()
        print(line)


class HDF5Reporter:
    def __init__(self, path, n, box):
        self.f = h5py.File(path, "w")
        self.f.attrs.update({"conventions": "Pande", "program": "MDTraj", "programVersion": "1.9.9",
                             "title": "argon", "application": "MDTraj",
                             "creation_time": datetime.datetime.now().isoformat(),
                             "creator": f"{getpass.getuser()}@{platform.node()}"})
        self.c = self.f.create_dataset("coordinates", (0, n, 3), maxshape=(None, n, 3), dtype="f4", compression="gzip")
        self.c.attrs["units"] = "nanometers"
        self.t = self.f.create_dataset("time", (0,), maxshape=(None,), dtype="f4")
        self.t.attrs["units"] = "picoseconds"
        self.f["cell_lengths"] = np.full(3, box, dtype="f4")
        self.w = []

    def report(self, step, x):
        for d, v in ((self.c, x), (self.t, step * DT)):
            d.resize(len(d) + 1, axis=0)
            d[-1] = v
        self.w.append(time.time())

    def close(self):
        self.f.create_dataset("frame_written_at", data=self.w)
        self.f.close()


def rdf(x, box, bins=40):
    d = x[:, None] - x[None]
    d -= box * np.round(d / box)
    r = np.sqrt((d ** 2).sum(-1))[np.triu_indices(len(x), 1)]
    h, edges = np.histogram(r, bins, (0, box / 2))
    return h, edges


def main():
    rng = np.random.default_rng(2024)
    n = N_SIDE ** 3
    box = (n / DENSITY) ** (1 / 3) * SIGMA
    grid = (np.arange(N_SIDE) + 0.5) * box / N_SIDE
    x = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), -1).reshape(-1, 3)
    v = rng.standard_normal((n, 3)) * np.sqrt(KB * T0 / MASS)
    rc = min(2.5 * SIGMA, box / 2)
    t_compile = time.perf_counter()
    f, pe, w = forces(x, box, rc)
    print(f"Platform: CPU ({platform.processor() or 'unknown'}), numba compile {time.perf_counter() - t_compile:.2f} s")
    state, traj = StateDataReporter("data.csv", STEPS), HDF5Reporter("trajectory.h5", n, box)
    a, b = np.exp(-GAMMA * DT), np.sqrt((1 - np.exp(-2 * GAMMA * DT)) * KB * T0 / MASS)
    hist, temps = np.zeros(40, dtype=np.int64), []
    for step in range(1, STEPS + 1):
        v += 0.5 * DT * f / MASS
        x = x + 0.5 * DT * v
        v = a * v + b * rng.standard_normal((n, 3))
        x = x + 0.5 * DT * v
        f, pe, w = forces(x, box, rc)
        v += 0.5 * DT * f / MASS
        ke = 0.5 * MASS * (v ** 2).sum()
        temps.append(2 * ke / (3 * n * KB))
        if step % 50 == 0 and step > STEPS // 3:
            hist += rdf(x, box)[0]
        if step % REPORT == 0:
            pres = (2 * ke + w) / (3 * box ** 3) * 16.6054
            state.report(step, float(pe), float(ke), float(temps[-1]), float(pres))
            traj.report(step, x % box)
    traj.close()
    np.savez("checkpoint.npz", positions=x, velocities=v, step=STEPS, rdf_counts=hist,
             saved=np.array(datetime.datetime.now().isoformat()))
    print(f"mean temperature {np.mean(temps[STEPS // 3:]):.10f} K, final potential energy {pe:.10f} kJ/mol")
    print(f"rdf peak in bin {int(np.argmax(hist))}, pairs counted {hist.sum()}")


if __name__ == "__main__":
    main()
