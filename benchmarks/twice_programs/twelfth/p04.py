"""Score semantic graph parsers against gold graphs, with confidence intervals.

Modelled on https://github.com/flipz357/smatchpp/issues/7
Two systems are scored by triple matching and compared by a table of F1 scores with intervals.
"""
import argparse
import json
import logging
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("score")

CONCEPTS = ["want-01", "go-02", "boy", "girl", "city", "say-01", "believe-01", "person",
            "house", "read-01", "book", "run-02", "teach-01", "school", "dog", "see-01"]
ROLES = [":ARG0", ":ARG1", ":ARG2", ":location", ":time", ":mod", ":poss"]


@dataclass
class ScoreConfig:
    seed: int = 5
    n_graphs: int = 160
    resamples: int = 600
    level: float = 0.95
    out_dir: str = "scores"


def random_graph(rng):
    size = int(rng.integers(4, 12))
    nodes = {f"x{i}": CONCEPTS[int(rng.integers(len(CONCEPTS)))] for i in range(size)}
    edges = []
    for i in range(1, size):
        edges.append((f"x{int(rng.integers(i))}", ROLES[int(rng.integers(len(ROLES)))], f"x{i}"))
    return {"nodes": nodes, "edges": edges}


def parser_output(gold, error_rate, rng):
    nodes = {v: (CONCEPTS[int(rng.integers(len(CONCEPTS)))] if rng.random() < error_rate else c)
             for v, c in gold["nodes"].items()}
    edges = []
    for s, r, t in gold["edges"]:
        u = rng.random()
        if u < error_rate * 0.5:
            continue
        if u < error_rate:
            r = ROLES[int(rng.integers(len(ROLES)))]
        edges.append((s, r, t))
    return {"nodes": nodes, "edges": edges}


def to_penman(graph, var="x0", indent=0):
    text = f"({var} / {graph['nodes'][var]}"
    for s, r, t in graph["edges"]:
        if s == var:
            text += "\n" + " " * (indent + 4) + f"{r} " + to_penman(graph, t, indent + 4)
    return text + ")"


def triples(graph):
    """Lexicalised triples: instances, and relations between concept names."""
    nodes = graph["nodes"]
    bag = Counter((":instance", c, "") for c in nodes.values())
    bag.update((r, nodes[s], nodes[t]) for s, r, t in graph["edges"])
    return bag


def match_counts(pred, gold):
    p, g = triples(pred), triples(gold)
    return np.array([sum((p & g).values()), sum(p.values()), sum(g.values())], dtype=float)


def f1(match, n_pred, n_gold, axis=-1):
    m = np.sum(match, axis=axis)
    p = m / np.sum(n_pred, axis=axis)
    r = m / np.sum(n_gold, axis=axis)
    return 2 * p * r / (p + r)


class Corpus:
    def __init__(self, cfg):
        rng = np.random.default_rng(cfg.seed)
        self.gold = [random_graph(rng) for _ in range(cfg.n_graphs)]
        self.systems = {
            "baseline": [parser_output(g, 0.35, rng) for g in self.gold],
            "transition": [parser_output(g, 0.27, rng) for g in self.gold],
            "seq2seq": [parser_output(g, 0.22, rng) for g in self.gold],
        }

    def dump(self, out):
        (out / "gold.txt").write_text("\n\n".join(to_penman(g) for g in self.gold) + "\n")


def score_system(name, predictions, gold, cfg):
    counts = np.stack([match_counts(p, g) for p, g in zip(predictions, gold)])
    data = tuple(counts.T)
    point = f1(*data)
    res = stats.bootstrap(data, f1, paired=True, n_resamples=cfg.resamples, vectorized=True,  # cause
                          confidence_level=cfg.level, method="percentile")
    low, high = res.confidence_interval
    log.info("%s scored on %d graphs", name, len(gold))
    return {
        "system": name,
        "precision": round(100 * counts[:, 0].sum() / counts[:, 1].sum(), 2),
        "recall": round(100 * counts[:, 0].sum() / counts[:, 2].sum(), 2),
        "f1": round(100 * float(point), 2),
        "ci": [round(100 * float(low), 3), round(100 * float(high), 3)],
        "stderr": round(100 * float(res.standard_error), 4),
    }


def fine_grained(predictions, gold):
    """F1 by relation label, pooled over the corpus."""
    table = {}
    for p, g in zip(predictions, gold):
        tp, tg = triples(p), triples(g)
        for key, n in (tp & tg).items():
            table.setdefault(key[0], [0, 0, 0])[0] += n
        for key, n in tp.items():
            table.setdefault(key[0], [0, 0, 0])[1] += n
        for key, n in tg.items():
            table.setdefault(key[0], [0, 0, 0])[2] += n
    return {k: round(200 * m / (a + b), 2) for k, (m, a, b) in sorted(table.items())}


def overlap_verdict(rows):
    lines = []
    ranked = sorted(rows, key=lambda r: -r["f1"])
    for better, worse in zip(ranked, ranked[1:]):
        margin = better["ci"][0] - worse["ci"][1]
        verdict = "separated" if margin > 0 else "overlapping"
        lines.append(f"{better['system']} vs {worse['system']}: {verdict} ({margin:+.3f})")
    return lines


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--graphs", type=int, default=ScoreConfig.n_graphs)
    ap.add_argument("--resamples", type=int, default=ScoreConfig.resamples)
    args = ap.parse_args()
    cfg = ScoreConfig(n_graphs=args.graphs, resamples=args.resamples)
    out = Path(cfg.out_dir)
    out.mkdir(exist_ok=True)
    corpus = Corpus(cfg)
    corpus.dump(out)
    rows = []
    for name, predictions in corpus.systems.items():
        row = score_system(name, predictions, corpus.gold, cfg)
        row["by_label"] = fine_grained(predictions, corpus.gold)
        rows.append(row)
    (out / "report.json").write_text(json.dumps(rows, indent=1))
    for r in rows:
        print(f"{r['system']:11s} P={r['precision']:.2f} R={r['recall']:.2f} F1={r['f1']:.2f} "
              f"[{r['ci'][0]:.3f}, {r['ci'][1]:.3f}]")
    print("\n".join(overlap_verdict(rows)))


if __name__ == "__main__":
    main()
