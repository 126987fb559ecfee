"""Maximum likelihood tree of ten taxa (JC69, NNI), logged the way RAxML-NG does.

Output format: RAxML-NG's run log with elapsed times and worker numbers, its
.bestTree, .mlTrees, .ckp and .log files.
Seen at: https://github.com/amkozlov/raxml-ng/issues/112
         https://github.com/amkozlov/raxml-ng/issues/132
Field: phylogenetics.
"""
import multiprocessing as mp
import os
import pickle
import platform
import random
import sys
import time
from datetime import datetime

import numpy as np
import psutil

TAXA, SITES, SEED, STARTS = 10, 600, 1610432680 % 10007, 5


def simulate():
    rng = np.random.default_rng(7)
    seqs, root = {}, rng.integers(0, 4, SITES)

    def grow(seq, names, depth):
        if len(names) == 1:
            seqs[names[0]] = mutate(seq, 0.05 + 0.02 * depth)
            return
        cut = max(1, len(names) * 2 // 5)
        grow(mutate(seq, 0.06), names[:cut], depth + 1)
        grow(mutate(seq, 0.06), names[cut:], depth + 1)

    def mutate(seq, rate):
        hit = rng.random(SITES) < rate
        out = seq.copy()
        out[hit] = rng.integers(0, 4, hit.sum())
        return out

    grow(root, [f"t{i:02d}" for i in range(TAXA)], 0)
    cols = np.array([seqs[k] for k in sorted(seqs)])
    patterns, weight = np.unique(cols, axis=1, return_counts=True)
    return sorted(seqs), patterns, weight


def partials(tree, tips):
    if isinstance(tree, int):
        return tips[tree]
    out = 1.0
    for child, length in tree:
        e = np.exp(-4 * length / 3)
        p = partials(child, tips)
        out = out * ((1 - e) / 4 * p.sum(0, keepdims=True) + e * p)
    return out


def loglh(tree, tips, weight):
    return float(weight @ np.log(partials(tree, tips).sum(0) / 4))


def random_tree(rng):
    nodes = list(range(TAXA))
    while len(nodes) > 2:
        a, b = nodes.pop(rng.randrange(len(nodes))), nodes.pop(rng.randrange(len(nodes)))
        nodes.append([[a, 0.1], [b, 0.1]])
    return [[nodes[0], 0.1], [nodes[1], 0.1]]


def internal(tree):
    found = []
    for k, (child, _) in enumerate(tree):
        if not isinstance(child, int):
            found.append((tree, k))
            found += internal(child)
    return found


def edges(tree):
    out = []
    for edge in tree:
        out.append(edge)
        if not isinstance(edge[0], int):
            out += edges(edge[0])
    return out


def optimize_lengths(tree, tips, weight, best):
    for edge in edges(tree):
        for factor in (0.5, 0.8, 1.25, 2.0):
            old = edge[1]
            edge[1] = min(max(old * factor, 1e-4), 2.0)
            lh = loglh(tree, tips, weight)
            if lh > best + 1e-9:
                best = lh
            else:
                edge[1] = old
    return best


def nni_round(tree, tips, weight, best):
    moved = 0
    for parent, k in internal(tree):
        if isinstance(parent[k][0], int):          # an earlier move put a leaf here
            continue
        child = parent[k][0]
        for c in (0, 1):
            other = parent[1 - k]
            child[c], parent[1 - k] = other, child[c]
            lh = loglh(tree, tips, weight)
            if lh > best + 1e-6:
                best, moved = lh, moved + 1
            else:
                child[c], parent[1 - k] = parent[1 - k], other
    return best, moved


def newick(tree, names):
    if isinstance(tree, int):
        return names[tree]
    return "(" + ",".join(f"{newick(c, names)}:{l:.6f}" for c, l in tree) + ")"


def search(args):
    number, patterns, weight, t0 = args
    tips = [np.eye(4)[:, row] for row in patterns]
    tree = random_tree(random.Random(SEED + number))
    rows, best = [], loglh(tree, tips, weight)
    clock = lambda: time.strftime("%H:%M:%S", time.gmtime(time.time() - t0))
    rows.append(f"[{clock()} {best:.6f}] Initial branch length optimization")
    best = optimize_lengths(tree, tips, weight, best)
    for rnd in range(1, 20):
        best, moved = nni_round(tree, tips, weight, best)
        best = optimize_lengths(tree, tips, weight, best)
        rows.append(f"[{clock()} {best:.6f}] FAST spr round {rnd} (radius: 5)")
        if not moved:
            break
    worker = mp.current_process()._identity[0] - 1
    return number, best, tree, rows, worker, os.getpid(), clock()


def main():
    t0, log = time.time(), open("aln.raxml.log", "w")

    def say(text=""):
        print(text, flush=True)
        log.write(text + "\n")

    mem = psutil.virtual_memory().total >> 30
    say("\nRAxML-NG v. 1.1.0 released on 29.11.2021 by The Exelixis Lab.\n")
    say(f"System: {platform.processor() or platform.machine()}, {os.cpu_count()} cores, {mem} GB RAM\n")
    say(f"RAxML-NG was called at {datetime.now():%d-%b-%Y %H:%M:%S} as follows:\n")
    say(f"{sys.executable} --search --msa {os.getcwd()}/aln.fasta --model JC --tree rand{{{STARTS}}} --seed {SEED}\n")
    say(f"Analysis options:\n  run mode: ML tree search\n  start tree(s): random ({STARTS})\n  random seed: {SEED}")
    say("  parallelization: coarse-grained (auto), PTHREADS (2 threads), thread pinning: OFF\n")
    names, patterns, weight = simulate()
    stamp = lambda: time.strftime("%H:%M:%S", time.gmtime(time.time() - t0))
    say(f"[{stamp()}] Reading alignment from file: aln.fasta\n[{stamp()}] Loaded alignment with {TAXA} taxa and {SITES} sites\n")
    say(f"Alignment comprises 1 partitions and {patterns.shape[1]} patterns\n")
    say(f"Starting ML tree search with {STARTS} distinct starting trees\n")
    jobs = [(i + 1, patterns, weight, t0) for i in range(STARTS)]
    results = {}
    with mp.get_context("fork").Pool(2) as pool:
        for number, best, tree, rows, worker, pid, when in pool.imap_unordered(search, jobs):
            for row in rows:
                log.write(row + "\n")
            say(f"[{when}] [worker #{worker}] ML tree search #{number}, logLikelihood: {best:.6f}")
            results[number] = (best, tree)
            with open("aln.raxml.ckp", "wb") as fh:
                pickle.dump({"saved": time.time(), "pid": pid, "done": dict(sorted(results.items()))}, fh)
        pool.close()
        pool.join()
    order = sorted(results)
    top = max(order, key=lambda k: (round(results[k][0], 6), -k))
    best, tree = results[top]
    lengths = [e[1] for e in edges(tree)]
    say(f"\n[{stamp()}] ML tree search completed, best tree logLH: {best:.6f}\n")
    say("Optimized model parameters:\n\n   Partition 0: noname\n   Rate heterogeneity: NONE\n   Base frequencies (model): 0.250000 0.250000 0.250000 0.250000\n")
    say(f"Final LogLikelihood: {best:.6f}\n\nAIC score: {2 * len(lengths) - 2 * best:.6f}\nTree length: {sum(lengths):.6f}\n")
    with open("aln.raxml.bestTree", "w") as fh:
        fh.write(newick(tree, names) + ";\n")
    with open("aln.raxml.mlTrees", "w") as fh:
        fh.writelines(newick(results[k][1], names) + ";\n" for k in order)
    say(f"Best ML tree saved to: {os.getcwd()}/aln.raxml.bestTree\nExecution log saved to: {os.getcwd()}/aln.raxml.log\n")
    secs = time.time() - t0
    say(f"Analysis started: {datetime.fromtimestamp(t0):%d-%b-%Y %H:%M:%S} / finished: {datetime.now():%d-%b-%Y %H:%M:%S}\n")
    say(f"Elapsed time: {secs:.3f} seconds\n\nConsumed energy: {secs * 35 / 3600:.3f} Wh\n")
    log.close()


if __name__ == "__main__":
    main()
