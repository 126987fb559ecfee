"""Modelled on https://exchangetuts.com/changes-of-clustering-results-after-each-time-run-in-python-scikit-learn-1639886469089244
Clusters short support tickets and describes the groups by their typical terms.
"""
import argparse
import json
import logging
import random
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_score

logger = logging.getLogger("tickets")

TOPICS = {
    "billing": "invoice charge refund card payment amount billed twice statement tax receipt bank".split(),
    "login": "password reset login account locked code email verify browser session expired link".split(),
    "delivery": "parcel courier tracking late address delivered missing depot driver box damaged".split(),
    "app": "crash update phone screen freeze button version install slow loading battery".split(),
    "returns": "return label refund exchange size wrong item box courier receipt store".split(),
    "subscription": "plan cancel renew trial upgrade monthly charge discount account payment email".split(),
}
FILLER = "please help with my the since yesterday still not working again when trying today need asap hello".split()


@dataclass
class Options:
    n_tickets: int = 360
    k: int = 6
    neighbors: int = 5
    svd_dim: int = 20
    seed: int = 31
    out: str = "clusters.json"


def make_tickets(opts):
    rnd = random.Random(opts.seed)
    names = list(TOPICS)
    tickets, truth = [], []
    for i in range(opts.n_tickets):
        topic = names[i % len(names)]
        other = rnd.choice(names)
        words = rnd.choices(TOPICS[topic], k=rnd.randint(3, 6))
        words += rnd.choices(TOPICS[other], k=rnd.randint(0, 3))
        words += rnd.choices(FILLER, k=rnd.randint(4, 9))
        rnd.shuffle(words)
        tickets.append(" ".join(words).capitalize() + rnd.choice([".", "!", "?"]))
        truth.append(topic)
    return tickets, truth


def tokenize(text):
    return [t for t in re.findall(r"[a-z]+", text.lower()) if len(t) > 2]


def vectorize(tickets):
    vec = TfidfVectorizer(
        norm="l2",
        sublinear_tf=True,
        tokenizer=tokenize,
        token_pattern=None,
        stop_words=FILLER,
        ngram_range=(1, 2),
        min_df=2,
    )
    matrix = vec.fit_transform(tickets)
    return matrix, np.array(vec.get_feature_names_out())


def cluster_kmeans(dense, opts):
    model = KMeans(n_clusters=opts.k, init="k-means++", max_iter=100, n_init=3, random_state=opts.seed)
    return model.fit_predict(dense)


def cluster_spectral(matrix, opts):
    model = SpectralClustering(  # cause
        n_clusters=opts.k,
        eigen_solver="arpack",
        affinity="nearest_neighbors",
        n_neighbors=opts.neighbors,
        assign_labels="discretize",
    )
    return model.fit_predict(matrix)  # cause


def describe(matrix, labels, terms, top=5):
    rows = []
    for c in sorted(set(labels.tolist())):
        members = np.flatnonzero(labels == c)
        weight = np.asarray(matrix[members].mean(axis=0)).ravel()
        best = np.argsort(-weight, kind="stable")[:top]
        rows.append({"cluster": int(c), "size": int(len(members)), "terms": terms[best].tolist()})
    return rows


def purity(labels, truth):
    hit = 0
    for c in set(labels.tolist()):
        hit += Counter(t for t, l in zip(truth, labels) if l == c).most_common(1)[0][1]
    return hit / len(truth)


def scores(dense, labels, truth):
    return {
        "purity": round(purity(labels, truth), 5),
        "nmi": round(float(normalized_mutual_info_score(truth, labels)), 5),
        "ari": round(float(adjusted_rand_score(truth, labels)), 5),
        "silhouette": round(float(silhouette_score(dense, labels)), 5),
    }


def route(labels, names):
    """Queue for each cluster, in the order in which the clusters are numbered."""
    queues = ["tier1-a", "tier1-b", "tier1-c", "tier2-a", "tier2-b", "tier2-c"]
    load = Counter()
    for label in labels:
        load[queues[int(label) % len(queues)]] += 1
    return dict(sorted(load.items()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--k", type=int, default=Options.k)
    parser.add_argument("--tickets", type=int, default=Options.n_tickets)
    args = parser.parse_args()
    opts = Options(k=args.k, n_tickets=args.tickets)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")

    tickets, truth = make_tickets(opts)
    Path("tickets.txt").write_text("\n".join(tickets))
    matrix, terms = vectorize(tickets)
    logger.info("matrix %s, %d terms", matrix.shape, len(terms))
    dense = TruncatedSVD(opts.svd_dim, random_state=opts.seed).fit_transform(matrix)

    result = {}
    for name, labels in (
        ("kmeans", cluster_kmeans(dense, opts)),
        ("spectral", cluster_spectral(matrix, opts)),
    ):
        sc = scores(dense, labels, truth)
        groups = describe(matrix, labels, terms)
        print(f"== {name} ==", " ".join(f"{k}={v}" for k, v in sc.items()))
        for g in groups:
            print(f"  #{g['cluster']} size={g['size']:3d} {', '.join(g['terms'])}")
        load = route(labels, list(TOPICS))
        print("  queue load", load)
        result[name] = {"scores": sc, "groups": groups, "load": load, "labels": labels.tolist()}

    Path(opts.out).write_text(json.dumps(result, indent=1))
    logger.info("wrote %s", opts.out)


if __name__ == "__main__":
    main()
