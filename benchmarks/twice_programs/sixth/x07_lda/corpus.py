import numpy as np


def synthetic_corpus(docs=240, vocab=120, topics=5, seed=17):
    rng = np.random.default_rng(seed)
    beta = rng.dirichlet(np.full(vocab, 0.06), size=topics)
    counts = np.zeros((docs, vocab))
    for d in range(docs):
        theta = rng.dirichlet(np.full(topics, 0.2))
        counts[d] = rng.multinomial(80, theta @ beta)
    return counts


def chunks(matrix, size):
    for i in range(0, len(matrix), size):
        yield i // size, matrix[i:i + size]
