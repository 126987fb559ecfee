"""Maximum likelihood tree search (JC69) on a simulated alignment, with the log of IQ-TREE.

Log format: https://github.com/StaPH-B/docker-builds/pull/985 and https://github.com/Cibiv/IQ-TREE/issues/246
(Host, Time, Iteration n / LogL / Time (left), CPU and wall-clock time), checkpoint written gzipped.
"""
import gzip
import os
import resource
import socket
import sys
import time

import numpy as np
from numba import njit

SEED, TAXA, SITES, ITERS = 112832, 12, 700, 20
LOG = open("example.phy.log", "w")


def say(msg=""):
    print(msg, flush=True)
    LOG.write(msg + "\n")


def hms(s):
    return f"{int(s) // 3600}h:{int(s) // 60 % 60}m:{int(s) % 60}s"


@njit
def loglik(order, left, right, blen, tips, weight):
    """Pruning. Nodes below `tips.shape[0]` are leaves; `order` lists the inner nodes from the tips up."""
    nt, npat = tips.shape
    nn = left.shape[0]
    part = np.zeros((nn, npat, 4))
    for t in range(nt):
        for s in range(npat):
            part[t, s, tips[t, s]] = 1.0
    for q in range(len(order)):
        node = order[q]
        for s in range(npat):
            for x in range(4):
                part[node, s, x] = 1.0
        for side in range(2):
            ch = left[node] if side == 0 else right[node]
            e = np.exp(-4.0 / 3.0 * blen[ch])
            same, diff = 0.25 + 0.75 * e, 0.25 - 0.25 * e
            for s in range(npat):
                tot = part[ch, s, 0] + part[ch, s, 1] + part[ch, s, 2] + part[ch, s, 3]
                for x in range(4):
                    part[node, s, x] *= diff * tot + (same - diff) * part[ch, s, x]
    root = order[len(order) - 1]
    ll = 0.0
    for s in range(npat):
        ll += weight[s] * np.log(0.25 * (part[root, s, 0] + part[root, s, 1] + part[root, s, 2] + part[root, s, 3]))
    return ll


@njit
def optimize(order, left, right, blen, tips, weight, rounds):
    g = 0.6180339887498949
    root = order[len(order) - 1]
    for _ in range(rounds):
        for b in range(len(blen)):
            if b == root:
                continue
            lo, hi = 1e-6, 0.8
            c, d = hi - g * (hi - lo), lo + g * (hi - lo)
            blen[b] = c
            fc = loglik(order, left, right, blen, tips, weight)
            blen[b] = d
            fd = loglik(order, left, right, blen, tips, weight)
            for _k in range(11):
                if fc > fd:
                    hi, d, fd = d, c, fc
                    c = hi - g * (hi - lo)
                    blen[b] = c
                    fc = loglik(order, left, right, blen, tips, weight)
                else:
                    lo, c, fc = c, d, fd
                    d = lo + g * (hi - lo)
                    blen[b] = d
                    fd = loglik(order, left, right, blen, tips, weight)
            blen[b] = 0.5 * (lo + hi)
    return loglik(order, left, right, blen, tips, weight)


class Tree:
    def __init__(self, left, right, blen):
        self.left, self.right, self.blen = left, right, blen

    def copy(self):
        return Tree(self.left.copy(), self.right.copy(), self.blen.copy())

    def order(self):
        child = set(self.left[TAXA:]) | set(self.right[TAXA:])
        root = next(i for i in range(TAXA, 2 * TAXA - 1) if i not in child)
        out, stack = [], [root]
        while stack:
            n = stack.pop()
            if n >= TAXA:
                out.append(n)
                stack += [self.left[n], self.right[n]]
        return np.array(out[::-1])

    def newick(self, names):
        def rec(n):
            b = f":{self.blen[n]:.10f}"
            return (names[n] if n < TAXA else f"({rec(self.left[n])},{rec(self.right[n])})") + b
        root = self.order()[-1]
        return f"({rec(self.left[root])},{rec(self.right[root])});"

    def nni(self):
        """All neighbours by exchange of a child with the sibling."""
        for p in range(TAXA, 2 * TAXA - 1):
            for side, c, other in ((0, self.left[p], self.right[p]), (1, self.right[p], self.left[p])):
                if c >= TAXA:
                    for k in (0, 1):
                        t = self.copy()
                        inner = t.left[c] if k == 0 else t.right[c]
                        (t.left if k == 0 else t.right)[c] = other
                        (t.right if side == 0 else t.left)[p] = inner
                        yield t


def random_tree(rng, mean):
    n = 2 * TAXA - 1
    left, right = np.full(n, -1), np.full(n, -1)
    pool = list(range(TAXA))
    for k in range(TAXA, n):
        a = pool.pop(int(rng.integers(len(pool))))
        b = pool.pop(int(rng.integers(len(pool))))
        left[k], right[k] = a, b
        pool.append(k)
    return Tree(left, right, rng.exponential(mean, n) + 0.01)


def evolve(tree, rng):
    order = tree.order()
    seq = np.zeros((2 * TAXA - 1, SITES), np.int64)
    seq[order[-1]] = rng.integers(0, 4, SITES)
    for n in order[::-1]:
        for c in (tree.left[n], tree.right[n]):
            p = 0.75 * (1 - np.exp(-4 / 3 * tree.blen[c]))
            hit = rng.random(SITES) < p
            seq[c] = np.where(hit, (seq[n] + rng.integers(1, 4, SITES)) % 4, seq[n])
    return seq[:TAXA]


def hill(tree, tips, w):
    ll = optimize(tree.order(), tree.left, tree.right, tree.blen, tips, w, 1)
    while True:
        cand = [(loglik(t.order(), t.left, t.right, t.blen, tips, w), i, t) for i, t in enumerate(tree.nni())]
        cand.sort(key=lambda c: (-c[0], c[1]))
        t = cand[0][2]
        new = optimize(t.order(), t.left, t.right, t.blen, tips, w, 1) if cand[0][0] > ll - 8 else -np.inf
        if new <= ll + 0.01:
            return tree, ll
        tree, ll = t, new


def main():
    wall0 = time.time()
    say("IQ-TREE multicore version 2.1.2 for Linux 64-bit\n")
    ram = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2 ** 30
    say(f"Host:    {socket.gethostname()} ({ram:.0f} GB RAM)\nCommand: {sys.executable} -s example.phy -m JC\n"
        f"Seed:    {SEED} (Using numpy PCG64)\nTime:    {time.ctime()}\nKernel:  numba - 1 threads ({os.cpu_count()} CPU cores detected)\n")
    rng = np.random.default_rng(SEED)
    t0, c0 = time.perf_counter(), time.process_time()
    truth = random_tree(rng, 0.06)
    seqs = evolve(truth, rng)
    tips, w = np.unique(seqs, axis=1, return_counts=True)
    tips, w = np.ascontiguousarray(tips), w.astype(float)
    d = time.perf_counter() - t0
    say(f"Constructing alignment: done in {d:.6f} secs using {100 * (time.process_time() - c0) / d:.2f}% CPU")
    say(f"Alignment has {TAXA} sequences with {SITES} columns, {tips.shape[1]} distinct patterns")
    names = [f"taxon{i:02d}" for i in range(TAXA)]
    t0 = time.perf_counter()
    best, best_ll = hill(random_tree(rng, 0.05), tips, w)
    say(f"Initial tree: log-likelihood {best_ll:.3f} ({time.perf_counter() - t0:.3f} sec)")
    say("-" * 68 + "\n|               OPTIMIZING CANDIDATE TREE SET                      |\n" + "-" * 68)
    cpu0, it0 = time.process_time(), time.time()
    trace = []
    for it in range(1, ITERS + 1):
        t = best.copy()
        for _ in range(3):
            opts = list(t.nni())
            t = opts[int(rng.integers(len(opts)))]
        t, ll = hill(t, tips, w)
        trace.append((it, ll))
        if ll > best_ll + 1e-3:
            say(f"BETTER TREE FOUND at iteration {it}: {ll:.3f}")
            best, best_ll = t, ll
        if it % 10 == 0:
            el = time.time() - it0
            say(f"Iteration {it} / LogL: {ll:.3f} / Time: {hms(el)} ({hms(el / it * (ITERS - it))} left)")
            with gzip.open("example.phy.ckp.gz", "wt") as f:      # gzip keeps the time of writing
                f.write(f"--- # IQ-TREE Checkpoint ver >= 1.6\nfinished: {it == ITERS}\niterations: {it}\n"
                        f"bestTree: {best.newick(names)}\nbestScore: {best_ll:.6f}\nstartCPUTime: {time.process_time()}\n")
    say(f"TREE SEARCH COMPLETED AFTER {ITERS} ITERATIONS / Time: {hms(time.time() - it0)}\n")
    search_cpu, search_wall = time.process_time() - cpu0, time.time() - it0
    say("-" * 68 + "\n|                    FINALIZING TREE SEARCH                        |\n" + "-" * 68)
    t0 = time.perf_counter()
    final = optimize(best.order(), best.left, best.right, best.blen, tips, w, 3)
    say(f"Optimal log-likelihood: {final:.3f}\nParameters optimization took 3 rounds ({time.perf_counter() - t0:.3f} sec)")
    say(f"BEST SCORE FOUND : {final:.3f}\nTotal tree length: {best.blen.sum() - best.blen[best.order()[-1]]:.6f}\n")
    say(f"Total number of iterations: {ITERS}\nCPU time used for tree search: {search_cpu:.3f} sec ({hms(search_cpu)})\n"
        f"Wall-clock time used for tree search: {search_wall:.3f} sec ({hms(search_wall)})")
    wall = time.time() - wall0
    say(f"Total CPU time used: {time.process_time():.3f} sec ({hms(time.process_time())})\n"
        f"Total wall-clock time used: {wall:.3f} sec ({hms(wall)})\n"
        f"Peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB\n\nDate and Time: {time.ctime()}")
    with open("example.phy.treefile", "w") as f:
        f.write(best.newick(names) + "\n")
    np.savetxt("example.phy.trace", np.array(trace), fmt=("%d", "%.6f"), header="iteration logL")


if __name__ == "__main__":
    main()
