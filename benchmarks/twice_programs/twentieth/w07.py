"""Link prediction on a citation graph with neighbourhood sampling.

Splits the edges, trains a two-hop mean-aggregator encoder with a link
classifier on sampled neighbourhoods and reports AUC and average precision on
the held-out links. Saves metrics, link scores and the learned weights.

Modelled on: https://github.com/stellargraph/stellargraph/issues/336
"""
import json
import os
import sys
import time

import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score, roc_auc_score

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from w07_pkg.edges import EdgeSplitter
from w07_pkg.generators import GraphSAGELinkGenerator
from w07_pkg.graph import citation_graph
from w07_pkg.model import LinkClassifier

SEED = 42
BATCH = 64
EPOCHS = 9
NUM_SAMPLES = (8, 4)


def evaluate(model, generator, links, labels):
    scores = np.concatenate([model.predict(batch) for batch, _ in
                             generator.flow(links, labels, shuffle=False)])
    return scores, {"auc": float(roc_auc_score(labels, scores)),
                    "ap": float(average_precision_score(labels, scores))}


def main():
    start = time.time()
    graph = citation_graph(n_nodes=900, n_topics=6, n_features=40, seed=SEED)
    print(graph.info())

    splitter = EdgeSplitter(graph, seed=SEED)
    train_graph, test_links, test_labels = splitter.split(fraction=0.15)
    fit_graph, fit_links, fit_labels = EdgeSplitter(train_graph, seed=SEED + 1).split(fraction=0.3)
    print(f"links: {len(fit_links)} to fit, {len(test_links)} to test")

    fit_gen = GraphSAGELinkGenerator(fit_graph, BATCH, NUM_SAMPLES, seed=SEED)
    test_gen = GraphSAGELinkGenerator(train_graph, BATCH, NUM_SAMPLES, seed=SEED)
    model = LinkClassifier(n_features=graph.features.shape[1], hidden=24, lr=0.01, seed=SEED)

    history = []
    for epoch in range(1, EPOCHS + 1):
        loss = np.mean([model.train_step(batch, y)
                        for batch, y in fit_gen.flow(fit_links, fit_labels, shuffle=True)])
        _, metrics = evaluate(model, test_gen, test_links, test_labels)
        history.append({"epoch": epoch, "loss": float(loss), **metrics})
        print(f"epoch {epoch}: loss {loss:.5f}  test auc {metrics['auc']:.5f}  "
              f"ap {metrics['ap']:.5f}  ({time.time() - start:.1f} s)", flush=True)

    scores, metrics = evaluate(model, test_gen, test_links, test_labels)
    top = np.argsort(-scores, kind="stable")[:5]
    for k in top:
        print(f"  likely link {test_links[k][0]:4d} - {test_links[k][1]:4d}: {scores[k]:.6f}")

    pd.DataFrame({"source": test_links[:, 0], "target": test_links[:, 1], "label": test_labels,
                  "score": scores}).to_csv("link_scores.csv", index=False)
    np.savez("weights.npz", **model.weights())
    with open("metrics.json", "w") as fh:
        json.dump({"history": history, "final": metrics}, fh, indent=2)


if __name__ == "__main__":
    main()
