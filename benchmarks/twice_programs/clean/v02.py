"""Restricted Hartree-Fock for small s-only molecules, printed like Psi4.

Output follows Psi4 (https://github.com/psi4/psi4/issues/62 for tstart/tstop and the energy block,
https://github.com/psi4/psi4/pull/1294 for timer.dat, https://github.com/psi4/psi4/pull/956 for the ending).
"""
import datetime
import getpass
import json
import os
import platform
import resource
import socket
import tempfile
import time

import numpy as np
from scipy.linalg import eigh
from scipy.special import erf

STO3G = {"H": ([3.42525091, 0.62391373, 0.16885540], [0.15432897, 0.53532814, 0.44463454]),
         "He": ([6.36242139, 1.15892300, 0.31364979], [0.15432897, 0.53532814, 0.44463454])}
CHARGE = {"H": 1, "He": 2}
JOBS = [("h2", 0, [("H", 0.0, 0.0, -0.70), ("H", 0.0, 0.0, 0.70)]),
        ("heh+", 1, [("He", 0.0, 0.0, 0.0), ("H", 0.0, 0.0, 1.4632)]),
        ("h4", 0, [("H", 0.0, 0.0, 0.0), ("H", 0.0, 0.0, 1.8), ("H", 0.0, 2.0, 0.0), ("H", 0.0, 2.0, 1.8)]),
        ("h8", 0, [("H", round(3.2 * np.cos(k * np.pi / 4 + 0.1 * (k % 2)), 6), round(3.2 * np.sin(k * np.pi / 4 + 0.1 * (k % 2)), 6), 0.0)
                   for k in range(8)])]
out = open("output.dat", "w")


def p(s=""):
    print(s)
    out.write(s + "\n")


class Timers:
    def __init__(self):
        self.on = time.ctime()
        self.t0 = time.time()
        self.rows = {}

    def __call__(self, name):
        timers = self

        class T:
            def __enter__(s):
                s.w, s.r = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)

            def __exit__(s, *a):
                r = resource.getrusage(resource.RUSAGE_SELF)
                row = timers.rows.setdefault(name, [0.0, 0.0, 0.0, 0])
                row[0] += r.ru_utime - s.r.ru_utime
                row[1] += r.ru_stime - s.r.ru_stime
                row[2] += time.perf_counter() - s.w
                row[3] += 1
        return T()

    def write(self, path):
        with open(path, "w") as f:
            f.write(f"\nHost: {socket.gethostname()}\n\nTimers On : {self.on}\nTimers Off: {time.ctime()}\n\n")
            f.write(f"Wall Time: {time.time() - self.t0:10.2f} seconds\n\n")
            f.write(" " * 55 + "Time (seconds)\n")
            f.write(f"{'Module':<36}{'User':>12}{'System':>12}{'Wall':>12}{'Calls':>13}\n")
            for k, (u, s, w, n) in self.rows.items():
                f.write(f"{k:<36}: {u:10.3f}u {s:10.3f}s {w:10.3f}w {n:6d} calls\n")


timer = Timers()
TOTAL0 = (time.time(), resource.getrusage(resource.RUSAGE_SELF))


def tstart():
    p(f"\n*** tstart() called on {socket.gethostname()}")
    p(f"*** at {time.ctime()}\n")
    return time.time(), resource.getrusage(resource.RUSAGE_SELF)


def tstop(t):
    p(f"\n*** tstop() called on {socket.gethostname()} at {time.ctime()}")
    now, r = time.time(), resource.getrusage(resource.RUSAGE_SELF)
    for name, (w0, r0) in (("Module", t), ("Total", TOTAL0)):
        u, s, w = r.ru_utime - r0.ru_utime, r.ru_stime - r0.ru_stime, now - w0
        p(f"{name} time:")
        p(f"\tuser time   = {u:10.2f} seconds = {u / 60:10.2f} minutes")
        p(f"\tsystem time = {s:10.2f} seconds = {s / 60:10.2f} minutes")
        p(f"\ttotal time  = {int(w):10d} seconds = {w / 60:10.2f} minutes")


def f0(t):
    return 1.0 if t < 1e-12 else 0.5 * np.sqrt(np.pi / t) * erf(np.sqrt(t))


def integrals(geom):
    funcs = []
    for s, *xyz in geom:
        e, c = STO3G[s]
        funcs.append([(a, d * (2 * a / np.pi) ** 0.75, np.array(xyz)) for a, d in zip(e, c)])
    n = len(funcs)
    S, T, V = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    I = np.zeros((n, n, n, n))
    with timer("HF: Form core H"):
        for i in range(n):
            for j in range(n):
                for a, ca, A in funcs[i]:
                    for b, cb, B in funcs[j]:
                        q, r2 = a + b, float(((A - B) ** 2).sum())
                        k = ca * cb * np.exp(-a * b / q * r2)
                        P = (a * A + b * B) / q
                        s = k * (np.pi / q) ** 1.5
                        S[i, j] += s
                        T[i, j] += a * b / q * (3 - 2 * a * b / q * r2) * s
                        for sym, *C in geom:
                            V[i, j] -= CHARGE[sym] * 2 * np.pi / q * k * f0(q * float(((P - np.array(C)) ** 2).sum()))
    with timer("JK: (mn|ls)"):
        for i in range(n):
            for j in range(i + 1):
                for k in range(n):
                    for l in range(k + 1):
                        v = 0.0
                        for a, ca, A in funcs[i]:
                            for b, cb, B in funcs[j]:
                                q = a + b
                                P = (a * A + b * B) / q
                                e1 = ca * cb * np.exp(-a * b / q * float(((A - B) ** 2).sum()))
                                for c, cc, C in funcs[k]:
                                    for d, cd, D in funcs[l]:
                                        r = c + d
                                        Q = (c * C + d * D) / r
                                        e2 = cc * cd * np.exp(-c * d / r * float(((C - D) ** 2).sum()))
                                        v += e1 * e2 * 2 * np.pi ** 2.5 / (q * r * np.sqrt(q + r)) * \
                                            f0(q * r / (q + r) * float(((P - Q) ** 2).sum()))
                        for x, y in ((i, j), (j, i)):
                            I[x, y, k, l] = I[x, y, l, k] = v
    return S, T + V, I


def scf(name, charge, geom):
    t = tstart()
    p("         ---------------------------------------------------------")
    p("                                   SCF")
    p("                              RHF Reference")
    p("                        1 Threads,    500 MiB Core")
    p("         ---------------------------------------------------------\n")
    p(f"  ==> Geometry ({name}) <==\n")
    for s, x, y, z in geom:
        p(f"    {s:>4} {x:18.12f} {y:18.12f} {z:18.12f}")
    S, H, I = integrals(geom)
    nocc = (sum(CHARGE[g[0]] for g in geom) - charge) // 2
    enuc = sum(CHARGE[a[0]] * CHARGE[b[0]] / np.linalg.norm(np.subtract(a[1:], b[1:]))
               for i, a in enumerate(geom) for b in geom[:i])
    D, E = np.zeros_like(S), 0.0
    p("\n  ==> Iterations <==\n")
    p("                        Total Energy        Delta E     RMS |[F,P]|\n")
    for it in range(1, 200):
        with timer("HF: Form F"):
            F = H + 2 * np.einsum("mnls,ls->mn", I, D) - np.einsum("mlns,ls->mn", I, D)
        e_new = enuc + float(np.sum(D * (H + F)))
        grad = F @ D @ S - S @ D @ F
        p(f"   @RHF iter {it:3d}: {e_new:20.14f}  {e_new - E:12.5e}   {np.sqrt((grad ** 2).mean()):.5e}")
        done = it > 1 and abs(e_new - E) < 1e-11
        E = e_new
        if done:
            break
        with timer("HF: Form C"):
            eps, C = eigh(F, S)
            D = C[:, :nocc] @ C[:, :nocc].T
    p("  Energy and wave function converged.\n")
    p("    Orbital Energies [Eh]\n    ---------------------\n")
    for i, e in enumerate(eps):
        p(f"       {i + 1}A  {e:12.6f}   {'occ' if i < nocc else 'vir'}")
    p(f"\n  @RHF Final Energy: {E:20.14f}\n\n   => Energetics <=\n")
    p(f"    Nuclear Repulsion Energy = {enuc:26.16f}")
    p(f"    One-Electron Energy =      {2 * float(np.sum(D * H)):26.16f}")
    p(f"    Total Energy =             {E:26.16f}")
    tstop(t)
    return E, eps


def main():
    begin = datetime.datetime.now()
    scratch = tempfile.mkdtemp(prefix=f"psi.{os.getpid()}.")
    try:
        user = getpass.getuser()
    except Exception:
        user = str(os.getuid())
    p("    -----------------------------------------------------------------------")
    p("          Psi4: An Open-Source Ab Initio Electronic Structure Package")
    p("    -----------------------------------------------------------------------\n")
    p(f"    Psi4 started on: {begin.strftime('%A, %d %B %Y %I:%M%p')}\n")
    p(f"    Process ID: {os.getpid()}\n    Host:       {socket.gethostname()}\n    User:       {user}")
    p(f"    PSIDATADIR: {os.getcwd()}\n    Scratch:    {scratch}\n    Memory:     500.0 MiB\n    Threads:    1")
    res = {}
    for name, q, geom in JOBS:
        e, eps = scf(name, q, geom)
        res[name] = {"return_result": e, "orbitals": eps.tolist()}
        np.save(os.path.join(scratch, f"{name}.180.npy"), eps)
    for f in sorted(os.listdir(scratch)):
        os.remove(os.path.join(scratch, f))
    os.rmdir(scratch)
    timer.write("timer.dat")
    end = datetime.datetime.now()
    with open("results.json", "w") as f:
        json.dump({"provenance": {"creator": "Psi4", "hostname": socket.gethostname(), "wall_time": (end - begin).total_seconds(),
                                  "cpu": platform.processor()}, "results": res}, f, indent=2)
    p(f"\n    Psi4 stopped on: {end.strftime('%A, %d %B %Y %I:%M%p')}")
    p(f"    Psi4 wall time for execution: {str(end - begin)[:-4]}\n")
    p("*** Psi4 exiting successfully. Buy a developer a beer!")


if __name__ == "__main__":
    main()
