"""Causal relation extraction from a directory of policy reports.

Every document is segmented, mentions of concepts are grounded to a canonical
entity that is shared over the corpus, and cause-effect pairs are counted into
one graph. Documents are handled by several workers.

Modelled on: https://github.com/clulab/eidos/pull/211
"""
import argparse
import json
import logging
import time
from pathlib import Path

from x07_pkg.corpus import write_corpus
from x07_pkg.graph import CausalGraph
from x07_pkg.grounding import EntityStore
from x07_pkg.runner import extract_directory


def parse_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--docs", type=Path, default=Path("docs"))
    ap.add_argument("--n-docs", type=int, default=140)
    ap.add_argument("--workers", type=int, default=4)
    ap.add_argument("--seed", type=int, default=211)
    return ap.parse_args()


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(message)s")
    t0 = time.time()
    paths = write_corpus(args.docs, args.n_docs, args.seed)
    logging.info("%d documents in %s", len(paths), args.docs)

    store = EntityStore(threshold=0.68)
    graph = CausalGraph()
    extract_directory(paths, store, graph, args.workers)

    ranked = graph.ranked()
    with open("relations.jsonl", "w") as fh:
        for row in ranked:
            fh.write(json.dumps(row) + "\n")
    with open("entities.json", "w") as fh:
        json.dump(store.as_rows(), fh, indent=0)
    stats = graph.stats(store)
    with open("stats.json", "w") as fh:
        json.dump(stats, fh, indent=1, sort_keys=True)
    for row in ranked[:8]:
        print(f"{row['cause']} -> {row['effect']}: {row['count']}")
    print("entities {entities} edges {edges} mentions {mentions} "
          "density {density:.6f}".format(**stats))
    logging.info("took %.2f s", time.time() - t0)


if __name__ == "__main__":
    main()
