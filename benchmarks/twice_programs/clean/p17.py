"""One-dimensional Kohn-Sham calculation (soft Coulomb atoms, LDA exchange), with pw.x style output.

Output format: https://github.com/xtalopt/XtalOpt/issues/27 (Program PWSCF starts on), and
https://github.com/yoshiconlab-technical-assistant/analyse-csh/issues/16 (total cpu time spent up to now);
the XML keeps clocks for each routine as in https://github.com/aiidateam/qe-tools/issues/98
"""
import functools
import os
import resource
import time
import xml.etree.ElementTree as ET
from datetime import datetime

import h5py
import numpy as np
from scipy.linalg import eigh

NGRID, LENGTH, BETA, CONV, ITMAX = 640, 44.0, 0.4, 1e-9, 60
GEOMETRIES = [1.2, 1.6, 2.0, 2.2, 2.4, 2.6, 2.8, 3.2]
CLOCKS = {}
OUT = open("chain.scf.out", "w")
CPU0, WALL0 = time.process_time(), time.perf_counter()


def say(text=""):
    print(text, flush=True)
    OUT.write(text + "\n")


def clock(name):
    def deco(fn):
        @functools.wraps(fn)
        def inner(*a, **k):
            c, w = time.process_time(), time.perf_counter()
            try:
                return fn(*a, **k)
            finally:
                r = CLOCKS.setdefault(name, [0.0, 0.0, 0])
                r[0] += time.process_time() - c
                r[1] += time.perf_counter() - w
                r[2] += 1
        return inner
    return deco


X = np.linspace(-LENGTH / 2, LENGTH / 2, NGRID)
H = X[1] - X[0]
SOFT = 1.0 / np.sqrt((X[:, None] - X[None]) ** 2 + 1.0)


@clock("init_run")
def setup(d, charges):
    kin = np.zeros((NGRID, NGRID))
    i = np.arange(NGRID)
    diff = i[:, None] - i[None]
    with np.errstate(divide="ignore"):
        kin = np.where(diff == 0, np.pi ** 2 / 3, 2.0 * (-1.0) ** diff / np.where(diff == 0, 1, diff) ** 2) / (2 * H * H)
    pos = (np.arange(len(charges)) - (len(charges) - 1) / 2) * d
    vext = -sum(z / np.sqrt((X - p) ** 2 + 1.0) for z, p in zip(charges, pos))
    ion = sum(charges[a] * charges[b] / np.sqrt((pos[a] - pos[b]) ** 2 + 1.0)
              for a in range(len(charges)) for b in range(a))
    return kin, vext, ion, pos


@clock("v_of_rho")
def potentials(rho):
    vh = SOFT @ rho * H
    vx = -(np.maximum(rho, 0) * 3 / np.pi) ** (1 / 3)
    eh = 0.5 * (vh * rho).sum() * H
    ex = -0.75 * (3 / np.pi) ** (1 / 3) * (np.maximum(rho, 0) ** (4 / 3)).sum() * H
    return vh, vx, eh, ex


@clock("c_bands")
def bands(ham, nocc):
    return eigh(ham, subset_by_index=[0, nocc + 1])


@clock("sum_band")
def density(vec, nocc):
    return 2 * (vec[:, :nocc] ** 2).sum(1) / H


@clock("mix_rho")
def mix(hist_in, hist_res):
    """Anderson mixing on the last steps."""
    m = len(hist_in)
    if m == 1:
        return hist_in[0] + BETA * hist_res[0]
    df = np.array([hist_res[-1] - r for r in hist_res[:-1]])
    a = df @ df.T + 1e-14 * np.eye(m - 1)
    g = np.linalg.solve(a, df @ hist_res[-1])
    rho = hist_in[-1] - sum(gi * (hist_in[-1] - r) for gi, r in zip(g, hist_in[:-1]))
    res = hist_res[-1] - sum(gi * d for gi, d in zip(g, df))
    return rho + BETA * res


@clock("forces")
def forces(rho, pos, charges):
    out = []
    for a, (z, p) in enumerate(zip(charges, pos)):
        f = (rho * z * (X - p) / ((X - p) ** 2 + 1.0) ** 1.5).sum() * H
        f += sum(z * charges[b] * (p - pos[b]) / ((p - pos[b]) ** 2 + 1.0) ** 1.5 for b in range(len(pos)) if b != a)
        out.append(f)
    return np.array(out)


@clock("electrons")
def scf(d, charges):
    kin, vext, ion, pos = setup(d, charges)
    nel = int(sum(charges))
    nocc = nel // 2
    rho = sum(z * np.exp(-(X - p) ** 2) for z, p in zip(charges, pos))
    start = rho.sum() * H
    say(f"     starting charge {start:12.5f}, renormalised to {nel:12.5f}")
    rho *= nel / start
    say(f"\n     total cpu time spent up to now is {time.process_time() - CPU0:12.1f} secs\n\n     Self-consistent Calculation\n")
    ins, ress = [], []
    for it in range(1, ITMAX + 1):
        say(f"     iteration #{it:3d}     ecut={np.pi ** 2 / H ** 2:10.2f} Ry     beta={BETA:5.2f}\n     Davidson diagonalization with overlap")
        vh, vx, _, _ = potentials(rho)
        eps, vec = bands(kin + np.diag(vext + vh + vx), nocc)
        new = density(vec, nocc)
        _, _, eh, ex = potentials(new)
        eone = 2 * eps[:nocc].sum() - ((vh + vx) * new).sum() * H
        etot = 2 * (eone + eh + ex + ion)
        res = new - rho
        acc = abs((res * (SOFT @ res)).sum()) * H * H * 2
        say(f"\n     total cpu time spent up to now is {time.process_time() - CPU0:12.1f} secs\n")
        say(f"     total energy              = {etot:18.8f} Ry\n     estimated scf accuracy    < {acc:18.8e} Ry\n")
        if acc < CONV:
            break
        ins, ress = (ins + [rho])[-6:], (ress + [res])[-6:]
        rho = mix(ins, ress)
    say("     End of self-consistent calculation\n\n          k = 0.0000 0.0000 0.0000   bands (ev):\n")
    say("   " + "".join(f"{e * 27.211386:10.4f}" for e in eps))
    say(f"\n!    total energy              = {etot:18.8f} Ry\n     convergence has been achieved in {it:3d} iterations\n")
    f = forces(new, pos, charges)
    for a, v in enumerate(f):
        say(f"     atom {a + 1:4d} type  1   force = {2 * v:14.8f}    0.00000000    0.00000000")
    return etot, eps, new, f, it


def human(t):
    return f"{t:8.2f}s" if t < 60 else f"{int(t) // 60}m{t % 60:5.2f}s"


def main():
    now = datetime.now()
    say(f"\n     Program PWSCF v.7.3.1 starts on {now.day:2d}{now:%b%Y} at {now.hour:2d}:{now.minute:2d}:{now.second:2d} \n")
    say("     This program is part of the open-source Quantum ESPRESSO suite style of output")
    with open("/proc/meminfo") as f:
        free = next(int(l.split()[1]) // 1024 for l in f if l.startswith("MemAvailable"))
    say(f"     Serial version\n     {free} MiB available memory on the printing compute node when the environment starts\n")
    charges = [2.0, 1.0, 1.0, 2.0, 2.0]
    results = []
    with h5py.File("charge-density.hdf5", "w") as h5:
        h5.attrs["created"] = datetime.now().isoformat()
        h5.attrs["pid"] = os.getpid()
        for d in GEOMETRIES:
            say(f"     bond length = {d:.4f} bohr, number of electrons = {sum(charges):.2f}")
            w = time.perf_counter()
            e, eps, rho, f, it = scf(d, charges)
            g = h5.create_group(f"d_{d:.2f}")
            g.create_dataset("rho", data=rho)
            g.create_dataset("eigenvalues", data=eps)
            g.attrs["wall_seconds"] = time.perf_counter() - w
            results.append((d, e, f, it))
    best = min(results, key=lambda r: r[1])
    say(f"\n     lowest energy {best[1]:.8f} Ry at bond length {best[0]:.2f}")
    cpu, wall = time.process_time() - CPU0, time.perf_counter() - WALL0
    say(f"     Estimated max dynamical RAM per process > {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:10.2f} MB\n")
    for name, (c, w, n) in CLOCKS.items():
        say(f"     {name:<12} : {c:10.2f}s CPU {w:10.2f}s WALL ({n:8d} calls)")
    say(f"\n     PWSCF        : {human(cpu)} CPU {human(wall)} WALL\n")
    end = datetime.now()
    say(f"   This run was terminated on:  {end.hour:2d}:{end.minute:2d}:{end.second:2d}  {end.day:2d}{end:%b%Y}\n\n   JOB DONE.")
    root = ET.Element("espresso")
    gi = ET.SubElement(root, "general_info")
    ET.SubElement(gi, "created", DATE=f"{end:%d%b%Y}", TIME=f"{end:%H:%M:%S}").text = "This run was terminated"
    for d, e, f, it in results:
        o = ET.SubElement(root, "output", bond=f"{d}", n_scf_steps=str(it))
        ET.SubElement(o, "etot").text = f"{e / 2:.15e}"
        ET.SubElement(o, "forces").text = " ".join(f"{v:.15e}" for v in f)
    ti = ET.SubElement(root, "timing_info")
    for name, (c, w, n) in CLOCKS.items():
        p = ET.SubElement(ti, "partial", label=name, calls=str(n))
        ET.SubElement(p, "cpu").text = f"{c:.15e}"
        ET.SubElement(p, "wall").text = f"{w:.15e}"
    ET.indent(root)
    ET.ElementTree(root).write("data-file-schema.xml")


if __name__ == "__main__":
    main()
