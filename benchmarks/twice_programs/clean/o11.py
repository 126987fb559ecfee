"""Lennard-Jones molecular dynamics with numba, thermo output, dump and timing breakdown, in the style of a LAMMPS 'melt' run."""
import argparse
import contextlib
import csv
import os
import sys
import time
from datetime import timedelta

import numpy as np
import psutil
from numba import njit


@njit
def forces(pos, box, rc2, f):
    n = pos.shape[0]
    pe = 0.0
    vir = 0.0
    f[:] = 0.0
    for i in range(n - 1):
        for j in range(i + 1, n):
            dx = pos[i, 0] - pos[j, 0]
            dy = pos[i, 1] - pos[j, 1]
            dz = pos[i, 2] - pos[j, 2]
            dx -= box * np.rint(dx / box)
            dy -= box * np.rint(dy / box)
            dz -= box * np.rint(dz / box)
            r2 = dx * dx + dy * dy + dz * dz
            if r2 < rc2:
                ir2 = 1.0 / r2
                ir6 = ir2 * ir2 * ir2
                ff = 48.0 * ir6 * (ir6 - 0.5) * ir2
                pe += 4.0 * ir6 * (ir6 - 1.0)
                vir += ff * r2
                f[i, 0] += ff * dx
                f[i, 1] += ff * dy
                f[i, 2] += ff * dz
                f[j, 0] -= ff * dx
                f[j, 1] -= ff * dy
                f[j, 2] -= ff * dz
    return pe, vir


@njit
def rdf_hist(pos, box, nbins, rmax):
    hist = np.zeros(nbins, np.int64)
    for i in range(pos.shape[0] - 1):
        for j in range(i + 1, pos.shape[0]):
            r2 = 0.0
            for k in range(3):
                d = pos[i, k] - pos[j, k]
                d -= box * np.rint(d / box)
                r2 += d * d
            r = np.sqrt(r2)
            if r < rmax:
                hist[int(r / rmax * nbins)] += 2
    return hist


class Section:
    """Accumulates wall time per section of the timestep."""

    def __init__(self):
        self.t = {k: 0.0 for k in ("Pair", "Output", "Modify")}

    @contextlib.contextmanager
    def __call__(self, name):
        t0 = time.perf_counter()
        yield
        self.t[name] += time.perf_counter() - t0


class Tee:
    def __init__(self, path):
        self.f = open(path, "w")

    def __call__(self, s=""):
        print(s)
        self.f.write(s + "\n")


class Melt:
    def __init__(self, cells, density, temp, seed, rc=2.5, dt=0.005):
        self.n = 4 * cells ** 3
        self.box = (self.n / density) ** (1 / 3)
        a = self.box / cells
        base = np.array([[0, 0, 0], [.5, .5, 0], [.5, 0, .5], [0, .5, .5]])
        grid = np.array([[x, y, z] for x in range(cells) for y in range(cells) for z in range(cells)])
        self.pos = ((grid[:, None, :] + base[None]) * a).reshape(-1, 3)
        rng = np.random.default_rng(seed)
        v = rng.normal(size=(self.n, 3))
        v -= v.mean(0)
        self.vel = v * np.sqrt(temp * 3 * (self.n - 1) / (v ** 2).sum())
        self.f = np.zeros_like(self.pos)
        self.rc2, self.dt = rc * rc, dt
        self.pe, self.vir = forces(self.pos, self.box, self.rc2, self.f)

    def step(self, section):
        with section("Modify"):
            self.vel += 0.5 * self.dt * self.f
            self.pos = (self.pos + self.dt * self.vel) % self.box
        with section("Pair"):
            self.pe, self.vir = forces(self.pos, self.box, self.rc2, self.f)
        with section("Modify"):
            self.vel += 0.5 * self.dt * self.f

    def thermo(self):
        ke = 0.5 * (self.vel ** 2).sum()
        temp = 2 * ke / (3 * (self.n - 1))
        press = (self.n * temp + self.vir / 3) / self.box ** 3
        return temp, self.pe / self.n, ke / self.n, (ke + self.pe) / self.n, press


def write_dump(fh, step, md):
    fh.write(f"ITEM: TIMESTEP\n{step}\nITEM: NUMBER OF ATOMS\n{md.n}\nITEM: BOX BOUNDS pp pp pp\n")
    for _ in range(3):
        fh.write(f"0.0 {md.box:.8f}\n")
    fh.write("ITEM: ATOMS id type xs ys zs\n")
    for i, p in enumerate(md.pos / md.box, 1):
        fh.write("%d 1 %.6f %.6f %.6f\n" % (i, *p))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--cells", type=int, default=6)
    ap.add_argument("--steps", type=int, default=800)
    ap.add_argument("--thermo", type=int, default=50)
    ap.add_argument("--dump", type=int, default=400)
    ap.add_argument("--temp", type=float, default=3.0)
    ap.add_argument("--seed", type=int, default=87287)
    args = ap.parse_args()
    wall0, t_compile = time.time(), time.perf_counter()
    out = Tee("log.lammps")
    out("LAMMPS-lite (2 Aug 2023)")
    out(f"  using {os.environ.get('OMP_NUM_THREADS', '1')} OpenMP thread(s) per MPI task")
    md = Melt(args.cells, 0.8442, args.temp, args.seed)
    out(f"Created orthogonal box = (0 0 0) to ({md.box:.6f} {md.box:.6f} {md.box:.6f})")
    out("  1 by 1 by 1 MPI processor grid")
    out(f"Created {md.n} atoms\n  create_atoms CPU = {time.perf_counter() - t_compile:.3f} seconds")
    out("Neighbor list info ...\n  all pairs, no list\nSetting up Verlet run ...\n  Unit style    : lj\n"
        f"  Current step  : 0\n  Time step     : {md.dt}")
    rss = psutil.Process().memory_info().rss / 2 ** 20
    out(f"Per MPI rank memory allocation (min/avg/max) = {rss:.4g} | {rss:.4g} | {rss:.4g} Mbytes")
    out("   Step          Temp          E_pair         KinEng         TotEng         Press     ")

    section = Section()
    cpu0, loop0 = time.process_time(), time.perf_counter()
    hist = np.zeros(60, np.int64)
    os.makedirs("out", exist_ok=True)
    with open("out/dump.melt", "w") as dump, open("out/thermo.csv", "w", newline="") as tf:
        w = csv.writer(tf)
        w.writerow(["step", "temp", "epair", "ke", "etotal", "press", "cpu", "spcpu"])
        for s in range(args.steps + 1):
            if s:
                md.step(section)
            if s % args.thermo == 0:
                with section("Output"):
                    th = md.thermo()
                    cpu = time.process_time() - cpu0
                    out("%7d   " % s + "".join("%-15.8g" % x for x in th))
                    w.writerow([s, *(repr(float(x)) for x in th), f"{cpu:.4f}", f"{s / cpu if cpu > 0 else 0:.2f}"])
                    if s >= args.steps // 2:
                        hist += rdf_hist(md.pos, md.box, 60, 3.0)
            if s % args.dump == 0:
                with section("Output"):
                    write_dump(dump, s, md)
    loop, cpu = time.perf_counter() - loop0, time.process_time() - cpu0
    out(f"Loop time of {loop:g} on 1 procs for {args.steps} steps with {md.n} atoms\n")
    out(f"Performance: {args.steps * md.dt * 86400 / loop:.3f} tau/day, {args.steps / loop:.3f} timesteps/s, "
        f"{args.steps * md.n / loop / 1e6:.3f} Matom-step/s")
    out(f"{100 * cpu / loop:.1f}% CPU use with 1 MPI tasks x 1 OpenMP threads\n")
    out("MPI task timing breakdown:\nSection |  min time  |  avg time  |  max time  |%varavg| %total")
    out("-" * 63)
    for k, t in section.t.items():
        out(f"{k:<7} | {t:<10.5g} | {t:<10.5g} | {t:<10.5g} |   0.0 |{100 * t / loop:6.2f}")
    other = loop - sum(section.t.values())
    out(f"Other   |            | {other:<10.4g} |            |       |{100 * other / loop:6.2f}\n")

    r = (np.arange(60) + 0.5) * 3.0 / 60
    frames = args.steps // args.thermo - args.steps // 2 // args.thermo + 1
    shell = 4 / 3 * np.pi * ((r + 0.025) ** 3 - (r - 0.025) ** 3)
    g = hist / (frames * md.n * shell * md.n / md.box ** 3)
    peak = int(np.argmax(g))
    out(f"g(r) first peak {g[peak]:.5f} at r = {r[peak]:.3f} from {frames} frames")
    np.savetxt("out/rdf.dat", np.c_[r, g], header=f"generated {time.strftime('%Y-%m-%d %H:%M')} by {os.path.basename(sys.argv[0])}")
    np.savez_compressed("out/restart.npz", x=md.pos, v=md.vel, box=md.box, step=args.steps, walltime=time.time() - wall0)
    out(f"Total wall time: {timedelta(seconds=int(time.time() - wall0))}")
    out.f.close()


if __name__ == "__main__":
    main()
