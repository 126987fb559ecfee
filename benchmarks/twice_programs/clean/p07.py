"""A trace-driven two-level cache model, reporting as gem5 does (simout, stats.txt, config.ini, config.json).

Format: https://www.gem5.org/documentation/learning_gem5/part1/gem5_stats/
(simSeconds, hostSeconds, hostTickRate, hostMemory, hostInstRate ... per dumped region)
"""
import configparser
import json
import os
import resource
import socket
import sys
import time
from datetime import datetime

import numpy as np
from numba import njit

CONF = {
    "system": {"type": "System", "cache_line_size": 64, "mem_mode": "timing"},
    "system.cpu": {"type": "TimingSimpleCPU", "clock": 500, "eventq_index": 0},
    "system.cpu.dcache": {"type": "Cache", "size": 32768, "assoc": 4, "response_latency": 2},
    "system.l2cache": {"type": "Cache", "size": 262144, "assoc": 8, "response_latency": 20},
    "system.mem_ctrl": {"type": "MemCtrl", "latency": 120},
}
N, SEED = 2_000_000, 9


@njit
def access(tags, stamps, line, tick, write, dirty):
    """Look a line up in a set-associative LRU cache. Returns hit, writeback."""
    s = line % tags.shape[0]
    victim, oldest = 0, stamps[s, 0]
    for w in range(tags.shape[1]):
        if tags[s, w] == line:
            stamps[s, w] = tick
            if write:
                dirty[s, w] = True
            return True, False
        if stamps[s, w] < oldest:
            victim, oldest = w, stamps[s, w]
    wb = dirty[s, victim]
    tags[s, victim] = line
    stamps[s, victim] = tick
    dirty[s, victim] = write
    return False, wb


@njit
def simulate(addr, write, t1, s1, d1, t2, s2, d2, lat, tick, out):
    for i in range(len(addr)):
        line = addr[i] >> 6
        tick += 1
        cyc = 1
        hit, wb = access(t1, s1, line, tick, write[i], d1)
        out[0] += 1
        if hit:
            out[1] += 1
            cyc += lat[0]
        else:
            out[2] += 1
            if wb:
                out[6] += 1
            hit2, wb2 = access(t2, s2, line, tick, False, d2)
            if hit2:
                out[3] += 1
                cyc += lat[0] + lat[1]
            else:
                out[4] += 1
                cyc += lat[0] + lat[1] + lat[2]
            if wb2:
                out[7] += 1
        out[5] += cyc
    return tick


def workload(name, rng):
    if name == "stream":
        addr = (np.arange(N) * 8) % (4 << 20)
    elif name == "random":
        addr = rng.integers(0, 1 << 20, N)
    elif name == "zipf":
        addr = (rng.zipf(1.3, N) % (1 << 16)) * 64
    else:                                    # matrix: column walk over a row-major array
        n = 512
        i = np.arange(N)
        addr = ((i % n) * n + (i // n) % n) * 8
    return addr.astype(np.int64), rng.random(N) < 0.3


def make_cache(c):
    sets = c["size"] // 64 // c["assoc"]
    return (np.full((sets, c["assoc"]), -1, np.int64), np.zeros((sets, c["assoc"]), np.int64),
            np.zeros((sets, c["assoc"]), np.bool_))


def stat(f, name, value, desc, unit="Count"):
    text = f"{value:.6f}" if isinstance(value, float) else f"{value:d}"
    f.write(f"{name:<40} {text:>16}                       # {desc} ({unit})\n")


def main():
    t_all = time.time()
    out = open("simout", "w")

    def say(msg=""):
        print(msg, flush=True)
        out.write(msg + "\n")

    say("gem5 Simulator System.  https://www.gem5.org\ngem5 is copyrighted software; use the --copyright option for details.\n")
    say("gem5 version 22.1.0.0")
    say(f"gem5 started {datetime.now():%b %d %Y %H:%M:%S}")
    say(f"gem5 executing on {socket.gethostname()}, pid {os.getpid()}")
    say(f"command line: {sys.executable} {os.path.basename(__file__)} --outdir={os.getcwd()}\n")
    say("Global frequency set at 1000000000000 ticks per second")
    ini = configparser.ConfigParser()
    ini["root"] = {"type": "Root", "children": "system", "full_system": "false"}
    for k, v in CONF.items():
        ini[k] = {a: str(b) for a, b in v.items()}
    with open("config.ini", "w") as f:
        ini.write(f)
    l1, l2, mem = CONF["system.cpu.dcache"], CONF["system.l2cache"], CONF["system.mem_ctrl"]
    lat = np.array([l1["response_latency"], l2["response_latency"], mem["latency"]], np.int64)
    rng = np.random.default_rng(SEED)
    tick, final = 0, 0
    summary = {}
    stats = open("stats.txt", "w")
    c1, c2 = make_cache(l1), make_cache(l2)
    say("**** REAL SIMULATION ****")
    for name in ("stream", "random", "zipf", "matrix"):
        addr, write = workload(name, rng)
        say(f"build/X86/sim/simulate.cc:194: info: Entering event queue @ {final}.  Starting region {name}...")
        cnt = np.zeros(8, np.int64)
        t0 = time.perf_counter()
        for lo in range(0, N, N // 4):       # four quanta for each region
            tick = simulate(addr[lo:lo + N // 4], write[lo:lo + N // 4], *c1, *c2, lat, tick, cnt)
        host = time.perf_counter() - t0
        ticks = int(cnt[5]) * CONF["system.cpu"]["clock"]
        final += ticks
        stats.write("\n---------- Begin Simulation Statistics ----------\n")
        stat(stats, "simSeconds", ticks / 1e12, "Number of seconds simulated", "Second")
        stat(stats, "simTicks", ticks, "Number of ticks simulated", "Tick")
        stat(stats, "finalTick", final, "Number of ticks from beginning of simulation", "Tick")
        stat(stats, "simFreq", 10 ** 12, "The number of ticks per simulated second", "(Tick/Second)")
        stat(stats, "hostSeconds", host, "Real time elapsed on the host", "Second")
        stat(stats, "hostTickRate", int(ticks / host), "The number of ticks simulated per host second", "(Tick/Second)")
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        stat(stats, "hostMemory", rss, "Number of bytes of host memory used", "Byte")
        stat(stats, "simInsts", N, "Number of instructions simulated")
        stat(stats, "hostInstRate", int(N / host), "Simulator instruction rate (inst/s)", "(Count/Second)")
        stat(stats, "system.cpu.numCycles", int(cnt[5]), "Number of cpu cycles simulated", "Cycle")
        stat(stats, "system.cpu.cpi", float(cnt[5] / N), "CPI: cycles per instruction", "(Cycle/Count)")
        stat(stats, "system.cpu.dcache.overallHits::total", int(cnt[1]), "number of overall hits")
        stat(stats, "system.cpu.dcache.overallMisses::total", int(cnt[2]), "number of overall misses")
        stat(stats, "system.cpu.dcache.overallMissRate::total", float(cnt[2] / cnt[0]), "miss rate", "Ratio")
        stat(stats, "system.cpu.dcache.writebacks::total", int(cnt[6]), "number of writebacks")
        stat(stats, "system.l2cache.overallHits::total", int(cnt[3]), "number of overall hits")
        stat(stats, "system.l2cache.overallMisses::total", int(cnt[4]), "number of overall misses")
        stat(stats, "system.mem_ctrl.readReqs", int(cnt[4]), "Number of read requests accepted")
        stats.write("\n---------- End Simulation Statistics   ----------\n")
        summary[name] = {"cpi": cnt[5] / N, "l1_miss_rate": cnt[2] / cnt[0], "l2_misses": int(cnt[4])}
        say(f"Exiting @ tick {final} because region {name} finished, cpi {cnt[5] / N:.4f}, host {host:.2f}s")
    stats.close()
    with open("config.json", "w") as f:
        json.dump({"config": CONF, "summary": summary}, f, indent=2)
    say(f"Simulated exit, host wall {time.time() - t_all:.3f} s")


if __name__ == "__main__":
    main()
