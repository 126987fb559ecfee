"""Repertoire analysis of one sequenced immune library.

Reads are simulated from a small germline database (the lab's positive
control), groups of reads assigned to the same V gene are collapsed to a
consensus, and candidate new alleles are reported with their support.

Modelled on: https://github.com/NBISweden/IgDiscover-legacy/issues/9
"""
import argparse
import json
import logging
import time
from pathlib import Path

from x01_pkg.assign import assign_reads
from x01_pkg.candidates import discover_candidates, write_table
from x01_pkg.library import make_database, simulate_library
from x01_pkg.report import summarise

log = logging.getLogger("repertoire")


def parse_args():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--seed", type=int, default=2016)
    ap.add_argument("--reads", type=int, default=90000)
    ap.add_argument("--subsample", type=int, default=250,
                    help="reads per gene used for the consensus")
    ap.add_argument("--iterations", type=int, default=2)
    ap.add_argument("--out", type=Path, default=Path("igresults"))
    return ap.parse_args()


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(message)s")
    args.out.mkdir(exist_ok=True)
    t0 = time.time()

    database, truth = make_database(args.seed, n_genes=12, length=96)
    reads = simulate_library(truth, args.reads, args.seed + 1)
    log.info("%d reads, %d genes in the database", len(reads), len(database))

    history = []
    for iteration in range(1, args.iterations + 1):
        assignments = assign_reads(reads, database)
        candidates = discover_candidates(
            reads, assignments, database, limit=args.subsample)
        write_table(args.out / f"candidates-{iteration:02d}.tsv", candidates)
        added = 0
        for cand in candidates:
            if cand.accepted and cand.sequence not in database.values():
                database[cand.name] = cand.sequence
                added += 1
        history.append(summarise(iteration, assignments, candidates, added))
        log.info("iteration %d: %d candidates, %d added",
                 iteration, len(candidates), added)

    recovered = sum(1 for s in truth.values() if s in set(database.values()))
    result = {"iterations": history, "database_size": len(database),
              "recovered": recovered, "truth_size": len(truth)}
    (args.out / "summary.json").write_text(json.dumps(result, indent=1))
    for row in history:
        print("iteration {iteration}: assigned={assigned} mean_errors={mean_errors:.4f} "
              "added={added} support={support:.4f}".format(**row))
    print(f"database {len(database)} recovered {recovered}/{len(truth)}")
    log.info("done, took %.1f s", time.time() - t0)


if __name__ == "__main__":
    main()
