"""Word alignment of a parallel corpus with IBM models 1 and HMM-style distortion.

Modelled on https://github.com/moses-smt/mgiza/issues/26

Expected counts are gathered by several threads over blocks of sentence pairs and
merged into one table per iteration. Writes ttable.tsv, distortion.tsv,
alignments.txt and perplexity.csv.
"""
import argparse
import csv
import logging
import math
import os
import queue
import random
import sys
import threading
import time
from collections import defaultdict

NULL = 0

log = logging.getLogger("align")


# ---------------------------------------------------------------------- corpus
def make_corpus(n_pairs, seed):
    """Pairs of sentences in two artificial languages with a noisy lexicon."""
    rng = random.Random(seed)
    syll = [c + v for c in "bdfgklmnprst" for v in "aeiou"]
    src = ["".join(rng.choice(syll) for _ in range(rng.randint(2, 3))) for _ in range(160)]
    tgt = {w: [w[::-1] + rng.choice("xyz"), w[:2] + rng.choice(syll)] for w in src}
    weights = [1.0 / (k + 3) for k in range(len(src))]
    pairs = []
    for _ in range(n_pairs):
        f = rng.choices(src, weights=weights, k=rng.randint(4, 11))
        e = []
        for w in f:
            r = rng.random()
            if r < 0.08:
                continue
            e.append(tgt[w][0] if rng.random() < 0.8 else tgt[w][1])
            if r > 0.94:
                e.append("ja")
        for k in range(len(e) - 1):
            if rng.random() < 0.15:
                e[k], e[k + 1] = e[k + 1], e[k]
        pairs.append((f, e or ["ja"]))
    return pairs


class Vocabulary:
    def __init__(self):
        self.words = ["<null>"]
        self.ids = {}

    def add(self, word):
        if word not in self.ids:
            self.ids[word] = len(self.words)
            self.words.append(word)
        return self.ids[word]


def encode(pairs):
    fv, ev = Vocabulary(), Vocabulary()
    coded = [([NULL] + [fv.add(w) for w in f], [ev.add(w) for w in e]) for f, e in pairs]
    return coded, fv, ev


# ------------------------------------------------------------------ block work
class Counts:
    """Expected counts of one block of sentence pairs."""

    def __init__(self):
        self.lex = defaultdict(float)
        self.jump = defaultdict(float)
        self.loglik = 0.0
        self.words = 0


def expect(block, ttable, dist):
    out = Counts()
    for f, e in block:
        n, m = len(f) - 1, len(e)
        for j, we in enumerate(e):
            rel = j * n / m
            scores = []
            for i, wf in enumerate(f):
                offset = 99 if i == 0 else max(-4, min(4, round(i - 1 - rel)))
                scores.append((wf, offset, ttable[wf, we] * dist[offset]))
            total = sum(s for _, _, s in scores)
            out.loglik += math.log(total)
            out.words += 1
            for wf, offset, s in scores:
                p = s / total
                out.lex[wf, we] += p
                out.jump[offset] += p
    return out


class ExpectationPool:
    """Threads that take blocks from a queue and post their counts."""

    def __init__(self, blocks, n_threads):
        self.blocks = blocks
        self.todo, self.done = queue.Queue(), queue.Queue()
        self.threads = [threading.Thread(target=self._work, daemon=True) for _ in range(n_threads)]
        for th in self.threads:
            th.start()

    def _work(self):
        while True:
            job = self.todo.get()
            if job is None:
                return
            k, ttable, dist = job
            self.done.put((k, expect(self.blocks[k], ttable, dist)))

    def iteration(self, ttable, dist):
        for k in range(len(self.blocks)):
            self.todo.put((k, ttable, dist))
        for _ in self.blocks:
            yield self.done.get()  # cause

    def close(self):
        for _ in self.threads:
            self.todo.put(None)
        for th in self.threads:
            th.join()


# -------------------------------------------------------------------- training
def normalise(lex, jump):
    totals = defaultdict(float)
    for (wf, _), c in lex.items():
        totals[wf] += c
    ttable = defaultdict(lambda: 1e-9)
    for key, c in lex.items():
        ttable[key] = max(c / totals[key[0]], 1e-9)
    mass = sum(jump.values())
    return ttable, {o: c / mass for o, c in jump.items()}


def initial_tables(coded, n_target):
    ttable = defaultdict(lambda: 1.0 / n_target)
    dist = {o: 1.0 / 10 for o in list(range(-4, 5)) + [99]}
    return ttable, dist


def train(coded, n_target, args):
    size = (len(coded) + args.blocks - 1) // args.blocks
    blocks = [coded[k:k + size] for k in range(0, len(coded), size)]
    ttable, dist = initial_tables(coded, n_target)
    for f, e in coded:
        for wf in f:
            for we in e:
                ttable[wf, we]
    pool = ExpectationPool(blocks, args.ncpus)
    history = []
    for it in range(1, args.iterations + 1):
        t0 = time.perf_counter()
        total = Counts()
        for lex_key in ttable:
            total.lex[lex_key] = 0.0
        for _, part in pool.iteration(ttable, dist):
            for key, c in part.lex.items():
                total.lex[key] += c
            for key in sorted(part.jump):
                total.jump[key] += part.jump[key]
            total.loglik += part.loglik
            total.words += part.words
        ttable, dist = normalise(total.lex, {o: total.jump[o] for o in sorted(total.jump)})
        ppl = 2.0 ** (-total.loglik / math.log(2) / total.words)
        history.append((it, total.loglik, ppl))
        log.info("iteration %d: perplexity %.6f, %d entries, %.2fs", it, ppl, len(ttable),
                 time.perf_counter() - t0)
    pool.close()
    return ttable, dist, history


def viterbi(f, e, ttable, dist):
    n, m = len(f) - 1, len(e)
    links = []
    for j, we in enumerate(e):
        rel = j * n / m
        best = max(range(len(f)), key=lambda i: ttable[f[i], we] * dist[
            99 if i == 0 else max(-4, min(4, round(i - 1 - rel)))])
        if best:
            links.append(f"{best - 1}-{j}")
    return links


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--pairs", type=int, default=1600)
    ap.add_argument("--iterations", type=int, default=5)
    ap.add_argument("--ncpus", type=int, default=4)
    ap.add_argument("--blocks", type=int, default=24)
    ap.add_argument("--seed", type=int, default=19)
    ap.add_argument("--output-prefix", default=".")
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, datefmt="%H:%M:%S",
                        format="%(asctime)s %(message)s")
    pairs = make_corpus(args.pairs, args.seed)
    coded, fv, ev = encode(pairs)
    log.info("%d pairs, %d x %d words, %d threads, output %s", len(coded), len(fv.words), len(ev.words),
             args.ncpus, os.path.abspath(args.output_prefix))
    ttable, dist, history = train(coded, len(ev.words), args)

    path = lambda name: os.path.join(args.output_prefix, name)
    with open(path("ttable.tsv"), "w") as fh:
        for wf, we in sorted(k for k, p in ttable.items() if p > 1e-4):
            fh.write(f"{fv.words[wf]}\t{ev.words[we]}\t{ttable[wf, we]!r}\n")
    with open(path("distortion.tsv"), "w") as fh:
        for o in sorted(dist):
            fh.write(f"{o}\t{dist[o]!r}\n")
    with open(path("alignments.txt"), "w") as fh:
        for f, e in coded:
            fh.write(" ".join(viterbi(f, e, ttable, dist)) + "\n")
    with open(path("perplexity.csv"), "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["iteration", "loglik", "perplexity"])
        writer.writerows(history)
    log.info("final log-likelihood %.12f", history[-1][1])


if __name__ == "__main__":
    main()
