"""Modelled on https://github.com/cultivarium/MicrobeMod/pull/49

Methylation motif caller on synthetic genome sites: the refined motifs and
their scores of two calls with the same input and seed are not the same.
"""
import argparse
import csv
import json
import logging
import math
import time
from dataclasses import dataclass

import numpy as np

log = logging.getLogger("motifs")

BASES = "ACGT"
COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A"}


def get_args():
    p = argparse.ArgumentParser(description="call methylation motifs")
    p.add_argument("--seed", type=int, default=5)
    p.add_argument("--genome-length", type=int, default=60000)
    p.add_argument("--flank", type=int, default=8)
    p.add_argument("--max-motifs", type=int, default=3)
    p.add_argument("--min-sites", type=int, default=40)
    p.add_argument("--seed-length", type=int, default=4)
    p.add_argument("--refine-seconds", type=float, default=0.7)
    p.add_argument("--step", type=float, default=0.12)
    p.add_argument("--prefix", default="sample01")
    return p.parse_args()


@dataclass
class Motif:
    consensus: str
    offset: int
    pwm: np.ndarray
    score: float = 0.0
    sites: int = 0
    evaluations: int = 0


def make_genome(length, rng):
    return rng.choice(4, length, p=[0.28, 0.22, 0.22, 0.28])


PLANTED = [("GATC", 1, 0.93), ("CCWGG", 1, 0.85), ("GANTC", 1, 0.9)]
IUPAC = {"A": "A", "C": "C", "G": "G", "T": "T", "W": "AT", "N": "ACGT"}


def call_sites(genome, flank, rng):
    """Windows around methylated positions and around unmethylated ones."""
    seq = "".join(BASES[b] for b in genome)
    methylated = np.zeros(len(seq), bool)
    for pattern, pos, rate in PLANTED:
        k = len(pattern)
        for i in range(flank, len(seq) - flank - k):
            if all(seq[i + j] in IUPAC[c] for j, c in enumerate(pattern)):
                if rng.random() < rate:
                    methylated[i + pos] = True
    methylated |= rng.random(len(seq)) < 0.0015
    usable = np.arange(flank, len(seq) - flank)
    pos = usable[methylated[usable]]
    neg = rng.choice(usable[~methylated[usable]], len(pos) * 2, replace=False)
    index = np.arange(-flank, flank + 1)
    return genome[pos[:, None] + index], genome[np.sort(neg)[:, None] + index]


def onehot(windows):
    return np.eye(4)[windows]


def enriched_seed(pos, neg, k):
    """The ungapped word and offset with the largest log odds times coverage."""
    best = (-np.inf, None, None)
    for off in range(pos.shape[1] - k + 1):
        code_p = pos[:, off:off + k] @ (4 ** np.arange(k))
        code_n = neg[:, off:off + k] @ (4 ** np.arange(k))
        cp = np.bincount(code_p, minlength=4 ** k) + 0.5
        cn = np.bincount(code_n, minlength=4 ** k) + 0.5
        gain = cp * np.log((cp / len(pos)) / (cn / len(neg)))
        w = int(gain.argmax())
        if gain[w] > best[0]:
            best = (float(gain[w]), off, w)
    _, off, w = best
    word = [(w // 4 ** j) % 4 for j in range(k)]
    return off, word


def initial_pwm(pos, off, word):
    keep = (pos[:, off:off + len(word)] == word).all(axis=1)
    freq = onehot(pos[keep]).mean(axis=0) + 0.05
    freq /= freq.sum(axis=1, keepdims=True)
    return np.log2(freq / 0.25), keep


def objective(pwm, bias, pos1h, neg1h):
    """Mean log likelihood of the site labels under a logistic model of the PWM score."""
    sp = np.tensordot(pos1h, pwm, ([1, 2], [0, 1])) - bias
    sn = np.tensordot(neg1h, pwm, ([1, 2], [0, 1])) - bias
    ll = -np.logaddexp(0, -sp).mean() - np.logaddexp(0, sn).mean()
    return float(ll - 0.002 * np.abs(pwm).sum())


def refine(pwm, pos1h, neg1h, args, rng):
    """Local search on the weights: keep a perturbation if the objective is better."""
    scores = np.tensordot(pos1h, pwm, ([1, 2], [0, 1]))
    bias = float(np.median(scores)) * 0.6
    best = objective(pwm, bias, pos1h, neg1h)
    evaluations = 1
    started = time.monotonic()
    while time.monotonic() - started < args.refine_seconds:  # cause
        cand = pwm.copy()
        row = int(rng.integers(len(pwm)))
        cand[row] += rng.normal(0, args.step, 4)
        new_bias = bias + float(rng.normal(0, args.step))
        value = objective(cand, new_bias, pos1h, neg1h)
        evaluations += 1
        if value > best:
            pwm, bias, best = cand, new_bias, value
    return pwm, bias, best, evaluations


def consensus(pwm):
    out = []
    for row in pwm:
        p = 2.0 ** row
        p /= p.sum()
        info = 2 + float(np.sum(p * np.log2(p + 1e-12)))
        if info < 0.55:
            out.append("N")
        else:
            out.append(BASES[int(p.argmax())])
    text = "".join(out)
    stripped = text.strip("N")
    return stripped or "N", text.find(stripped) if stripped else 0


def call_motifs(pos, neg, args, rng):
    motifs = []
    neg1h = onehot(neg)
    remaining = pos
    while len(motifs) < args.max_motifs and len(remaining) >= args.min_sites:
        off, word = enriched_seed(remaining, neg, args.seed_length)
        pwm, keep = initial_pwm(remaining, off, word)
        if keep.sum() < args.min_sites:
            break
        pwm, bias, score, n_eval = refine(pwm, onehot(remaining[keep]), neg1h, args, rng)
        hits = np.tensordot(onehot(remaining), pwm, ([1, 2], [0, 1])) > bias
        hits |= keep
        name, at = consensus(pwm)
        motifs.append(Motif(name, at - args.flank, pwm, score, int(hits.sum()), n_eval))
        log.info("seed %s at %d -> %s, objective %.5f, %d sites", "".join(BASES[b] for b in word),
                 off - args.flank, name, score, hits.sum())
        remaining = remaining[~hits]
    return motifs, len(remaining)


def reverse_complement(text):
    return "".join(COMPLEMENT.get(c, c) for c in reversed(text))


def write_tables(motifs, prefix):
    with open(f"{prefix}_motifs.tsv", "w", newline="") as fh:
        w = csv.writer(fh, delimiter="\t")
        w.writerow(["motif", "reverse_complement", "offset", "sites", "objective", "bits"])
        for m in motifs:
            p = 2.0 ** m.pwm
            p /= p.sum(axis=1, keepdims=True)
            bits = float((2 + (p * np.log2(p)).sum(axis=1)).sum())
            w.writerow([m.consensus, reverse_complement(m.consensus), m.offset, m.sites,
                        f"{m.score:.6f}", f"{bits:.4f}"])
    with open(f"{prefix}_pwm.json", "w") as fh:
        json.dump([m.pwm.round(5).tolist() for m in motifs], fh)


def main():
    args = get_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    rng = np.random.default_rng(args.seed)
    genome = make_genome(args.genome_length, rng)
    pos, neg = call_sites(genome, args.flank, rng)
    log.info("%d methylated sites, %d background sites", len(pos), len(neg))

    motifs, left = call_motifs(pos, neg, args, rng)
    write_tables(motifs, args.prefix)
    for m in motifs:
        print(f"{m.consensus:12s} offset {m.offset:+d} sites {m.sites:5d} objective {m.score:.5f}")
    explained = 1 - left / len(pos)
    print(f"{len(motifs)} motifs explain {100 * explained:.2f} % of {len(pos)} sites")
    total = math.fsum(m.score for m in motifs)
    print(f"sum of objectives {total:.6f}")


if __name__ == "__main__":
    main()
