"""Lid-driven cavity (fractional step on a small mesh), printed like OpenFOAM's icoFoam.

Output follows OpenFOAM (https://github.com/gerlero/openfoam-app/issues/160 for the per-step lines; the
banner with Date/Time/Host/PID as printed by every OpenFOAM application). Fields are written into time folders.
"""
import os
import socket
import sys
import time

import numpy as np

N, DT, NU, T_END, WRITE = 40, 0.004, 0.01, 0.8, 50
START_CPU, START = time.process_time(), time.time()
HEADER = r"""/*---------------------------------------------------------------------------*\
  =========                 |
  \\      /  F ield         | OpenFOAM: The Open Source CFD Toolbox
   \\    /   O peration     | Website:  https://openfoam.org
    \\  /    A nd           | Version:  11
     \\/     M anipulation  |
\*---------------------------------------------------------------------------*/"""
SEP = "// * * * * * * * * * * * * * * * * * * * * * * * * * * * * * * * * * * * * * //"


def banner():
    print(HEADER)
    print("Build  : 11-9d1ee3ae3c21")
    print("Exec   : icoFoam")
    print(f"Date   : {time.strftime('%b %d %Y')}")
    print(f"Time   : {time.strftime('%H:%M:%S')}")
    print(f'Host   : "{socket.gethostname()}"')
    print(f"PID    : {os.getpid()}")
    print("I/O    : uncollated")
    print(f"Case   : {os.getcwd()}")
    print("nProcs : 1")
    print("sigFpe : Enabling floating point exception trapping (FOAM_SIGFPE).")
    print("fileModificationChecking : Monitoring run-time modified files using timeStampMaster")
    print("allowSystemOperations : Allowing user-supplied system call operations\n")
    print(SEP)
    print("Create time\n\nCreate mesh for time = 0\n")
    print("Reading transportProperties\n\nReading field p\n\nReading field U\n")
    print("Reading/calculating face flux field phi\n\n\nStarting time loop\n")


def laplace(p, h):
    q = np.pad(p, 1, mode="edge")
    return (q[:-2, 1:-1] + q[2:, 1:-1] + q[1:-1, :-2] + q[1:-1, 2:] - 4 * p) / h ** 2


def cg(rhs, p, h, tol, relax):
    """Conjugate gradients for -lap(p) = rhs (pure Neumann, mean removed)."""
    rhs = rhs - rhs.mean()
    norm = np.abs(rhs).sum() + 1e-20
    r = rhs + laplace(p, h)
    init = np.abs(r).sum() / norm
    d, rs, it = r.copy(), float((r * r).sum()), 0
    while np.abs(r).sum() / norm > max(tol, relax * init) and it < 300:
        Ad = -laplace(d, h)
        alpha = rs / float((d * Ad).sum())
        p = p + alpha * d
        r = r - alpha * Ad
        new = float((r * r).sum())
        d = r + new / rs * d
        rs, it = new, it + 1
    print(f"DICPCG:  Solving for p, Initial residual = {init:.6g}, "
          f"Final residual = {np.abs(r).sum() / norm:.6g}, No Iterations {it}")
    return p - p.mean()


def advect(u, v, c, h, top):
    e = np.pad(c, 1, mode="edge")
    e[0], e[:, 0], e[:, -1] = -e[1], -e[:, 1], -e[:, -2]
    e[-1] = 2 * top - e[-2]
    dx = (e[1:-1, 2:] - e[1:-1, :-2]) / (2 * h)
    dy = (e[2:, 1:-1] - e[:-2, 1:-1]) / (2 * h)
    lap = (e[:-2, 1:-1] + e[2:, 1:-1] + e[1:-1, :-2] + e[1:-1, 2:] - 4 * c) / h ** 2
    return -(u * dx + v * dy) + NU * lap


def grad(p, h):
    q = np.pad(p, 1, mode="edge")
    return (q[1:-1, 2:] - q[1:-1, :-2]) / (2 * h), (q[2:, 1:-1] - q[:-2, 1:-1]) / (2 * h)


def div(u, v, h):
    U, V = np.pad(u, 1), np.pad(v, 1)
    U[:, 0], U[:, -1] = -U[:, 1], -U[:, -2]
    V[0], V[-1] = -V[1], -V[-2]
    return (U[1:-1, 2:] - U[1:-1, :-2]) / (2 * h) + (V[2:, 1:-1] - V[:-2, 1:-1]) / (2 * h)


def write_field(folder, name, cls, rows):
    with open(os.path.join(folder, name), "w") as f:
        f.write(HEADER + "\nFoamFile\n{\n    format      ascii;\n    class       %s;\n" % cls)
        f.write('    location    "%s";\n    object      %s;\n}\n%s\n\n' % (os.path.basename(folder), name, SEP))
        f.write("internalField   nonuniform List<%s>\n%d\n(\n" % ("scalar" if cls == "volScalarField" else "vector", len(rows)))
        f.writelines(r + "\n" for r in rows)
        f.write(")\n;\n")


def main():
    banner()
    h = 1.0 / N
    u, v, p = np.zeros((N, N)), np.zeros((N, N)), np.zeros((N, N))
    cumulative = 0.0
    steps = int(round(T_END / DT))
    probe = open("probe.dat", "w")
    probe.write("# Probe 0 (0.5 0.75 0)\n# Time        Ux\n")
    for n in range(1, steps + 1):
        t = n * DT
        print(f"Time = {t:.6g}s\n")
        c = (np.abs(u) + np.abs(v)) * DT / h
        print(f"Courant Number mean: {c.mean():.6g} max: {c.max():.6g}")
        ru, rv = DT * advect(u, v, u, h, 1.0), DT * advect(u, v, v, h, 0.0)
        for nm, r, f in (("Ux", ru, u), ("Uy", rv, v)):
            i = np.abs(r).sum() / (np.abs(f).sum() + np.abs(r).sum() + 1e-20)
            print(f"smoothSolver:  Solving for {nm}, Initial residual = {i:.6g}, "
                  f"Final residual = {i * NU:.6g}, No Iterations 1")
        u, v = u + ru, v + rv
        for _ in range(2):
            p = cg(-div(u, v, h) / DT, p, h, 1e-6, 0.05)
            px, py = grad(p, h)
            un, vn = u - DT * px, v - DT * py
            d = div(un, vn, h)
            cumulative += float(d.mean() * DT)
            print(f"time step continuity errors : sum local = {np.abs(d).mean() * DT:.6g}, "
                  f"global = {d.mean() * DT:.6g}, cumulative = {cumulative:.6g}")
        u, v = un, vn
        probe.write(f"{t:<12.6g}  {u[3 * N // 4, N // 2]:.6g}\n")
        if n % WRITE == 0:
            folder = f"{t:.6g}"
            os.makedirs(folder)
            write_field(folder, "p", "volScalarField", ["%.6g" % x for x in p.ravel()])
            write_field(folder, "U", "volVectorField", ["(%.6g %.6g 0)" % x for x in zip(u.ravel(), v.ravel())])
        print(f"ExecutionTime = {time.process_time() - START_CPU:.6g} s  ClockTime = {int(time.time() - START)} s\n")
    probe.close()
    print("End\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
