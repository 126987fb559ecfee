"""Clustering of short texts with a Dirichlet multinomial mixture.

Modelled on https://github.com/centre-for-humanities-computing/tweetopic/issues/21 (model fitting was not reproducible).
"""
import argparse
import json
import logging
import random
import time

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from g08_topics.dmm import DMM

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("topics")


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)


def make_tweets(n, true_topics, vocab, seed, mean_len=7):
    """Ragged corpus: flat word ids and document offsets."""
    rng = np.random.default_rng(seed)
    topic_word = rng.dirichlet(np.full(vocab, 0.08), true_topics)
    background = rng.dirichlet(np.full(vocab, 0.5))
    topic_word = 0.65 * topic_word + 0.35 * background
    labels = rng.choice(true_topics, n, p=rng.dirichlet(np.full(true_topics, 4.0)))
    lengths = np.maximum(2, rng.poisson(mean_len, n))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    words = np.empty(offsets[-1], np.int64)
    for d in range(n):
        words[offsets[d]:offsets[d + 1]] = rng.choice(vocab, lengths[d], p=topic_word[labels[d]])
    return words, offsets, labels


def perplexity(model, words, offsets, labels):
    phi = model.topics()
    owner = np.repeat(labels, np.diff(offsets))
    return float(np.exp(-np.log(phi[owner, words]).mean()))


def coherence(model, words, offsets, top=6):
    """UMass-like coherence of the most probable words per non-empty cluster."""
    docs = [set(words[a:b].tolist()) for a, b in zip(offsets[:-1], offsets[1:])]
    scores = []
    for k in np.flatnonzero(model.counts_.sum(1) > 50):
        best = np.argsort(-model.counts_[k], kind="stable")[:top].tolist()
        for i in range(1, top):
            for j in range(i):
                both = sum(best[i] in d and best[j] in d for d in docs)
                single = sum(best[j] in d for d in docs)
                scores.append(np.log((both + 1) / max(single, 1)))
    return float(np.mean(scores))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=1234)
    p.add_argument("--docs", type=int, default=2500)
    p.add_argument("--vocab", type=int, default=900)
    p.add_argument("--topics", type=int, default=12)
    p.add_argument("--components", type=int, default=25)
    p.add_argument("--iters", type=int, default=25)
    p.add_argument("--out", default="dmm.npz")
    args = p.parse_args()
    set_seed(args.seed)
    words, offsets, truth = make_tweets(args.docs, args.topics, args.vocab, args.seed)
    log.info("%d documents, %d tokens", args.docs, len(words))
    t0 = time.time()

    def progress(it, moved, used):
        if it % 5 == 4:
            log.info("iter %d moved %d clusters %d (%.0f docs/s)", it + 1, moved, used,
                     args.docs * (it + 1) / (time.time() - t0))

    model = DMM(args.components, n_iter=args.iters, random_state=args.seed)
    model.fit(words, offsets, args.vocab, progress)
    report = {
        "clusters": int(len(np.unique(model.labels_))),
        "ari": float(adjusted_rand_score(truth, model.labels_)),
        "nmi": float(normalized_mutual_info_score(truth, model.labels_)),
        "perplexity": perplexity(model, words, offsets, model.labels_),
        "coherence": coherence(model, words, offsets),
    }
    np.savez_compressed(args.out, labels=model.labels_, topics=model.topics())
    with open("report.json", "w") as f:
        json.dump({**report, "fit_sec": time.time() - t0}, f, indent=1)
    print(" ".join(f"{k}={v:.8g}" for k, v in report.items()))


if __name__ == "__main__":
    main()
