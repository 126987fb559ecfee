"""Transient analysis of a diode clipper behind an RC ladder, ngspice batch output.

Output format: ngspice -b listing (initial solution, .meas lines, rusage with
DRAM figures), its ASCII .raw file and a hardcopy of the wave form.
Seen at: https://github.com/fossi-foundation/cace/issues/33
         https://github.com/Ramble-Project/ramble/pull/1212
Field: electronics.
"""
import math
import os
import resource
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import psutil

N = 6                                    # ladder nodes, the last one carries the diodes
R, C = 1e3, 20e-9
IS, VT = 2.52e-9, 0.02585
TSTEP, TSTOP = 2e-7, 2e-3
FREQ, AMP = 2e3, 5.0


def source(t):
    return AMP * math.sin(2 * math.pi * FREQ * t)


def stamp():
    g = np.zeros((N, N))
    for i in range(N):
        g[i, i] += 1 / R
        if i + 1 < N:
            g[i, i] += 1 / R
            g[i, i + 1] -= 1 / R
            g[i + 1, i] -= 1 / R
    return g


def solve_step(g, v, t, h, stats):
    """One backward Euler step with Newton iterations on the two diodes."""
    x = v.copy()
    for it in range(80):
        a = g + np.eye(N) * C / h
        b = v * C / h
        b[0] += source(t) / R
        vd = min(max(x[-1], -0.85), 0.85)
        ep, en = math.exp(vd / VT), math.exp(-vd / VT)
        gd = IS / VT * (ep + en)
        i0 = IS * (ep - en)
        a[-1, -1] += gd
        b[-1] -= i0 - gd * vd
        new = np.linalg.solve(a, b)
        stats["iter"] += 1
        err = np.max(np.abs(new - x))
        x = x + np.clip(new - x, -0.1, 0.1)
        if err < 1e-9:
            break
    return x


def first_cross(t, y, level, rising, after):
    for i in range(1, len(t)):
        if t[i] < after:
            continue
        if (y[i - 1] < level <= y[i]) if rising else (y[i - 1] > level >= y[i]):
            return t[i - 1] + (level - y[i - 1]) * (t[i] - t[i - 1]) / (y[i] - y[i - 1])
    return float("nan")


def main():
    t_begin = time.perf_counter()
    print("\nNote: No compatibility mode selected!\n")
    print(f"\nCircuit: ** sch_path: {os.path.join(os.getcwd(), 'clipper.sch')}\n")
    print("Doing analysis at TEMP = 27.000000 and TNOM = 27.000000\n")
    print("Using SPARSE 1.3 as Direct Linear Solver\n")
    g, v, stats = stamp(), np.zeros(N), {"iter": 0}
    print("Initial Transient Solution\n--------------------------\n")
    print(f"{'Node':<38} Voltage\n{'----':<38} -------")
    for i in range(N):
        print(f"n{i + 1:<37} {v[i]:.6g}")
    steps = int(round(TSTOP / TSTEP))
    t_an = time.perf_counter()
    times, wave = [0.0], [v.copy()]
    shown = time.perf_counter()
    for k in range(1, steps + 1):
        v = solve_step(g, v, k * TSTEP, TSTEP, stats)
        times.append(k * TSTEP)
        wave.append(v.copy())
        if time.perf_counter() - shown > 0.2:
            shown = time.perf_counter()
            print(f" Reference value :  {0.0:.5e}   ({100 * k / steps:.1f}% after {shown - t_an:.2f} s)", end="\r")
    analysis = time.perf_counter() - t_an
    wave = np.array(wave)
    t = np.array(times)
    out = wave[:, -1]
    late = t > TSTOP / 2
    src = np.array([source(x) for x in t])
    meas = {"vmax": out[late].max(), "vmin": out[late].min(),
            "vrms": math.sqrt(np.mean(out[late] ** 2)), "vavg": out[late].mean(),
            "tdelay": first_cross(t, out, 0.0, True, 1e-3) - first_cross(t, src, 0.0, True, 0.9e-3),
            "gain_n3": np.ptp(wave[late, 2]) / np.ptp(src[late])}
    print(f"\nNo. of Data Rows : {len(t)}\n\n  Measurements for Transient Analysis\n")
    for name, val in meas.items():
        print(f"{name:<20}=  {val:.5e}")
    spec = np.abs(np.fft.rfft(out[late][:5000])) / 2500
    base = int(round(FREQ * 5000 * TSTEP))
    print("\nFourier analysis for v(n6):\n  No. Harmonics: 5")
    thd = math.sqrt(sum(spec[base * h] ** 2 for h in range(2, 6))) / spec[base] * 100
    print(f"  THD: {thd:.5g} %")
    for h in range(1, 6):
        print(f" {h} {FREQ * h:8.0f} {spec[base * h]:.6g} {spec[base * h] / spec[base]:.6g}")
    with open("clipper.raw", "w") as fh:
        fh.write(f"Title: ** diode clipper\nDate: {time.ctime()}\nPlotname: Transient Analysis\nFlags: real\n")
        fh.write(f"No. Variables: 3\nNo. Points: {len(t)}\nVariables:\n\t0\ttime\ttime\n\t1\tv(n3)\tvoltage\n\t2\tv(n6)\tvoltage\nValues:\n")
        for i in range(len(t)):
            fh.write(f" {i}\t{t[i]:.15e}\n\t{wave[i, 2]:.15e}\n\t{out[i]:.15e}\n")
    fig, ax = plt.subplots(figsize=(5, 3))
    ax.plot(t * 1e3, out, label="v(n6)")
    ax.set_title("clipper")
    fig.savefig("clipper.svg")           # has the date and random clip ids
    fig.savefig("clipper.png", metadata={"Creation Time": time.ctime()})
    mem, proc = psutil.virtual_memory(), psutil.Process()
    mb = 1 / 1048576
    print(f"\nTotal iterations = {stats['iter']}")
    print(f"\nTotal analysis time (seconds) = {analysis:.6g}")
    print(f"\nTotal elapsed time (seconds) = {time.perf_counter() - t_begin:.3f} \n")
    print(f"Total DRAM available = {mem.total * mb:.3f} MB.\nDRAM currently available = {mem.available * mb:.3f} MB.")
    print(f"Maximum ngspice program size = {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:8.3f} MB.")
    print(f"Current ngspice program size = {proc.memory_info().rss * mb:8.3f} MB.\n")


if __name__ == "__main__":
    main()
