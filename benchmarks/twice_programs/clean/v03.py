"""Lennard-Jones melt, printed like LAMMPS' log.lammps.

Output follows LAMMPS (pasted in https://github.com/ROCm/legacy-rocm-build/issues/851 and
https://github.com/plumed/plumed2/issues/901): thermo table, "Loop time of ...", Performance line,
MPI task timing breakdown, "Total wall time".
"""
import os
import resource
import time

import numpy as np

T_START = time.time()
NCELL, DENSITY, TEMP0, DT, CUT, SKIN = 5, 0.8442, 1.44, 0.005, 2.5, 0.3
log = open("log.lammps", "w")


def p(s=""):
    print(s)
    log.write(s + "\n")


class Melt:
    def __init__(self, seed):
        a = (4.0 / DENSITY) ** (1 / 3)
        base = np.array([[0, 0, 0], [0, .5, .5], [.5, 0, .5], [.5, .5, 0]])
        cells = np.array([[i, j, k] for i in range(NCELL) for j in range(NCELL) for k in range(NCELL)])
        self.x = ((cells[:, None, :] + base[None]) * a).reshape(-1, 3)
        self.L = NCELL * a
        self.n = len(self.x)
        t0 = time.time()
        rng = np.random.default_rng(seed)
        self.v = rng.normal(size=(self.n, 3))
        self.v -= self.v.mean(0)
        self.v *= np.sqrt(TEMP0 / self.temp())
        p(f"Lattice spacing in x,y,z = {a:.7g} {a:.7g} {a:.7g}")
        p(f"Created orthogonal box = (0 0 0) to ({self.L:.7g} {self.L:.7g} {self.L:.7g})")
        p("  1 by 1 by 1 MPI processor grid")
        p(f"Created {self.n} atoms")
        p("  using lattice units in orthogonal box = (0 0 0) to "
          f"({self.L:.7g} {self.L:.7g} {self.L:.7g})")
        p(f"  create_atoms CPU = {time.time() - t0:.3f} seconds")
        self.times = dict.fromkeys(["Pair", "Neigh", "Comm", "Output", "Modify"], 0.0)
        self.builds = 0

    def temp(self):
        return float((self.v ** 2).sum() / (3 * self.n - 3))

    def clock(self, key, t):
        now = time.perf_counter()
        self.times[key] += now - t
        return now

    def neigh(self):
        t = time.perf_counter()
        I, J = [], []
        rc2 = (CUT + SKIN) ** 2
        for i in range(self.n - 1):
            d = self.x[i + 1:] - self.x[i]
            d -= self.L * np.round(d / self.L)
            j = np.nonzero((d * d).sum(1) < rc2)[0] + i + 1
            I.append(np.full(len(j), i))
            J.append(j)
        self.I, self.J = np.concatenate(I), np.concatenate(J)
        self.builds += 1
        self.clock("Neigh", t)

    def force(self):
        t = time.perf_counter()
        d = self.x[self.I] - self.x[self.J]
        d -= self.L * np.round(d / self.L)
        r2 = (d * d).sum(1)
        m = r2 < CUT * CUT
        d, r2, I, J = d[m], r2[m], self.I[m], self.J[m]
        i6 = 1.0 / r2 ** 3
        fpair = 48 * i6 * (i6 - 0.5) / r2
        self.f = np.zeros_like(self.x)
        np.add.at(self.f, I, d * fpair[:, None])
        np.subtract.at(self.f, J, d * fpair[:, None])
        self.pe = float((4 * i6 * (i6 - 1)).sum()) / self.n
        self.vir = float((fpair * r2).sum())
        self.clock("Pair", t)

    def thermo(self, step):
        t = time.perf_counter()
        T = self.temp()
        ke = 1.5 * T * (self.n - 1) / self.n
        P = (self.n * T + self.vir / 3) / self.L ** 3
        p(f"{step:8d} {T:12.8g} {self.pe:12.8g} {0:12d} {self.pe + ke:12.8g} {P:12.8g}")
        self.clock("Output", t)

    def dump(self, step, fh):
        t = time.perf_counter()
        fh.write(f"ITEM: TIMESTEP\n{step}\nITEM: NUMBER OF ATOMS\n{self.n}\nITEM: ATOMS id x y z\n")
        for i, r in enumerate(self.x % self.L, 1):
            fh.write("%d %.6g %.6g %.6g\n" % (i, *r))
        self.clock("Output", t)

    def run(self, nsteps, every):
        mem = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        p(f"Per MPI rank memory allocation (min/avg/max) = {mem:.4g} | {mem:.4g} | {mem:.4g} Mbytes")
        p("   Step          Temp          E_pair         E_mol          TotEng         Press     ")
        self.neigh()
        self.force()
        self.times = dict.fromkeys(self.times, 0.0)
        self.builds = 0
        dump = open("dump.melt", "w")
        self.thermo(0)
        cpu0, t0 = time.process_time(), time.perf_counter()
        for s in range(1, nsteps + 1):
            t = time.perf_counter()
            self.v += 0.5 * DT * self.f
            self.x += DT * self.v
            t = self.clock("Modify", t)
            if s % 20 == 0:
                self.neigh()
            self.force()
            t = time.perf_counter()
            self.v += 0.5 * DT * self.f
            self.clock("Modify", t)
            if s % every == 0:
                self.thermo(s)
            if s == nsteps:
                self.dump(s, dump)
        wall, cpu = time.perf_counter() - t0, time.process_time() - cpu0
        dump.close()
        p(f"Loop time of {wall:.6g} on 1 procs for {nsteps} steps with {self.n} atoms\n")
        p(f"Performance: {nsteps * DT / wall * 86400:.3f} tau/day, {nsteps / wall:.3f} timesteps/s, "
          f"{nsteps * self.n / wall / 1000:.3f} katom-step/s")
        p(f"{100 * cpu / wall:.1f}% CPU use with 1 MPI tasks x 1 OpenMP threads\n")
        p("MPI task timing breakdown:")
        p("Section |  min time  |  avg time  |  max time  |%varavg| %total")
        p("---------------------------------------------------------------")
        for k, v in self.times.items():
            p(f"{k:<8}| {v:<10.5g} | {v:<10.5g} | {v:<10.5g} |   0.0 | {100 * v / wall:5.2f}")
        other = wall - sum(self.times.values())
        p(f"{'Other':<8}|            | {other:<10.4g} |            |       | {100 * other / wall:5.2f}\n")
        for name, k in (("Nlocal", self.n), ("Neighs", len(self.I))):
            p(f"{name}: {k:14d} ave {k:11d} max {k:11d} min")
            p("Histogram: 1 0 0 0 0 0 0 0 0 0")
        p(f"\nTotal # of neighbors = {len(self.I)}")
        p(f"Ave neighs/atom = {len(self.I) / self.n:.8g}")
        p(f"Neighbor list builds = {self.builds}")
        p("Dangerous builds not checked")


def main():
    p("LAMMPS (2 Aug 2023 - Update 3)")
    if "OMP_NUM_THREADS" not in os.environ:
        p("OMP_NUM_THREADS environment is not set. Defaulting to 1 thread. (src/comm.cpp:98)")
    p("  using 1 OpenMP thread(s) per MPI task")
    p("# 3d Lennard-Jones melt\n\nunits           lj\natom_style      atomic\n")
    m = Melt(87287)
    p("\nvelocity        all create 1.44 87287\npair_style      lj/cut 2.5\nneighbor        0.3 bin")
    p("neigh_modify    every 20 delay 0 check no\nfix             1 all nve\nthermo          50\nrun             300")
    m.run(300, 50)
    w = int(time.time() - T_START)
    p(f"Total wall time: {w // 3600}:{w // 60 % 60:02d}:{w % 60:02d}")


if __name__ == "__main__":
    main()
