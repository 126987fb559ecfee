"""Filtered rank-based evaluation of tail prediction."""
import numpy as np


def rank_based(net, triples, known):
    scores = net.score_tails(triples[:, 0], triples[:, 1])
    ranks = []
    for row, (h, r, t) in zip(scores, triples.tolist()):
        true = row[t]
        others = [e for e in range(len(row)) if e != t and (h, r, e) in known]
        row = row.copy()
        row[others] = -np.inf
        ranks.append(1 + int((row > true).sum()) + 0.5 * (int((row == true).sum()) - 1))
    ranks = np.array(ranks, dtype=float)
    return {"mrr": float(np.mean(1 / ranks)), "mean_rank": float(ranks.mean()),
            "hits_at_10": float(np.mean(ranks <= 10))}
