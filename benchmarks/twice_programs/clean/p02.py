"""Lennard-Jones melt in reduced units, with screen and log output in the manner of LAMMPS.

Output format: https://docs.lammps.org/Run_output.html
(Loop time, Performance, % CPU use, MPI task timing breakdown, neighbor statistics)
"""
import resource
import time

import numpy as np
from numba import njit

CELLS, RHO, TEMP, DT, RCUT, SKIN = 5, 0.8442, 1.44, 0.005, 2.5, 0.3
STEPS, THERMO, DUMP = 1500, 100, 500


@njit
def build_neigh(x, box, rc2, maxn):
    n = x.shape[0]
    num = np.zeros(n, np.int64)
    lst = np.zeros((n, maxn), np.int64)
    for i in range(n - 1):
        for j in range(i + 1, n):
            r2 = 0.0
            for k in range(3):
                d = x[i, k] - x[j, k]
                d -= box * np.round(d / box)
                r2 += d * d
            if r2 < rc2:
                lst[i, num[i]] = j
                num[i] += 1
    return num, lst


@njit
def forces(x, box, num, lst, rc2):
    n = x.shape[0]
    f = np.zeros((n, 3))
    pe, vir = 0.0, 0.0
    d = np.zeros(3)
    for i in range(n):
        for m in range(num[i]):
            j = lst[i, m]
            r2 = 0.0
            for k in range(3):
                d[k] = x[i, k] - x[j, k]
                d[k] -= box * np.round(d[k] / box)
                r2 += d[k] * d[k]
            if r2 < rc2:
                s2 = 1.0 / r2
                s6 = s2 * s2 * s2
                fp = 48.0 * s6 * (s6 - 0.5) * s2
                for k in range(3):
                    f[i, k] += fp * d[k]
                    f[j, k] -= fp * d[k]
                pe += 4.0 * s6 * (s6 - 1.0)
                vir += fp * r2
    return f, pe, vir


class Log:
    def __init__(self, path):
        self.f = open(path, "w")

    def __call__(self, text=""):
        print(text, flush=True)
        self.f.write(text + "\n")


def fcc(cells, a):
    base = np.array([[0, 0, 0], [.5, .5, 0], [.5, 0, .5], [0, .5, .5]])
    grid = np.array([[i, j, k] for i in range(cells) for j in range(cells) for k in range(cells)])
    return ((grid[:, None, :] + base[None]) * a).reshape(-1, 3)


def main():
    t_start = time.time()
    log = Log("log.lammps")
    log("LAMMPS (2 Aug 2023)")
    log("  using 1 OpenMP thread(s) per MPI task")
    log("# 3d Lennard-Jones melt\n")
    a = (4.0 / RHO) ** (1 / 3)
    box = a * CELLS
    t0 = time.perf_counter()
    x = fcc(CELLS, a)
    n = len(x)
    log(f"Lattice spacing in x,y,z = {a:.7g} {a:.7g} {a:.7g}")
    log(f"Created orthogonal box = (0 0 0) to ({box:.8g} {box:.8g} {box:.8g})")
    log(f"Created {n} atoms\n  create_atoms CPU = {time.perf_counter() - t0:.3f} seconds")
    rng = np.random.default_rng(87287)
    v = rng.normal(size=(n, 3))
    v -= v.mean(0)
    v *= np.sqrt(TEMP * 3 * (n - 1) / (v ** 2).sum())
    rc2, rn2 = RCUT ** 2, (RCUT + SKIN) ** 2

    t0 = time.perf_counter()
    num, lst = build_neigh(x, box, rn2, 200)
    f, pe, vir = forces(x, box, num, lst, rc2)
    log(f"Setting up Verlet run ...\n  Unit style    : lj\n  Current step  : 0\n  Time step     : {DT}")
    log(f"  Setup time    : {time.perf_counter() - t0:.4f} s")
    mem = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    log(f"Per MPI rank memory allocation (min/avg/max) = {mem:.4g} | {mem:.4g} | {mem:.4g} Mbytes")
    log("   Step          Temp          E_pair         TotEng         Press          CPU")

    clock = dict.fromkeys(("Pair", "Neigh", "Comm", "Output", "Modify"), 0.0)
    thermo, builds, dangerous = [], 0, 0
    dump = open("dump.lammpstrj", "w")
    x0 = x.copy()
    loop0, cpu0 = time.perf_counter(), time.process_time()

    def output(step):
        ke = 0.5 * (v ** 2).sum()
        t = 2 * ke / (3 * (n - 1))
        press = (n * t + vir / 3) / box ** 3
        row = (step, t, pe / n, (pe + ke) / n, press)
        thermo.append(row)
        log(f"{step:7d}   {t:<14.8g} {pe / n:<14.8g} {(pe + ke) / n:<14.8g} {press:<14.8g} "
            f"{time.perf_counter() - loop0:<10.6g}")

    def write_dump(step):
        dump.write(f"ITEM: TIMESTEP\n{step}\nITEM: NUMBER OF ATOMS\n{n}\nITEM: BOX BOUNDS pp pp pp\n")
        dump.write(f"0.0 {box:.16e}\n" * 3 + "ITEM: ATOMS id type x y z\n")
        for i, p in enumerate(np.mod(x, box)):
            dump.write(f"{i + 1} 1 {p[0]:.6g} {p[1]:.6g} {p[2]:.6g}\n")

    output(0)
    write_dump(0)
    for step in range(1, STEPS + 1):
        t = time.perf_counter()
        v += 0.5 * DT * f
        x += DT * v
        clock["Modify"] += time.perf_counter() - t
        t = time.perf_counter()
        moved = np.sort(((x - x0) ** 2).sum(1))[-2:]
        rebuild = np.sqrt(moved[1]) + np.sqrt(moved[0]) > SKIN
        clock["Comm"] += time.perf_counter() - t
        if rebuild:
            t = time.perf_counter()
            num, lst = build_neigh(x, box, rn2, 200)
            x0 = x.copy()
            builds += 1
            clock["Neigh"] += time.perf_counter() - t
        t = time.perf_counter()
        f, pe, vir = forces(x, box, num, lst, rc2)
        clock["Pair"] += time.perf_counter() - t
        t = time.perf_counter()
        v += 0.5 * DT * f
        clock["Modify"] += time.perf_counter() - t
        if step % THERMO == 0 or step % DUMP == 0:
            t = time.perf_counter()
            if step % THERMO == 0:
                output(step)
            if step % DUMP == 0:
                write_dump(step)
            clock["Output"] += time.perf_counter() - t
    loop = time.perf_counter() - loop0
    cpu = time.process_time() - cpu0
    dump.close()

    log(f"Loop time of {loop:.6g} on 1 procs for {STEPS} steps with {n} atoms\n")
    log(f"Performance: {DT * STEPS * 86400 / loop:.3f} tau/day, {STEPS / loop:.3f} timesteps/s, "
        f"{STEPS * n / loop / 1000:.3f} katom-step/s")
    log(f"{100 * cpu / loop:.1f}% CPU use with 1 MPI tasks x 1 OpenMP threads\n")
    log("MPI task timing breakdown:")
    log("Section |  min time  |  avg time  |  max time  |%varavg| %total")
    log("-" * 63)
    for name, s in clock.items():
        log(f"{name:<8}| {s:<10.5g} | {s:<10.5g} | {s:<10.5g} |   0.0 | {100 * s / loop:5.2f}")
    other = loop - sum(clock.values())
    log(f"{'Other':<8}|            | {other:<10.4g} |            |       | {100 * other / loop:5.2f}\n")
    log(f"Nlocal:    {n:14.8g} ave {n:11.8g} max {n:11.8g} min\nHistogram: 1 0 0 0 0 0 0 0 0 0")
    log(f"\nTotal # of neighbors = {int(num.sum())}\nAve neighs/atom = {num.sum() / n:.8g}")
    log(f"Neighbor list builds = {builds}\nDangerous builds = {dangerous}")
    s = int(time.time() - t_start)
    log(f"Total wall time: {s // 3600}:{s // 60 % 60:02d}:{s % 60:02d}")
    np.savez("thermo.npz", thermo=np.array(thermo), x=x, v=v, loop_time=loop, finished=time.time())


if __name__ == "__main__":
    main()
