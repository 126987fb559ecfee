"""Latent semantic index over a corpus of support tickets.

Builds a TF-IDF matrix, takes a truncated SVD of it, saves the ticket vectors, and evaluates the
index: nearest neighbours, topic purity of the neighbours and a clustering of the vectors.

Modelled on: https://github.com/scipy/scipy/issues/7807
"""
import argparse
import json
import logging
import random
import time
from collections import Counter
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

log = logging.getLogger("lsi")

TOPICS = {
    "billing": "invoice refund charge card payment amount tax receipt currency discount".split(),
    "login": "password login reset token account locked email verify session twofactor".split(),
    "shipping": "parcel courier delivery address tracking delayed customs warehouse label returned".split(),
    "mobile": "android iphone crash update screen battery install version camera notification".split(),
    "api": "endpoint timeout request header schema webhook retry latency client payload".split(),
    "reports": "export chart csv dashboard filter column total average monthly widget".split(),
}
COMMON = "please help still cannot today problem again since customer team issue works".split()


def make_corpus(n_docs, rng):
    names = list(TOPICS)
    docs, labels = [], []
    for i in range(n_docs):
        topic = names[i % len(names)]
        other = rng.choice(names)
        words = rng.choices(TOPICS[topic], k=rng.randint(8, 16))
        words += rng.choices(TOPICS[other], k=rng.randint(0, 5))
        words += rng.choices(COMMON, k=rng.randint(4, 10))
        words += [f"ref{rng.randint(0, 400)}" for _ in range(2)]
        rng.shuffle(words)
        docs.append(" ".join(words))
        labels.append(topic)
    return docs, labels


class Vectorizer:
    def __init__(self, min_df=2):
        self.min_df = min_df
        self.vocab = {}
        self.idf = None

    def fit(self, docs):
        df = Counter()
        for doc in docs:
            df.update(list(dict.fromkeys(doc.split())))
        terms = sorted(t for t, n in df.items() if n >= self.min_df)
        self.vocab = {t: j for j, t in enumerate(terms)}
        counts = np.array([df[t] for t in terms], dtype=float)
        self.idf = np.log((1 + len(docs)) / (1 + counts)) + 1
        return self

    def transform(self, docs):
        rows, cols, vals = [], [], []
        for i, doc in enumerate(docs):
            for term, n in Counter(doc.split()).items():
                j = self.vocab.get(term)
                if j is not None:
                    rows.append(i)
                    cols.append(j)
                    vals.append((1 + np.log(n)) * self.idf[j])
        X = sparse.csr_matrix((vals, (rows, cols)), shape=(len(docs), len(self.vocab)))
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        return sparse.diags(1.0 / np.maximum(norms, 1e-12)) @ X


class LatentIndex:
    def __init__(self, n_components):
        self.n_components = n_components

    def fit(self, X):
        u, s, vt = svds(X, k=self.n_components)  # cause
        order = np.argsort(s)[::-1]
        self.singular_values = s[order]
        self.components = vt[order]
        self.vectors = u[:, order] * s[order]
        return self

    def project(self, X):
        return X @ self.components.T

    def neighbours(self, queries, k):
        a = queries / np.maximum(np.linalg.norm(queries, axis=1, keepdims=True), 1e-12)
        b = self.vectors / np.maximum(np.linalg.norm(self.vectors, axis=1, keepdims=True), 1e-12)
        return np.argsort(-(a @ b.T), axis=1, kind="stable")[:, :k]


def kmeans(V, k, seed, n_iter=25):
    rng = np.random.default_rng(seed)
    centers = V[rng.choice(len(V), k, replace=False)]
    for _ in range(n_iter):
        dist = ((V[:, None, :] - centers[None]) ** 2).sum(-1)
        assign = dist.argmin(1)
        centers = np.stack([V[assign == c].mean(0) if (assign == c).any() else centers[c] for c in range(k)])
    return assign, float(dist.min(1).sum())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--docs", type=int, default=1500)
    ap.add_argument("--components", type=int, default=24)
    ap.add_argument("--seed", type=int, default=7)
    ap.add_argument("--out", default="lsi")
    args = ap.parse_args()

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    random.seed(args.seed)
    np.random.seed(args.seed)
    out = Path(args.out)
    out.mkdir(exist_ok=True)

    docs, labels = make_corpus(args.docs, random.Random(args.seed))
    n_train = int(0.9 * len(docs))
    vec = Vectorizer().fit(docs[:n_train])
    X, Xq = vec.transform(docs[:n_train]), vec.transform(docs[n_train:])
    log.info("matrix %d x %d, %d entries", *X.shape, X.nnz)

    t0 = time.time()
    index = LatentIndex(args.components).fit(X)
    log.info("factorised in %.2fs", time.time() - t0)

    queries = index.project(Xq)
    nn = index.neighbours(queries, 10)
    purity = np.mean([[labels[j] == labels[n_train + i] for j in row] for i, row in enumerate(nn)])
    assign, inertia = kmeans(index.vectors, len(TOPICS), args.seed)

    np.savetxt(out / "vectors.csv", index.vectors, delimiter=",", fmt="%.6f")
    terms = list(vec.vocab)
    with open(out / "components.txt", "w") as f:
        for c in range(6):
            top = np.argsort(-index.components[c], kind="stable")[:8]
            f.write(f"{c}: " + " ".join(f"{terms[t]}({index.components[c, t]:+.3f})" for t in top) + "\n")
    report = {
        "docs": len(docs),
        "terms": len(terms),
        "singular_values": [round(float(v), 4) for v in index.singular_values],
        "purity@10": round(float(purity), 4),
        "kmeans_inertia": round(inertia, 4),
        "cluster_sizes": np.bincount(assign, minlength=len(TOPICS)).tolist(),
    }
    (out / "report.json").write_text(json.dumps(report, indent=2))
    print(f"purity@10 {purity:.4f}  inertia {inertia:.4f}")
    print((out / "components.txt").read_text(), end="")


if __name__ == "__main__":
    main()
