"""A trace-driven cache and in-order CPU simulator that writes m5out/stats.txt like gem5.

Output follows gem5 (https://gem5.org/documentation/learning_gem5/part1/gem5_stats, https://pastebin.com/95tuxth0):
the start-up banner with date, host and pid, hostSeconds, hostTickRate, hostInstRate, hostMemory next to the simulated figures.
"""
import configparser
import json
import os
import platform
import random
import resource
import sys
import time
from collections import OrderedDict

BENCH = ["stream", "gups", "matmul", "listwalk"]
INSTS = 400000
CLOCK = 500  # ticks (ps) per cycle


class Cache:
    def __init__(self, name, size, assoc, line, latency, below):
        self.name, self.assoc, self.line, self.lat, self.below = name, assoc, line, latency, below
        self.sets = [OrderedDict() for _ in range(size // (assoc * line))]
        self.hits = self.misses = self.writebacks = 0

    def access(self, addr, write):
        blk = addr // self.line
        s = self.sets[blk % len(self.sets)]
        if blk in s:
            self.hits += 1
            s.move_to_end(blk)
            s[blk] = s[blk] or write
            return self.lat
        self.misses += 1
        t = self.lat + self.below.access(addr, False)
        if len(s) >= self.assoc:
            old, dirty = s.popitem(last=False)
            if dirty:
                self.writebacks += 1
                self.below.access(old * self.line, True)
        s[blk] = write
        return t


class Dram:
    name = "mem_ctrl"

    def __init__(self):
        self.reads = self.writes = self.row_hits = 0
        self.open = {}

    def access(self, addr, write):
        bank, row = (addr >> 13) & 7, addr >> 16
        hit = self.open.get(bank) == row
        self.open[bank] = row
        self.row_hits += hit
        if write:
            self.writes += 1
        else:
            self.reads += 1
        return 28 if hit else 70


def trace(kind, n, seed):
    """Yields (op, address); op is 'a' (alu), 'l' (load) or 's' (store)."""
    r = random.Random(seed)
    if kind == "stream":
        for i in range(n // 4):
            yield "l", 0x100000 + 8 * i
            yield "l", 0x900000 + 8 * i
            yield "a", 0
            yield "s", 0x1100000 + 8 * i
    elif kind == "gups":
        for _ in range(n // 3):
            a = 0x100000 + 8 * r.randrange(1 << 18)
            yield "l", a
            yield "a", 0
            yield "s", a
    elif kind == "matmul":
        m, k = 32, 0
        while True:
            for i in range(m):
                for j in range(m):
                    for q in range(m):
                        yield "l", 0x100000 + 8 * (i * m + q)
                        yield "l", 0x200000 + 8 * (q * m + j)
                        yield "a", 0
                        k += 3
                        if k >= n:
                            return
                    yield "s", 0x300000 + 8 * (i * m + j)
                    k += 1
    else:
        order = list(range(4096))
        r.shuffle(order)
        p = 0
        for _ in range(n // 2):
            yield "l", 0x100000 + 64 * order[p]
            yield "a", 0
            p = (order[p] + 1) % 4096


def simulate(bench, out):
    dram = Dram()
    l2 = Cache("l2", 256 * 1024, 8, 64, 12, dram)
    l1d = Cache("cpu.dcache", 32 * 1024, 4, 64, 2, l2)
    l1i = Cache("cpu.icache", 16 * 1024, 4, 64, 1, l2)
    t0, cpu0 = time.time(), time.process_time()
    cycles = insts = loads = stores = 0
    for op, addr in trace(bench, INSTS, 77):
        insts += 1
        cycles += l1i.access(0x10000 + 4 * (insts % 700), False)
        if op == "l":
            loads += 1
            cycles += l1d.access(addr, False) - 1
        elif op == "s":
            stores += 1
            l1d.access(addr, True)
            cycles += 1
    host, ticks = time.time() - t0, cycles * CLOCK
    rows = [("simSeconds", f"{ticks / 1e12:.6f}", "Number of seconds simulated (Second)"),
            ("simTicks", ticks, "Number of ticks simulated (Tick)"),
            ("finalTick", ticks, "Number of ticks from beginning of simulation (restored from checkpoints and never reset) (Tick)"),
            ("simFreq", 10 ** 12, "The number of ticks per simulated second ((Tick/Second))"),
            ("hostSeconds", f"{host:.2f}", "Real time elapsed on the host (Second)"),
            ("hostTickRate", int(ticks / host), "The number of ticks simulated per host second (ticks/s) ((Tick/Second))"),
            ("hostMemory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "Number of bytes of host memory used (Byte)"),
            ("simInsts", insts, "Number of instructions simulated (Count)"),
            ("hostInstRate", int(insts / host), "Simulator instruction rate (inst/s) ((Count/Second))"),
            ("system.cpu.numCycles", cycles, "Number of cpu cycles simulated (Cycle)"),
            ("system.cpu.ipc", f"{insts / cycles:.6f}", "IPC: instructions per cycle (core level) ((Count/Cycle))"),
            ("system.cpu.commitStats0.numLoadInsts", loads, "Number of load instructions (Count)"),
            ("system.cpu.commitStats0.numStoreInsts", stores, "Number of store instructions (Count)")]
    for c in (l1i, l1d, l2):
        tot = c.hits + c.misses
        rows += [(f"system.{c.name}.overallHits::total", c.hits, "number of overall hits (Count)"),
                 (f"system.{c.name}.overallMisses::total", c.misses, "number of overall misses (Count)"),
                 (f"system.{c.name}.overallMissRate::total", f"{c.misses / max(1, tot):.6f}", "miss rate for overall accesses (Ratio)"),
                 (f"system.{c.name}.writebacks::total", c.writebacks, "number of writebacks (Count)")]
    rows += [("system.mem_ctrl.readReqs", dram.reads, "Number of read requests accepted (Count)"),
             ("system.mem_ctrl.writeReqs", dram.writes, "Number of write requests accepted (Count)"),
             ("system.mem_ctrl.readRowHits", dram.row_hits, "Number of row buffer hits (Count)")]
    os.makedirs(out)
    with open(os.path.join(out, "stats.txt"), "w") as f:
        f.write("\n---------- Begin Simulation Statistics ----------\n")
        for k, v, d in rows:
            f.write(f"{k:<48} {v:>18}                       # {d}\n")
        f.write("\n---------- End Simulation Statistics   ----------\n")
    cfg = configparser.ConfigParser()
    cfg["root"] = {"type": "Root", "children": "system", "full_system": "false", "sim_quantum": "0"}
    cfg["system.cpu.workload"] = {"type": "Process", "cmd": bench, "cwd": os.getcwd(), "pid": "100", "ppid": "0"}
    with open(os.path.join(out, "config.ini"), "w") as f:
        cfg.write(f)
    print(f"Exiting @ tick {ticks} because exiting with last active thread context")
    return {"bench": bench, "ipc": insts / cycles, "l1d_miss": l1d.misses / (l1d.hits + l1d.misses), "ticks": ticks,
            "host_s": host, "cpu_s": time.process_time() - cpu0, "kips": insts / host / 1000}


def main():
    print("gem5 Simulator System.  https://www.gem5.org\ngem5 is copyrighted software; use the --copyright option for details.\n")
    print("gem5 version 23.0.1.0\ngem5 compiled Oct 12 2023 10:21:06")
    print(f"gem5 started {time.strftime('%b %d %Y %H:%M:%S')}")
    print(f"gem5 executing on {platform.node()}, pid {os.getpid()}")
    print(f"command line: {sys.executable} configs/two_level.py\n")
    print("Global frequency set at 1000000000000 ticks per second\nwarn: No dot file generated.")
    rows = []
    for b in BENCH:
        print(f"**** REAL SIMULATION **** ({b})", flush=True)
        rows.append(simulate(b, os.path.join("m5out", b)))
    print(f"\n{'bench':<10}{'IPC':>9}{'L1D miss':>10}{'ticks':>14}{'host s':>9}{'KIPS':>9}")
    for r in rows:
        print(f"{r['bench']:<10}{r['ipc']:>9.4f}{r['l1d_miss']:>10.4f}{r['ticks']:>14d}{r['host_s']:>9.2f}{r['kips']:>9.1f}")
    with open("m5out/summary.json", "w") as f:
        json.dump({"host": platform.node(), "when": time.time(), "runs": rows}, f, indent=1)


if __name__ == "__main__":
    main()
