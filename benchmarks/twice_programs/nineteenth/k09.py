"""node2vec on a synthetic collaboration network: biased random walks, skip-gram
embeddings, and link prediction on held-out edges.

Modelled on: https://github.com/aditya-grover/node2vec/issues/62
"""
import argparse
import json
import random
import time

import networkx as nx
import numpy as np
from gensim.models import Word2Vec
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score


def parse_args():
    parser = argparse.ArgumentParser(description="Run node2vec.")
    parser.add_argument("--output", default="collab.emb")
    parser.add_argument("--dimensions", type=int, default=32)
    parser.add_argument("--walk-length", type=int, default=30)
    parser.add_argument("--num-walks", type=int, default=6)
    parser.add_argument("--window-size", type=int, default=5)
    parser.add_argument("--iter", default=2, type=int)
    parser.add_argument("--workers", type=int, default=4)  # cause
    parser.add_argument("--p", type=float, default=1.0)
    parser.add_argument("--q", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def make_graph(seed):
    """Communities of authors with a few links between them."""
    sizes = [40, 50, 30, 45, 35, 60, 40]
    probs = np.full((len(sizes), len(sizes)), 0.006)
    np.fill_diagonal(probs, 0.15)
    graph = nx.stochastic_block_model(sizes, probs.tolist(), seed=seed)
    graph = nx.Graph(graph.edges())
    largest = max(nx.connected_components(graph), key=len)
    return nx.convert_node_labels_to_integers(graph.subgraph(sorted(largest)), ordering="sorted")


def hold_out(graph, fraction, rng):
    """Remove edges for testing, and draw as many pairs that are no edges."""
    train = graph.copy()
    edges = sorted(graph.edges())
    rng.shuffle(edges)
    positive = []
    for u, v in edges:
        if len(positive) >= fraction * len(edges):
            break
        if train.degree(u) > 2 and train.degree(v) > 2:
            train.remove_edge(u, v)
            positive.append((u, v))
    nodes = sorted(graph.nodes())
    negative = []
    while len(negative) < len(positive):
        u, v = rng.sample(nodes, 2)
        if not graph.has_edge(u, v):
            negative.append((u, v))
    return train, positive, negative


class Node2VecWalks:
    def __init__(self, graph, p, q, rng):
        self.graph = graph
        self.p, self.q = p, q
        self.rng = rng
        self.neighbors = {n: sorted(graph.neighbors(n)) for n in graph.nodes()}
        self.lookup = {n: set(v) for n, v in self.neighbors.items()}

    def walk(self, length, start):
        walk = [start]
        while len(walk) < length:
            options = self.neighbors[walk[-1]]
            if not options:
                break
            if len(walk) == 1:
                walk.append(self.rng.choice(options))
                continue
            prev = walk[-2]
            weights = [1 / self.p if o == prev else 1.0 if o in self.lookup[prev] else 1 / self.q
                       for o in options]
            walk.append(self.rng.choices(options, weights)[0])
        return walk

    def simulate(self, num_walks, length):
        nodes = sorted(self.graph.nodes())
        walks = []
        for _ in range(num_walks):
            self.rng.shuffle(nodes)
            walks += [[str(n) for n in self.walk(length, node)] for node in nodes]
        return walks


def learn_embeddings(walks, args):
    model = Word2Vec(walks, workers=args.workers, seed=args.seed, epochs=args.iter,  # cause
                     vector_size=args.dimensions, window=args.window_size, min_count=0, sg=1)
    model.wv.save_word2vec_format(args.output)
    return model.wv


def edge_features(wv, pairs):
    return np.array([wv[str(u)] * wv[str(v)] for u, v in pairs])


def main():
    args = parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    rng = random.Random(args.seed)

    graph = make_graph(args.seed)
    train, positive, negative = hold_out(graph, 0.2, rng)
    print(f"nodes {graph.number_of_nodes()}, edges {graph.number_of_edges()}, held out {len(positive)}")

    started = time.time()
    walks = Node2VecWalks(train, args.p, args.q, rng).simulate(args.num_walks, args.walk_length)
    wv = learn_embeddings(walks, args)
    print(f"embedding took {time.time() - started:.2f} s")

    known = sorted(train.edges())
    others = []
    while len(others) < len(known):
        u, v = rng.sample(sorted(train.nodes()), 2)
        if not graph.has_edge(u, v):
            others.append((u, v))
    classifier = LogisticRegression(max_iter=500)
    classifier.fit(edge_features(wv, known + others), [1] * len(known) + [0] * len(others))
    scores = classifier.predict_proba(edge_features(wv, positive + negative))[:, 1]
    auc = roc_auc_score([1] * len(positive) + [0] * len(negative), scores)

    hub = max(sorted(train.nodes()), key=train.degree)
    result = {
        "auc": round(float(auc), 6),
        "hub": hub,
        "similar_to_hub": [[k, round(float(s), 5)] for k, s in wv.most_similar(str(hub), topn=5)],
    }
    with open("link_prediction.json", "w") as handle:
        json.dump(result, handle, indent=2)
    print(f"AUC {result['auc']:.6f}")
    for k, s in result["similar_to_hub"]:
        print(f"  node {k:>4s} similarity {s:.5f}")


if __name__ == "__main__":
    main()
