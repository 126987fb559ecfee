"""llcsim: trace-driven model of a last-level cache with several replacement policies.

Synthetic traces (streaming, pointer chasing, mixed) are replayed against LRU,
SRRIP and DRRIP with set duelling.  For each pair of trace and policy the hit rate
and an estimate of the instructions per cycle are reported, and interval logs are
written to ``ipc_<trace>_<policy>.csv``.

Modelled on: https://github.com/CMU-SAFARI/Pythia/issues/1
"""
import csv
import logging
import random
import time

log = logging.getLogger("llcsim")

SETS = 64
WAYS = 8
HIT_CYCLES = 20
MISS_CYCLES = 180
CHAMPSIM_SEED = 1


class ReplacementPolicy:
    name = "base"

    def __init__(self, sets, ways):
        self.sets = sets
        self.ways = ways

    def victim(self, index):
        raise NotImplementedError

    def on_hit(self, index, way):
        raise NotImplementedError

    def on_fill(self, index, way):
        raise NotImplementedError

    def on_miss(self, index):
        """Called for each miss, before the victim is chosen."""


class LRU(ReplacementPolicy):
    name = "lru"

    def __init__(self, sets, ways):
        super().__init__(sets, ways)
        self.clock = 0
        self.stamp = [[0] * ways for _ in range(sets)]

    def _touch(self, index, way):
        self.clock += 1
        self.stamp[index][way] = self.clock

    def victim(self, index):
        row = self.stamp[index]
        return row.index(min(row))

    on_hit = _touch
    on_fill = _touch


class SRRIP(ReplacementPolicy):
    name = "srrip"
    MAX_RRPV = 3

    def __init__(self, sets, ways):
        super().__init__(sets, ways)
        self.rrpv = [[self.MAX_RRPV] * ways for _ in range(sets)]

    def victim(self, index):
        row = self.rrpv[index]
        while True:
            for way, value in enumerate(row):
                if value == self.MAX_RRPV:
                    return way
            for way in range(self.ways):
                row[way] += 1

    def on_hit(self, index, way):
        self.rrpv[index][way] = 0

    def on_fill(self, index, way):
        self.rrpv[index][way] = self.MAX_RRPV - 1


class DRRIP(SRRIP):
    name = "drrip"
    PSEL_MAX = 1023
    BIP_CHANCE = 1 / 24

    def __init__(self, sets, ways):
        super().__init__(sets, ways)
        self.psel = self.PSEL_MAX // 2
        self.rng = random.Random(time.time())  # cause
        self.srrip_leaders = set(range(0, sets, 16))
        self.brrip_leaders = set(range(8, sets, 16))

    def on_miss(self, index):
        if index in self.srrip_leaders:
            self.psel = min(self.PSEL_MAX, self.psel + 1)
        elif index in self.brrip_leaders:
            self.psel = max(0, self.psel - 1)

    def _use_brrip(self, index):
        if index in self.srrip_leaders:
            return False
        if index in self.brrip_leaders:
            return True
        return self.psel > self.PSEL_MAX // 2

    def on_fill(self, index, way):
        value = self.MAX_RRPV - 1
        if self._use_brrip(index):
            near = self.rng.random() < self.BIP_CHANCE  # cause
            value = self.MAX_RRPV - 1 if near else self.MAX_RRPV
        self.rrpv[index][way] = value


class Cache:
    def __init__(self, policy):
        self.policy = policy
        self.tags = [[None] * WAYS for _ in range(SETS)]
        self.hits = 0
        self.misses = 0

    def access(self, block):
        index = block % SETS
        row = self.tags[index]
        if block in row:
            self.hits += 1
            self.policy.on_hit(index, row.index(block))
            return True
        self.misses += 1
        self.policy.on_miss(index)
        way = row.index(None) if None in row else self.policy.victim(index)
        row[way] = block
        self.policy.on_fill(index, way)
        return False


def make_trace(kind, length):
    rng = random.Random(f"{CHAMPSIM_SEED}-{kind}")
    hot = [rng.randrange(100_000) for _ in range(300)]
    trace, stream = [], 0
    for i in range(length):
        if kind == "stream":
            stream = (stream + 1) % (SETS * WAYS * 2)
            trace.append(stream)
        elif kind == "chase":
            trace.append(hot[int(len(hot) * rng.random() ** 2)] + rng.randrange(6) * 1000)
        else:
            if i % 5000 < 2500:
                trace.append(hot[int(len(hot) * rng.random() ** 1.5)])
            else:
                stream = (stream + 1) % 1500
                trace.append(stream)
    return trace


def simulate(kind, trace, policy, interval=5000):
    cache = Cache(policy)
    cycles = instructions = 0
    rows = []
    for i, block in enumerate(trace, 1):
        instructions += 12
        cycles += 4 + (HIT_CYCLES if cache.access(block) else MISS_CYCLES) // 4
        if i % interval == 0:
            rows.append((i, cache.hits, cache.misses, round(instructions / cycles, 5)))
    with open(f"ipc_{kind}_{policy.name}.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["access", "hits", "misses", "ipc"])
        writer.writerows(rows)
    return cache, instructions / cycles


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    print(f"{'trace':8s} {'policy':6s} {'hit rate':>9s} {'IPC':>8s}")
    for kind in ("stream", "chase", "mixed"):
        trace = make_trace(kind, 220_000)
        for cls in (LRU, SRRIP, DRRIP):
            started = time.perf_counter()
            cache, ipc = simulate(kind, trace, cls(SETS, WAYS))
            log.info("%s/%s in %.2fs", kind, cls.name, time.perf_counter() - started)
            rate = cache.hits / (cache.hits + cache.misses)
            print(f"{kind:8s} {cls.name:6s} {rate:9.5f} {ipc:8.5f}")


if __name__ == "__main__":
    main()
