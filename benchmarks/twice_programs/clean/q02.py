"""Lennard-Jones argon box, with the log, xvg and checkpoint files of gmx mdrun.

Output format: GROMACS md.log, mdrun -v progress, .xvg header, .cpt checkpoint.
Seen at: https://github.com/michellab/BioSimSpace/issues/89
Field: molecular dynamics.
"""
import getpass
import os
import pickle
import platform
import random
import socket
import sys
import time
from datetime import datetime, timedelta

import numpy as np

N_SIDE, DENSITY, EPS, SIG, MASS = 4, 0.80, 0.996, 0.3405, 39.948
DT, STEPS, NSTLOG, RCUT = 0.002, 400, 100, 0.85
KB = 0.00831446
QUOTES = ["It's So Fast It's Slow", "Let's Unzip And Let's Unfold", "Rock On",
          "Wait a Minute, aren't You.... (gunshots) Yeah", "There's No Room For Error",
          "Don't Grumble, Give a Whistle", "I Solve Problems"]


def lattice():
    cells = np.array([[i, j, k] for i in range(N_SIDE) for j in range(N_SIDE) for k in range(N_SIDE)], float)
    base = np.array([[0, 0, 0], [.5, .5, 0], [.5, 0, .5], [0, .5, .5]])
    frac = (cells[:, None, :] + base[None]).reshape(-1, 3) / N_SIDE
    box = (len(frac) * SIG ** 3 / DENSITY) ** (1 / 3)
    return frac * box, box


def forces(x, box):
    d = x[:, None, :] - x[None, :, :]
    d -= box * np.round(d / box)
    r2 = np.einsum("ijk,ijk->ij", d, d)
    np.fill_diagonal(r2, np.inf)
    inv = np.where(r2 < RCUT * RCUT, SIG * SIG / r2, 0.0)
    s6 = inv ** 3
    fr = 24 * EPS * (2 * s6 * s6 - s6) / np.where(np.isinf(r2), 1.0, r2)
    f = np.einsum("ij,ijk->ik", fr, d)
    virial = 0.5 * np.sum(fr * np.where(np.isinf(r2), 0.0, r2))
    return f, 2 * EPS * np.sum(s6 * s6 - s6), virial


def block(log, step, e):
    log.write("           Step           Time\n")
    log.write(f"{step:15d}{step * DT:15.5f}\n\n   Energies (kJ/mol)\n")
    names = list(e)
    for i in range(0, len(names), 4):
        part = names[i:i + 4]
        log.write("".join(f"{n:>15}" for n in part) + "\n")
        log.write("".join(f"{e[n]:15.5e}" for n in part) + "\n")
    log.write("\n")


def main():
    start = time.time()
    cpu0 = time.process_time()
    log = open("md.log", "w")
    now = datetime.now()
    log.write(f"Log file opened on {now:%a %b %d %H:%M:%S %Y}\n")
    log.write(f"Host: {socket.gethostname()}  pid: {os.getpid()}  rank ID: 0  number of ranks:  1\n")
    log.write("                      :-) GROMACS - gmx mdrun, 2023.3 (-:\n\n")
    log.write(f"Executable:   {sys.executable}\nWorking dir:  {os.getcwd()}\nProcess ID:   {os.getpid()}\n")
    log.write(f"Command line:\n  gmx mdrun -v -deffnm md\n\nGROMACS version:    2023.3\nPrecision:          double\n")
    log.write(f"OS: {platform.platform()}   User: {getpass.getuser() if os.environ.get('USER') else os.getuid()}\n")
    log.write(f"Running on 1 node with total {os.cpu_count()} cores\n\nInput Parameters:\n")
    for key, val in (("integrator", "md-vv"), ("dt", DT), ("nsteps", STEPS), ("ld-seed", 173529), ("rcoulomb", RCUT)):
        log.write(f"   {key:<30} = {val}\n")
    rng = np.random.default_rng(173529)
    x, box = lattice()
    n = len(x)
    v = rng.normal(0, np.sqrt(KB * 120.0 / MASS), (n, 3))
    v -= v.mean(0)
    log.write(f"\nStarted mdrun on rank 0 {datetime.now():%a %b %d %H:%M:%S %Y}\n\n")
    t_force = t_update = 0.0
    f, pot, vir = forces(x, box)
    xvg, series = [], []
    loop0 = time.time()
    for step in range(STEPS + 1):
        kin = 0.5 * MASS * np.sum(v * v)
        temp = 2 * kin / (3 * (n - 1) * KB)
        press = (2 * kin + vir) / (3 * box ** 3) * 16.6054
        if step % 20 == 0:
            xvg.append((step * DT, pot, kin, pot + kin, temp, press))
        if step % NSTLOG == 0:
            block(log, step, {"LJ (SR)": pot, "Potential": pot, "Kinetic En.": kin, "Total Energy": pot + kin,
                              "Conserved En.": pot + kin, "Temperature": temp, "Pressure (bar)": press})
            if 0 < step < STEPS:
                left = (time.time() - loop0) / step * (STEPS - step)
                eta = datetime.now() + timedelta(seconds=left)
                sys.stderr.write(f"\rstep {step}, will finish {eta:%a %b %d %H:%M:%S %Y}")
                sys.stderr.write(f" imb F  0%  remaining wall clock time: {left:5.1f} s")
        series.append((pot, kin, temp))
        if step == STEPS:
            break
        t = time.perf_counter()
        v += 0.5 * DT * f / MASS
        x = (x + DT * v) % box
        t_update += time.perf_counter() - t
        t = time.perf_counter()
        f, pot, vir = forces(x, box)
        t_force += time.perf_counter() - t
        v += 0.5 * DT * f / MASS
    wall = time.time() - loop0
    core = time.process_time() - cpu0
    sys.stderr.write(f"\nstep {STEPS}, remaining wall clock time:     0 s\n")
    with open("ener.xvg", "w") as fh:
        fh.write(f"# This file was created {datetime.now():%a %b %d %H:%M:%S %Y}\n# Created by:\n# gmx energy is part of G R O M A C S\n")
        fh.write(f"# Working dir:  {os.getcwd()}\n@    title \"GROMACS Energies\"\n@    xaxis  label \"Time (ps)\"\n@TYPE xy\n")
        for row in xvg:
            fh.write("".join(f"{c:14.6f}" for c in row) + "\n")
    with open("md.cpt", "wb") as fh:
        pickle.dump({"btime": time.ctime(), "buser": os.getuid(), "bhost": socket.gethostname(), "step": STEPS,
                     "x": x, "v": v, "box": box, "checkpoint_id": f"{os.getpid()}-{start:.6f}"}, fh)
    pots, kins, temps = (np.array(c) for c in zip(*series))
    log.write("\t<====  A V E R A G E S  ====>\n")
    block(log, STEPS, {"Potential": pots.mean(), "Kinetic En.": kins.mean(), "Total Energy": (pots + kins).mean(),
                       "Temperature": temps.mean()})
    log.write("     R E A L   C Y C L E   A N D   T I M E   A C C O U N T I N G\n\n")
    log.write(" Computing:          Num   Num      Call    Wall time         Giga-Cycles\n")
    log.write("                     Ranks Threads  Count      (s)         total sum    %\n")
    ghz = 2.4
    for name, cnt, t in (("Force", STEPS + 1, t_force), ("Update", STEPS, t_update), ("Rest", 0, wall - t_force - t_update)):
        log.write(f" {name:<19}    1    1 {cnt:10d} {t:11.3f} {t * ghz:14.3f} {100 * t / wall:6.1f}\n")
    log.write(f" Total                            {wall:15.3f} {wall * ghz:14.3f}  100.0\n\n")
    log.write("               Core t (s)   Wall t (s)        (%)\n")
    log.write(f"       Time: {core:12.3f} {wall:12.3f} {100 * core / wall:10.1f}\n                 (ns/day)    (hour/ns)\n")
    ns = STEPS * DT / 1000
    log.write(f"Performance: {ns / wall * 86400:12.3f} {wall / 3600 / ns:12.3f}\n")
    log.write(f"Finished mdrun on rank 0 {datetime.now():%a %b %d %H:%M:%S %Y}\n")
    log.close()
    print(open("md.log").read()[-620:])
    print("Energy                      Average       RMSD  Tot-Drift")
    for name, s in (("Potential", pots), ("Kinetic En.", kins), ("Total Energy", pots + kins), ("Temperature", temps)):
        print(f"{name:<22} {s.mean():13.5f} {s.std():10.5f} {s[-1] - s[0]:10.5f}")
    print(f'\nGROMACS reminds you: "{random.SystemRandom().choice(QUOTES)}"')


if __name__ == "__main__":
    main()
