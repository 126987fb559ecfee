"""Modelled on https://github.com/roamanalytics/mittens/pull/24
Learns word vectors from a small recipe corpus and evaluates them on word similarity and a downstream classifier.
"""
import argparse
import json
import logging
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from m23_glove import Glove, Vocabulary, cooccurrence

log = logging.getLogger("vectors")

GROUPS = {
    "fruit": "apple pear cherry plum lemon orange grape peach mango berry".split(),
    "herb": "basil thyme mint dill parsley sage oregano chive rosemary bay".split(),
    "meat": "beef pork lamb chicken turkey duck bacon ham veal sausage".split(),
    "dairy": "milk butter cream cheese yogurt curd whey custard ghee kefir".split(),
    "grain": "rice wheat oats barley rye pasta couscous bulgur millet bread".split(),
}
VERBS = {
    "fruit": "peel slice squeeze poach".split(),
    "herb": "chop sprinkle pluck infuse".split(),
    "meat": "roast sear braise grill".split(),
    "dairy": "whip melt stir warm".split(),
    "grain": "boil soak steam toast".split(),
}
COMMON = "the then and with gently until add some for minutes pan bowl serve".split()


@dataclass
class Config:
    seed: int = 2023
    n_sentences: int = 900
    dim: int = 12
    window: int = 4
    iterations: int = 120
    min_count: int = 2


def make_corpus(cfg):
    rnd = random.Random(cfg.seed)
    names = list(GROUPS)
    sentences = []
    for _ in range(cfg.n_sentences):
        main = rnd.choice(names)
        side = rnd.choice(names) if rnd.random() < 0.45 else main
        words = [rnd.choice(VERBS[main]), "the", rnd.choice(GROUPS[main])]
        words += rnd.choices(COMMON, k=rnd.randint(1, 4))
        words += [rnd.choice(VERBS[side]), rnd.choice(GROUPS[side]), rnd.choice(GROUPS[main])]
        words += rnd.choices(COMMON, k=rnd.randint(0, 3))
        sentences.append(words)
    return sentences


def similarity_pairs(vocab, cfg, n=120):
    """Word pairs with a graded judgement: same group, related verb or unrelated."""
    rnd = random.Random(cfg.seed + 1)
    words = [(w, g) for g, ws in GROUPS.items() for w in ws if w in vocab.index]
    pairs = []
    for _ in range(n):
        (a, ga), (b, gb) = rnd.sample(words, 2)
        judged = (3.0 if ga == gb else 1.0) + rnd.gauss(0, 0.4)
        pairs.append((a, b, round(judged, 2)))
    return pairs


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def neighbours(vectors, vocab, word, k=5):
    u = unit(vectors)
    sims = u @ u[vocab.index[word]]
    order = np.argsort(-sims, kind="stable")
    return [(vocab.words[i], round(float(sims[i]), 4)) for i in order if vocab.words[i] != word][:k]


def evaluate_similarity(vectors, vocab, pairs):
    u = unit(vectors)
    predicted = [float(u[vocab.index[a]] @ u[vocab.index[b]]) for a, b, _ in pairs]
    return float(spearmanr(predicted, [j for _, _, j in pairs]).statistic)


def evaluate_groups(vectors, vocab):
    x, y = [], []
    for g, ws in GROUPS.items():
        for w in ws:
            if w in vocab.index:
                x.append(vectors[vocab.index[w]])
                y.append(g)
    clf = LogisticRegression(max_iter=2000, C=10.0, random_state=0)
    return float(cross_val_score(clf, np.array(x), np.array(y), cv=5).mean())


def save_vectors(path, vectors, vocab):
    with open(path, "w") as f:
        for w, v in zip(vocab.words, vectors):
            f.write(w + " " + " ".join(f"{x:.6f}" for x in v) + "\n")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dim", type=int, default=Config.dim)
    ap.add_argument("--iterations", type=int, default=Config.iterations)
    args = ap.parse_args()
    cfg = Config(dim=args.dim, iterations=args.iterations)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)

    sentences = make_corpus(cfg)
    Path("corpus.txt").write_text("\n".join(" ".join(s) for s in sentences))
    vocab = Vocabulary(sentences, cfg.min_count)
    matrix = cooccurrence(sentences, vocab, cfg.window)
    print(f"{len(sentences)} sentences, {len(vocab)} words, {int((matrix > 0).sum())} non-zero counts")

    model = Glove(n=cfg.dim, max_iter=cfg.iterations)
    vectors = model.fit(matrix)
    print(f"final error {model.errors[-1]:.5f} after {len(model.errors)} iterations")
    rho = evaluate_similarity(vectors, vocab, similarity_pairs(vocab, cfg))
    acc = evaluate_groups(vectors, vocab)
    print(f"similarity rho {rho:.5f}, group accuracy {acc:.5f}")
    for word in ("apple", "basil", "beef", "milk", "rice"):
        near = ", ".join(f"{w} {s:.3f}" for w, s in neighbours(vectors, vocab, word))
        print(f"  {word:<6} {near}")
    save_vectors("vectors.txt", vectors, vocab)
    Path("scores.json").write_text(json.dumps({"error": model.errors[-1], "rho": rho, "accuracy": acc}))


if __name__ == "__main__":
    main()
