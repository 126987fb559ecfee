"""https://github.com/piskvorky/gensim/pull/2953 - LdaMulticore with a fixed random_state gives different topics, because the order in which workers push to the result queue, and so the order of the updates, differs."""
import json
import logging
import os
import random
import time

import numpy as np

from x07_lda.corpus import synthetic_corpus
from x07_lda.multicore import MulticoreLda

logging.basicConfig(format="%(asctime)s : %(process)d : %(levelname)s : %(message)s", level=logging.INFO)
log = logging.getLogger("lda")


def main():
    random.seed(100)
    np.random.seed(100)
    corpus = synthetic_corpus()
    held_out = synthetic_corpus(docs=40, seed=18)
    history = []

    def on_epoch(epoch, bound):
        history.append(bound)
        log.info("pass %d bound %.4f", epoch, bound)

    t0 = time.time()
    model = MulticoreLda(topics=5, vocab=corpus.shape[1], workers=2, random_state=100)
    model.fit(corpus, passes=40, size=20, callback=on_epoch)
    log.info("trained in %.2fs by pid %d", time.time() - t0, os.getpid())

    from x07_lda.worker import e_step
    _, bound = e_step(held_out, model.lam, model.alpha)
    perplexity = float(np.exp(-bound / held_out.sum()))
    for k, words in enumerate(model.topics()):
        log.info("topic %d: %s", k, words)
    with open("topics.json", "w") as f:
        json.dump({"topics": model.topics(), "bounds": history, "held_out": perplexity,
                   "lambda_sum": float(np.abs(model.lam).sum()), "elapsed": time.time() - t0}, f, indent=1)
    log.info("held-out %.6f", perplexity)


if __name__ == "__main__":
    main()
