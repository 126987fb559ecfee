"""Skip-gram embeddings trained from a queue of jobs, with an analogy style evaluation.

Modelled on https://github.com/piskvorky/gensim/issues/641 where the vectors of a seeded model were different every time.
"""
import argparse
import json
import logging
import queue
import random
import threading
import time

import numpy as np

logging.basicConfig(level=logging.INFO, format="%(asctime)s : %(levelname)s : %(message)s")
log = logging.getLogger("word2vec")


def make_corpus(sentences, vocab, groups, seed):
    """Sentences whose words mostly come from one latent group."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, vocab)
    members = [np.flatnonzero(group == g) for g in range(groups)]
    zipf = 1.0 / np.arange(1, vocab + 1) ** 0.9
    out = []
    for _ in range(sentences):
        g = rng.integers(groups)
        n = rng.integers(6, 14)
        w = members[g]
        own = rng.choice(w, n, p=zipf[w] / zipf[w].sum())
        other = rng.choice(vocab, n, p=zipf / zipf.sum())
        out.append(np.where(rng.random(n) < 0.7, own, other))
    return out, group


class SkipGram:
    def __init__(self, vocab, dim, window, negative, alpha, seed):
        rng = np.random.default_rng(seed)
        self.syn0 = ((rng.random((vocab, dim)) - 0.5) / dim).astype(np.float32)
        self.syn1 = np.zeros((vocab, dim), np.float32)
        self.vocab, self.window, self.negative = vocab, window, negative
        self.alpha, self.seed = alpha, seed
        self.loss_sum, self.pairs = 0.0, 0

    def build_unigram(self, corpus):
        cnt = np.bincount(np.concatenate(corpus), minlength=self.vocab).astype(float) ** 0.75
        self.cum = np.cumsum(cnt / cnt.sum())

    def _pairs(self, sentence, rng):
        centre, ctx = [], []
        reduced = rng.integers(1, self.window + 1, len(sentence))
        for i, w in enumerate(sentence):
            for j in range(max(0, i - reduced[i]), min(len(sentence), i + reduced[i] + 1)):
                if j != i:
                    centre.append(w)
                    ctx.append(sentence[j])
        return np.array(centre, np.int64), np.array(ctx, np.int64)

    def train_job(self, job_no, sentences, alpha):
        rng = np.random.default_rng([self.seed, job_no])
        for s in sentences:
            c, o = self._pairs(s, rng)
            if len(c) == 0:
                continue
            neg = np.searchsorted(self.cum, rng.random((len(c), self.negative)))
            tgt = np.concatenate([o[:, None], np.minimum(neg, self.vocab - 1)], axis=1)
            label = np.zeros(tgt.shape, np.float32)
            label[:, 0] = 1.0
            h, v = self.syn0[c], self.syn1[tgt]
            score = 1.0 / (1.0 + np.exp(-np.einsum("pd,pkd->pk", h, v)))
            g = (label - score) * alpha
            np.add.at(self.syn1, tgt, g[:, :, None] * h[:, None, :])
            np.add.at(self.syn0, c, np.einsum("pk,pkd->pd", g, v))
            self.loss_sum -= float(np.log(np.clip(np.where(label > 0, score, 1 - score), 1e-7, 1)).sum())
            self.pairs += len(c)

    def _worker_loop(self, jobs):
        while True:
            job = jobs.get()
            if job is None:
                return
            self.train_job(*job)

    def train(self, corpus, epochs, batch=40):
        total = epochs * ((len(corpus) + batch - 1) // batch)
        jobs = queue.Queue(maxsize=8)
        threads = [threading.Thread(target=self._worker_loop, args=(jobs,), daemon=True) for _ in range(2)]  # cause
        for t in threads:
            t.start()
        order_rng, n, t0 = np.random.default_rng(self.seed), 0, time.time()
        for ep in range(epochs):
            order = order_rng.permutation(len(corpus))
            for s in range(0, len(corpus), batch):
                jobs.put((n, [corpus[i] for i in order[s:s + batch]], self.alpha * (1 - 0.9 * n / total)))
                n += 1
            log.info("epoch %d queued, %.0f jobs/s", ep + 1, n / (time.time() - t0))
        for _ in threads:
            jobs.put(None)
        for t in threads:
            t.join()
        log.info("trained %d pairs in %.1fs", self.pairs, time.time() - t0)


def neighbour_purity(vec, group, top=5):
    unit = vec / (np.linalg.norm(vec, axis=1, keepdims=True) + 1e-9)
    sim = unit @ unit.T
    np.fill_diagonal(sim, -2)
    nn = np.argsort(-sim, axis=1, kind="stable")[:, :top]
    return float((group[nn] == group[:, None]).mean())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=128)
    p.add_argument("--sentences", type=int, default=4000)
    p.add_argument("--vocab", type=int, default=500)
    p.add_argument("--groups", type=int, default=10)
    p.add_argument("--dim", type=int, default=32)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--out", default="vectors.npy")
    args = p.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    corpus, group = make_corpus(args.sentences, args.vocab, args.groups, args.seed)
    model = SkipGram(args.vocab, args.dim, window=4, negative=5, alpha=0.05, seed=args.seed)
    model.build_unigram(corpus)
    model.train(corpus, args.epochs)
    purity = neighbour_purity(model.syn0, group)
    np.save(args.out, model.syn0)
    res = {"loss": model.loss_sum / model.pairs, "purity@5": purity, "norm": float(np.linalg.norm(model.syn0))}
    with open("eval.json", "w") as f:
        json.dump(res, f)
    print(" ".join(f"{k}={v:.8f}" for k, v in res.items()))


if __name__ == "__main__":
    main()
