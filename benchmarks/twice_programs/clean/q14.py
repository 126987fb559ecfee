"""Unrestricted Hartree-Fock of the Hubbard model on a square lattice, H-wave style log.

Output format: H-wave (qlms.uhfk) log lines with time stamps, energy.dat, the
.npz of the Green function.
Seen at: https://github.com/issp-center-dev/H-wave/pull/4
Field: condensed matter physics.
"""
import logging
import os
import pickle
import resource
import sys
import time
from datetime import datetime
from pathlib import Path

import numpy as np

L, T, FILLING = 14, 1.0, 1.0
INTERACTIONS = (2.0, 4.0, 6.0)
EPS, MIX, MAXSTEP = 1e-8, 0.6, 300
log = logging.getLogger("qlms")


class Perf:
    """Collects how long each named section took, as H-wave's do_perf does."""
    table: dict = {}

    @classmethod
    def timed(cls, func):
        def inner(*args, **kw):
            t = time.perf_counter()
            try:
                return func(*args, **kw)
            finally:
                n, s = cls.table.get(func.__name__, (0, 0.0))
                cls.table[func.__name__] = (n + 1, s + time.perf_counter() - t)
        return inner


def hopping():
    n = L * L
    h = np.zeros((n, n))
    for x in range(L):
        for y in range(L):
            i = x * L + y
            for j in (((x + 1) % L) * L + y, x * L + (y + 1) % L):
                h[i, j] = h[j, i] = -T
    return h


@Perf.timed
def diagonalize(h0, u, other):
    return np.linalg.eigh(h0 + u * np.diag(other))


@Perf.timed
def green(vec, occ):
    c = vec[:, :occ]
    return np.einsum("ij,ij->i", c, c)


@Perf.timed
def solve(u, h0):
    sub = logging.getLogger("qlms.uhfk")
    n, occ = L * L, int(L * L * FILLING / 2)
    x, y = np.divmod(np.arange(n), L)
    stagger = np.where((x + y) % 2 == 0, 1.0, -1.0)
    up, down = 0.5 + 0.3 * stagger, 0.5 - 0.3 * stagger
    occ_dn = n - occ
    t0 = time.time()
    for step in range(1, MAXSTEP + 1):
        eu, vu = diagonalize(h0, u, down)
        ed, vd = diagonalize(h0, u, up)
        nu, nd = green(vu, occ), green(vd, occ_dn)
        rest = float(np.sqrt(np.mean((nu - up) ** 2 + (nd - down) ** 2)))
        up, down = (1 - MIX) * up + MIX * nu, (1 - MIX) * down + MIX * nd
        energy = float(eu[:occ].sum() + ed[:occ_dn].sum() - u * (up @ down))
        if step == 1 or step % 10 == 0:
            sub.info("n = %d, rest = %.3e, Energy.Total = %.8f, Sz = %.4f  (%.3f s/step)", step, rest, energy,
                     round(float(0.5 * (nu - nd).sum()), 6) + 0.0, (time.time() - t0) / step)
        if rest < EPS:
            sub.info("UHFk calculation succeeded: rest=%.3e, eps=%g after %d steps in %.2f s", rest, EPS, step, time.time() - t0)
            break
    else:
        sub.warning("UHFk calculation failed: rest=%.3e", rest)
    gap = float(min(eu[occ], ed[occ_dn]) - max(eu[occ - 1], ed[occ_dn - 1]))
    moment = float(stagger @ (nu - nd) / n / 2)
    return dict(u=u, steps=step, energy=round(energy, 7), moment=round(moment, 6), gap=round(gap, 6),
                double=round(float(nu @ nd) / n, 6), density=(nu, nd))


def main():
    stamp = datetime.now()
    out = Path(f"output_{stamp:%Y%m%d_%H%M%S}_{os.getpid()}")         # one folder for each run
    out.mkdir()
    fmt = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    for handler in (logging.StreamHandler(sys.stdout), logging.FileHandler(out / "hwave.log")):
        handler.setFormatter(fmt)
        log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.info("Read interaction definitions from %s", Path.cwd() / "zvo_ur.dat")
    log.info("HWAVE: mode = UHFk, lattice %dx%d, process %d on %s", L, L, os.getpid(), os.uname().nodename)
    h0 = hopping()
    results = []
    for u in INTERACTIONS:
        log.info("Start UHFk calculation, U = %.1f", u)
        res = solve(u, h0)
        log.info("Total Energy = %.7f.", res["energy"])
        results.append(res)
        with open(out / f"energy_U{u:.0f}.dat", "w") as fh:
            fh.write(f"# generated {datetime.now().isoformat(sep=' ')}\n")
            fh.write(f"Energy_Total = {res['energy']}\nMoment = {res['moment']}\nDoublon = {res['double']}\n")
        np.savez(out / f"green_U{u:.0f}.npz", up=res["density"][0].round(6), down=res["density"][1].round(6), saved_at=time.time())
    with open(out / "summary.pickle", "wb") as fh:
        pickle.dump({"started": stamp, "finished": datetime.now(), "argv": sys.argv, "perf": Perf.table,
                     "rows": [{k: v for k, v in r.items() if k != "density"} for r in results]}, fh)
    log.info("Save calculation results to %s", out.resolve())
    print("\n   U   steps   Energy.Total     moment        gap    doublon")
    for r in results:
        print(f"{r['u']:5.1f}{r['steps']:7d}{r['energy']:15.7f}{r['moment']:11.6f}{r['gap']:11.6f}{r['double']:11.6f}")
    print("\nPerformance:")
    for name, (calls, secs) in sorted(Perf.table.items()):
        print(f"  {name:<14}{calls:6d} calls {secs:9.4f} s {1e3 * secs / calls:9.3f} ms/call")
    use = resource.getrusage(resource.RUSAGE_SELF)
    print(f"  user {use.ru_utime:.2f} s, system {use.ru_stime:.2f} s, peak {use.ru_maxrss / 1024:.1f} MiB")
    log.info("All done, %s elapsed", datetime.now() - stamp)


if __name__ == "__main__":
    main()
