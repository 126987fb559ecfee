"""https://github.com/piskvorky/gensim/issues/641 - with more than one worker thread the training order has scheduling jitter; the seed does not help, only workers=1 does."""
import json
import os
import random
import threading
import time

import numpy as np

from x24_w2v.model import Word2Vec

SEED = 128


def toy_corpus(n=260):
    rng = np.random.default_rng(SEED)
    animals = [f"animal{i}" for i in range(12)]
    tools = [f"tool{i}" for i in range(12)]
    common = ["the", "a", "with", "on", "near", "of"]
    corpus = []
    for _ in range(n):
        topic = animals if rng.random() < 0.5 else tools
        words = [str(rng.choice(topic)) if rng.random() < 0.6 else str(rng.choice(common)) for _ in range(10)]
        corpus.append(words)
    return corpus


def report(model):
    names = [f"animal{i}" for i in range(12)] + [f"tool{i}" for i in range(12)]
    same, cross = [], []
    for i, a in enumerate(names):
        for b in names[i + 1:]:
            (same if a[:3] == b[:3] else cross).append(model.similarity(a, b))
    return float(np.mean(same)), float(np.mean(cross))


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    corpus = toy_corpus()
    model = Word2Vec(vector_size=16, window=2, workers=3, seed=SEED)  # cause
    model.build_vocab(corpus)
    t0 = time.time()
    model.train(corpus, epochs=2)
    print(f"pid {os.getpid()} thread {threading.get_ident()} trained in {time.time() - t0:.2f}s")
    same, cross = report(model)
    print(f"same topic {same:.5f} other topic {cross:.5f}")
    with open("vectors.json", "w") as f:
        json.dump({"same": same, "cross": cross, "the": model.syn0[model.index["the"]].tolist(),
                   "seconds": time.time() - t0}, f)


if __name__ == "__main__":
    main()
