"""Ranking metrics on held-out plays."""
import numpy as np


def rank_metrics(model, train, test, k):
    precision, average, loglik, users = 0.0, 0.0, 0.0, 0
    for user in range(train.shape[0]):
        held_out = set(test[user].indices.tolist())
        if not held_out:
            continue
        users += 1
        top, _ = model.recommend(user, train, k)
        hits = np.array([int(item) in held_out for item in top])
        precision += hits.sum() / k
        if hits.any():
            at = np.cumsum(hits) / np.arange(1, k + 1)
            average += float((at * hits).sum() / min(len(held_out), k))
        scores = model.score_all(user)[test[user].indices]
        loglik += float(-np.log1p(np.exp(-scores)).mean())
    return {"precision": precision / users, "map": average / users, "loglik": loglik / users}


def similar_items(model, item, n):
    factors = model.item_factors[:, :-2]
    norms = np.linalg.norm(factors, axis=1) + 1e-12
    scores = factors @ factors[item] / (norms * norms[item])
    order = [i for i in np.argsort(-scores, kind="stable") if i != item][:n]
    return order, scores[order]
