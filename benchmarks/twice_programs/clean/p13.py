"""Lid-driven cavity by a projection method on a collocated grid, with the log of an OpenFOAM solver.

Log format: https://github.com/gerlero/openfoam-app/issues/160
(Solving for Ux, Initial residual, ..., ExecutionTime = 3.97 s  ClockTime = 16 s; header with Date, Time, Host, PID, Case)
"""
import os
import socket
import sys
import time
from datetime import datetime

import numpy as np
from scipy.sparse import diags, identity, kron
from scipy.sparse.linalg import cg, spsolve

N, RE, DT, STEPS, WRITE = 40, 400.0, 0.004, 600, 150
T_CLOCK = time.time()


class Log:
    def __init__(self, name):
        self.f = open(name, "w")

    def __call__(self, text=""):
        print(text, flush=True)
        self.f.write(text + "\n")


def header(log):
    now = datetime.now()
    line = "// " + "* " * 37 + "//"
    log("/*" + "-" * 75 + "*\\\n| =========                 |\n| \\\\      /  F ield         | OpenFOAM style cavity\n\\*" + "-" * 75 + "*/")
    log(f"Build  : _f815a12b-20220906\nArch   : \"LSB;label=32;scalar=64\"\nExec   : icoFoam")
    log(f"Date   : {now:%b %d %Y}\nTime   : {now:%H:%M:%S}\nHost   : {socket.gethostname()}\nPID    : {os.getpid()}")
    log("I/O    : uncollated")
    log(f"Case   : {os.getcwd()}\nnProcs : 1\nfileModificationChecking : Monitoring run-time modified files using timeStampMaster")
    log(line + "\nCreate time\n\nCreate mesh for time = 0\n\nStarting time loop\n")


def laplacian_1d(n, h, kind):
    main = np.full(n, -2.0)
    if kind == "neumann":
        main[0] = main[-1] = -1.0
    else:                               # wall half a cell away
        main[0] = main[-1] = -3.0
    return diags([np.ones(n - 1), main, np.ones(n - 1)], [-1, 0, 1]) / h ** 2


class Cavity:
    def __init__(self):
        self.h = 1.0 / N
        ln, ld = laplacian_1d(N, self.h, "neumann"), laplacian_1d(N, self.h, "dirichlet")
        eye = identity(N)
        self.lp = (kron(ln, eye) + kron(eye, ln)).tocsr()
        lu = kron(ld, eye) + kron(eye, ld)
        self.au = (identity(N * N) - DT / RE * lu).tocsr()
        self.u = np.zeros((N, N))        # [y, x]
        self.v = np.zeros((N, N))
        self.p = np.zeros((N, N))
        self.iters = 0

    def pad(self, a, top):
        b = np.pad(a, 1)
        b[:, 0], b[:, -1] = -b[:, 1], -b[:, -2]
        b[0], b[-1] = -b[1], 2 * top - b[-2]
        return b

    def advect(self, a, top):
        b = self.pad(a, top)
        dx = (b[1:-1, 2:] - b[1:-1, :-2]) / (2 * self.h)
        dy = (b[2:, 1:-1] - b[:-2, 1:-1]) / (2 * self.h)
        return self.u * dx + self.v * dy

    def solve(self, a, rhs, x0, tol):
        count = [0]

        def tick(_):
            count[0] += 1

        scale = np.abs(rhs).sum() + 1e-30
        r0 = np.abs(rhs - a @ x0).sum() / scale
        x, _ = cg(a, rhs, x0=x0, rtol=tol, atol=0.0, maxiter=400, callback=tick)
        self.iters += count[0]
        return x, r0, np.abs(rhs - a @ x).sum() / scale, count[0]

    def step(self, log):
        co = DT * (np.abs(self.u) + np.abs(self.v)) / self.h
        log(f"Courant Number mean: {co.mean():.6g} max: {co.max():.6g}")
        bc = np.zeros((N, N))
        bc[-1] = 2.0 / self.h ** 2 * DT / RE
        ru = (self.u - DT * self.advect(self.u, 1.0) + bc).ravel()
        rv = (self.v - DT * self.advect(self.v, 0.0)).ravel()
        us, r0, r1, k = self.solve(self.au, ru, self.u.ravel(), 1e-6)
        log(f"smoothSolver:  Solving for Ux, Initial residual = {r0:.6g}, Final residual = {r1:.6g}, No Iterations {k}")
        vs, r0, r1, k = self.solve(self.au, rv, self.v.ravel(), 1e-6)
        log(f"smoothSolver:  Solving for Uy, Initial residual = {r0:.6g}, Final residual = {r1:.6g}, No Iterations {k}")
        us, vs = us.reshape(N, N), vs.reshape(N, N)
        fu = np.zeros((N, N + 1))
        fv = np.zeros((N + 1, N))
        fu[:, 1:-1] = 0.5 * (us[:, 1:] + us[:, :-1])
        fv[1:-1] = 0.5 * (vs[1:] + vs[:-1])
        div = (fu[:, 1:] - fu[:, :-1] + fv[1:] - fv[:-1]) / self.h
        rhs = (div / DT).ravel()
        rhs -= rhs.mean()
        p, r0, r1, k = self.solve(-self.lp, -rhs, self.p.ravel(), 1e-5)
        log(f"PCG:  Solving for p, Initial residual = {r0:.6g}, Final residual = {r1:.6g}, No Iterations {k}")
        self.p = (p - p.mean()).reshape(N, N)
        q = np.pad(self.p, 1, mode="edge")
        self.u = us - DT * (q[1:-1, 2:] - q[1:-1, :-2]) / (2 * self.h)
        self.v = vs - DT * (q[2:, 1:-1] - q[:-2, 1:-1]) / (2 * self.h)
        fu[:, 1:-1] -= DT * (self.p[:, 1:] - self.p[:, :-1]) / self.h
        fv[1:-1] -= DT * (self.p[1:] - self.p[:-1]) / self.h
        cont = (fu[:, 1:] - fu[:, :-1] + fv[1:] - fv[:-1]) * self.h * DT
        return float(np.abs(cont).sum()), float(cont.sum())


def main():
    log = Log("log.icoFoam")
    header(log)
    flow = Cavity()
    cumulative, snaps = 0.0, {}
    probes = open("probes.dat", "w")
    probes.write("# Probe 0 (0.5 0.5)\n# Probe 1 (0.25 0.75)\n# Time  Ux0 Uy0 p0  Ux1 Uy1 p1\n")
    for n in range(1, STEPS + 1):
        t = n * DT
        log(f"Time = {t:g}\n")
        local, glob = flow.step(log)
        cumulative += glob
        log(f"time step continuity errors : sum local = {local:.6g}, global = {glob:.4e}, cumulative = {cumulative:.4e}")
        log(f"ExecutionTime = {time.process_time():.2f} s  ClockTime = {time.time() - T_CLOCK:.0f} s\n")
        row = [f"{a[j, i]:.8g}" for j, i in ((N // 2, N // 2), (3 * N // 4, N // 4)) for a in (flow.u, flow.v, flow.p)]
        probes.write(f"{t:g} " + " ".join(row) + "\n")
        if n % WRITE == 0:
            snaps[f"U_{t:g}"] = np.stack([flow.u, flow.v])
            snaps[f"p_{t:g}"] = flow.p
    probes.close()
    np.savez("fields.npz", **snaps)
    psi = np.cumsum(flow.u, axis=0) * flow.h
    j, i = np.unravel_index(np.abs(psi).argmax(), psi.shape)
    with open("summary.txt", "w") as f:
        f.write(f"case {os.path.basename(os.getcwd())}\nwritten {time.ctime()}\nvortex centre {(i + .5) / N:.4f} {(j + .5) / N:.4f}\n"
                f"psi min {psi.min():.10f}\nkinetic energy {0.5 * (flow.u ** 2 + flow.v ** 2).mean():.12f}\n"
                f"linear iterations {flow.iters}\nseconds per step {(time.time() - T_CLOCK) / STEPS:.5f}\n")
    log("End\n")
    print(f"{flow.iters / (time.time() - T_CLOCK):.0f} linear iterations/s", file=sys.stderr)


if __name__ == "__main__":
    main()
