"""Lennard-Jones molecular dynamics with a thermo log and an HDF5 trajectory.

Modelled on: lammps/lammps (log.lammps: thermo table, "Loop time of", "Performance:",
"MPI task timing breakdown", "Total wall time") and the H5MD layout of h5md/h5md.
"""
import getpass
import os
import platform
import resource
import sys
import time
from datetime import datetime

import h5py
import numpy as np

SEED = 87287
CELLS = 4            # fcc cells a side -> 256 atoms
RHO = 0.8442
T0 = 1.44
DT = 0.005
CUT = 2.5
STEPS = 300
THERMO = 50
DUMP = 100


class Log:
    def __init__(self, path):
        self.fh = open(path, "w")

    def __call__(self, text=""):
        print(text)
        self.fh.write(text + "\n")

    def close(self):
        self.fh.close()


class Timers(dict):
    def add(self, key, t):
        self[key] = self.get(key, 0.0) + time.perf_counter() - t


def lattice():
    a = (4.0 / RHO) ** (1 / 3)
    base = np.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])
    grid = np.array([(i, j, k) for i in range(CELLS) for j in range(CELLS) for k in range(CELLS)], float)
    x = (grid[:, None, :] + base[None]).reshape(-1, 3) * a
    return x, CELLS * a


def velocities(n, rng):
    v = rng.normal(size=(n, 3))
    v -= v.mean(0)
    v *= np.sqrt(T0 * 3 * (n - 1) / (v ** 2).sum())
    return v


def forces(x, box, pairs):
    i, j = pairs
    d = x[i] - x[j]
    d -= box * np.round(d / box)
    r2 = (d ** 2).sum(1)
    m = r2 < CUT * CUT
    d, r2, i, j = d[m], r2[m], i[m], j[m]
    s6 = 1.0 / r2 ** 3
    fr = 48 * (s6 * s6 - 0.5 * s6) / r2
    fv = d * fr[:, None]
    f = np.zeros_like(x)
    for k in range(3):
        f[:, k] = np.bincount(i, fv[:, k], len(x)) - np.bincount(j, fv[:, k], len(x))
    return f, float((4 * (s6 * s6 - s6)).sum()), float((fr * r2).sum())


def neighbors(x, box, skin=0.3):
    n = len(x)
    i, j = np.triu_indices(n, 1)
    d = x[i] - x[j]
    d -= box * np.round(d / box)
    m = (d ** 2).sum(1) < (CUT + skin) ** 2
    return i[m], j[m]


def thermo(v, pe, vir, n, vol):
    ke = 0.5 * (v ** 2).sum()
    temp = 2 * ke / (3 * (n - 1))
    press = (n * temp + vir / 3) / vol
    return temp, pe / n, ke / n, (pe + ke) / n, press


def rdf(x, box, bins=60):
    i, j = np.triu_indices(len(x), 1)
    d = x[i] - x[j]
    d -= box * np.round(d / box)
    r = np.sqrt((d ** 2).sum(1))
    h, e = np.histogram(r, bins, (0, box / 2))
    shell = 4 / 3 * np.pi * (e[1:] ** 3 - e[:-1] ** 3)
    return 0.5 * (e[1:] + e[:-1]), h / (shell * len(x) / box ** 3 * len(x) / 2)


def main():
    wall0 = time.perf_counter()
    log = Log("log.lammps")
    log(f"PyLJ (29 Aug 2024) on {platform.node()}, process {os.getpid()}")
    log(f"  run started {datetime.now():%a %b %d %H:%M:%S %Y}")
    log("OMP_NUM_THREADS environment is " + os.environ.get("OMP_NUM_THREADS", "not set"))
    rng = np.random.default_rng(SEED)
    x, box = lattice()
    n = len(x)
    log(f"Lattice spacing in x,y,z = {box / CELLS:.8g} {box / CELLS:.8g} {box / CELLS:.8g}")
    log(f"Created {n} atoms")
    v = velocities(n, rng)
    t = time.perf_counter()
    pairs = neighbors(x, box)
    f, pe, vir = forces(x, box, pairs)
    log(f"  create_atoms CPU = {time.perf_counter() - t:.3f} seconds")
    log(f"Per MPI rank memory allocation (min/avg/max) = {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.4g} Mbytes")

    h5 = h5py.File("traj.h5", "w")
    meta = h5.create_group("h5md")
    meta.attrs["version"] = np.array([1, 1])
    meta.create_group("author").attrs["name"] = getpass.getuser()
    meta.create_group("creator").attrs["name"] = "PyLJ"
    meta.attrs["creation_time"] = int(time.time())
    pos = h5.create_dataset("particles/all/position/value", (0, n, 3), maxshape=(None, n, 3), dtype="f8")
    stp = h5.create_dataset("particles/all/position/step", (0,), maxshape=(None,), dtype="i8")
    rows, timers, neigh = [], Timers(), 0
    cols = ("Step", "Temp", "E_pair", "KinEng", "TotEng", "Press", "CPU", "S/CPU", "CPULeft")
    log("".join(f"{c:>14s}" for c in cols))
    loop0 = last = time.perf_counter()
    for step in range(STEPS + 1):
        if step:
            t = time.perf_counter()
            v += 0.5 * DT * f
            x = (x + DT * v) % box
            timers.add("Modify", t)
            if step % 10 == 0:
                t = time.perf_counter()
                pairs = neighbors(x, box)
                neigh += 1
                timers.add("Neigh", t)
            t = time.perf_counter()
            f, pe, vir = forces(x, box, pairs)
            timers.add("Pair", t)
            t = time.perf_counter()
            v += 0.5 * DT * f
            timers.add("Modify", t)
        t = time.perf_counter()
        if step % THERMO == 0:
            row = thermo(v, pe, vir, n, box ** 3)
            now = time.perf_counter()
            cpu = now - loop0
            left = cpu / step * (STEPS - step) if step else 0.0
            scpu = THERMO / (now - last) if step else 0.0
            last = now
            rows.append((step,) + row)
            log(f"{step:14d}" + "".join(f"{q:14.8g}" for q in row) + f"{cpu:14.6g}{scpu:14.6g}{left:14.6g}")
        if step % DUMP == 0:
            pos.resize(len(pos) + 1, 0)
            stp.resize(len(stp) + 1, 0)
            pos[-1], stp[-1] = x, step
        timers.add("Output", t)
    loop = time.perf_counter() - loop0
    log(f"Loop time of {loop:.6g} on 1 procs for {STEPS} steps with {n} atoms\n")
    log(f"Performance: {STEPS * DT / loop * 86400:.3f} tau/day, {STEPS / loop:.3f} timesteps/s, {n * STEPS / loop / 1e3:.3f} katom-step/s")
    log(f"{100 * time.process_time() / (time.perf_counter() - wall0):.1f}% CPU use with 1 MPI tasks x 1 OpenMP threads\n")
    log("MPI task timing breakdown:\nSection |  min time  |  avg time  |  max time  |%varavg| %total")
    log("-" * 63)
    timers["Other"] = loop - sum(timers.values())
    for k in ("Pair", "Neigh", "Output", "Modify", "Other"):
        s = timers[k]
        log(f"{k:8s}| {s:<11.5g}| {s:<11.5g}| {s:<11.5g}|   0.0 |{100 * s / loop:6.2f}")
    log(f"\nTotal # of neighbors = {len(pairs[0])}\nAve neighs/atom = {len(pairs[0]) / n:.6f}\nNeighbor list builds = {neigh}\nDangerous builds = 0")
    r, g = rdf(x, box)
    h5["observables/thermo"] = np.array(rows)
    h5["observables/rdf"] = np.stack([r, g])
    h5.attrs["wall_time"] = time.perf_counter() - wall0
    h5.close()
    np.savetxt("rdf.dat", np.stack([r, g], 1), fmt="%.8f", header=f"rdf written {datetime.now():%Y-%m-%d %H:%M:%S}")
    s = int(time.perf_counter() - wall0)
    log(f"Total wall time: {s // 3600}:{s // 60 % 60:02d}:{s % 60:02d}")
    log.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
