"""Filter and subsample a viral genome collection for a phylogenetic build.

Reads metadata and sequences, drops records that fail the length / date / host
filters, keeps at most N sequences per region and month and writes the strains,
the filtered metadata and the alignment summary used by the tree step.

Modelled on: https://github.com/nextstrain/augur/issues/387
"""
import argparse
import csv
import json
import logging
import random
import time
from collections import Counter, defaultdict
from datetime import date, timedelta

import numpy as np

logging.basicConfig(level=logging.INFO, format="%(asctime)s [filter] %(message)s")
log = logging.getLogger("filter")

REGIONS = ("africa", "asia", "europe", "north-america", "oceania", "south-america")
HOSTS = ("human", "human", "human", "human", "avian", "swine")
SEED = 5


# --------------------------------------------------------------------------
# a collection to work on
# --------------------------------------------------------------------------
def simulate_collection(n, length, seed):
    """Sequences evolve along a random genealogy; metadata follows the tips."""
    rng = np.random.default_rng(seed)
    bases = np.array(list("ACGT"))
    pool = [rng.integers(0, 4, length)]
    records, seqs = [], {}
    start = date(2021, 1, 4)
    for i in range(n):
        seq = pool[rng.integers(max(0, len(pool) - 60), len(pool))].copy()
        hits = rng.integers(0, length, rng.poisson(1.6))
        seq[hits] = rng.integers(0, 4, len(hits))
        pool.append(seq)
        text = bases[seq]
        gaps = rng.random() < 0.08
        if gaps:
            cut = rng.integers(length // 3, length)
            text = np.concatenate([text[:cut], np.full(length - cut, "N")])
        region = REGIONS[min(int(rng.exponential(1.6)), 5)]
        day = start + timedelta(days=int(i * 700 / n) + int(rng.integers(0, 30)))
        strain = f"{region[:2].upper()}/{i:05d}/{day.year}"
        amb = rng.random() < 0.05
        records.append({"strain": strain, "region": region, "host": HOSTS[rng.integers(len(HOSTS))],
                        "date": f"{day.year}-XX-XX" if amb else day.isoformat(),
                        "clade": f"{len(pool) // 400 + 1}{'ABC'[rng.integers(3)]}"})
        seqs[strain] = "".join(text)
    return records, seqs


def write_inputs(records, seqs):
    with open("metadata.tsv", "w", newline="") as fh:
        w = csv.DictWriter(fh, list(records[0]), delimiter="\t")
        w.writeheader()
        w.writerows(records)
    with open("sequences.fasta", "w") as fh:
        for name, s in seqs.items():
            fh.write(f">{name}\n{s}\n")


def read_metadata(path):
    with open(path, newline="") as fh:
        return {r["strain"]: r for r in csv.DictReader(fh, delimiter="\t")}


def read_fasta(path):
    out, name = {}, None
    with open(path) as fh:
        for line in fh:
            line = line.rstrip()
            if line.startswith(">"):
                name = line[1:]
                out[name] = []
            else:
                out[name].append(line)
    return {k: "".join(v) for k, v in out.items()}


# --------------------------------------------------------------------------
# filters
# --------------------------------------------------------------------------
def informative_length(seq):
    return sum(seq.count(b) for b in "ACGT")


def apply_filters(meta, seqs, min_length, host, exclude_ambiguous):
    kept, dropped = [], Counter()
    for strain in meta:
        row = meta[strain]
        if strain not in seqs:
            dropped["no_sequence"] += 1
        elif informative_length(seqs[strain]) < min_length:
            dropped["short"] += 1
        elif host and row["host"] != host:
            dropped["host"] += 1
        elif exclude_ambiguous and "X" in row["date"]:
            dropped["ambiguous_date"] += 1
        else:
            kept.append(strain)
    return kept, dropped


def group_key(row, group_by):
    key = []
    for g in group_by:
        if g == "year":
            key.append(row["date"][:4])
        elif g == "month":
            key.append(row["date"][:7])
        else:
            key.append(row[g])
    return tuple(key)


def read_priorities(strains, meta):
    """Give recent clades a head start; everything else counts the same."""
    return {s: 1.0 if int(meta[s]["clade"][:-1]) >= 4 else 0.0 for s in strains}


def subsample(kept, meta, group_by, per_group, priorities=None):
    groups = defaultdict(list)
    for strain in kept:
        groups[group_key(meta[strain], group_by)].append(strain)
    chosen = []
    for key in sorted(groups):
        members = groups[key]
        if len(members) <= per_group:
            chosen.extend(members)
        else:
            picked = random.sample(members, per_group)  # cause
            if priorities:
                picked.sort(key=lambda s: -priorities[s])
            chosen.extend(picked)
    return chosen, {k: len(v) for k, v in groups.items()}


# --------------------------------------------------------------------------
# summaries
# --------------------------------------------------------------------------
def encode(seqs, strains):
    table = np.full(256, 4, dtype=np.int8)
    for i, b in enumerate(b"ACGT"):
        table[b] = i
    return np.stack([table[np.frombuffer(seqs[s].encode(), dtype=np.uint8)] for s in strains])


def pairwise_distance(mat):
    n = len(mat)
    valid = mat < 4
    dist = np.zeros((n, n))
    for i in range(n):
        both = valid[i] & valid
        diff = ((mat[i] != mat) & both).sum(axis=1)
        dist[i] = diff / np.maximum(both.sum(axis=1), 1)
    return dist


def diversity(mat):
    freq = np.stack([(mat == b).mean(axis=0) for b in range(4)])
    with np.errstate(divide="ignore", invalid="ignore"):
        h = -np.nansum(np.where(freq > 0, freq * np.log(freq), 0), axis=0)
    return float(h.mean()), int((freq.max(axis=0) < 0.99).sum())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--min-length", type=int, default=1800)
    ap.add_argument("--per-group", type=int, default=6)
    args = ap.parse_args()
    t0 = time.perf_counter()
    write_inputs(*simulate_collection(5000, 2400, SEED))
    meta, seqs = read_metadata("metadata.tsv"), read_fasta("sequences.fasta")
    kept, dropped = apply_filters(meta, seqs, args.min_length, "human", True)
    log.info("%d of %d pass (%s)", len(kept), len(meta), dict(dropped))
    pri = read_priorities(kept, meta)
    chosen, sizes = subsample(kept, meta, ("region", "month"), args.per_group, pri)
    log.info("%d groups, %d strains kept", len(sizes), len(chosen))
    mat = encode(seqs, chosen)
    dist = pairwise_distance(mat)
    ent, variable = diversity(mat)
    with open("strains.txt", "w") as fh:
        fh.write("\n".join(chosen) + "\n")
    with open("filtered.tsv", "w", newline="") as fh:
        w = csv.DictWriter(fh, list(meta[chosen[0]]), delimiter="\t")
        w.writeheader()
        w.writerows(meta[s] for s in chosen)
    iu = np.triu_indices(len(chosen), 1)
    summary = {"strains": len(chosen), "dropped": dict(dropped), "mean_distance": float(dist[iu].mean()),
               "max_distance": float(dist.max()), "entropy": ent, "variable_sites": variable,
               "clades": dict(sorted(Counter(meta[s]["clade"] for s in chosen).items()))}
    with open("summary.json", "w") as fh:
        json.dump(summary, fh, indent=1)
    print(json.dumps(summary, indent=1))
    log.info("done in %.2f s", time.perf_counter() - t0)


if __name__ == "__main__":
    main()
