"""Word vectors and topics of a made-up corpus with the INFO logging of gensim switched on.

Modelled on: piskvorky/gensim (docs/src/auto_examples/run_word2vec.py, run_lda.py): logging of
"EPOCH 1 - PROGRESS: at ...% examples, ... words/s", "took ...s", lifecycle events in saved models.
"""
import json
import logging
import os
import tempfile
import time
from collections import Counter
from datetime import datetime
from pathlib import Path

import gensim
import numpy as np
from gensim.corpora import Dictionary, MmCorpus
from gensim.models import CoherenceModel, LdaModel, TfidfModel, Word2Vec
from gensim.models.callbacks import CallbackAny2Vec

SEED = 17
TOPICS = {
    "sea": "ship wave harbour sail tide captain island storm anchor whale".split(),
    "kitchen": "bread salt oven butter flour knife sugar recipe soup onion".split(),
    "law": "court judge appeal statute witness verdict lawyer contract clause crime".split(),
    "music": "violin chord rhythm song melody drum concert tempo singer opera".split(),
    "space": "orbit comet planet rocket galaxy lunar probe star telescope crater".split(),
}
COMMON = "the of and to in a is that it was for on with as by".split()


def make_corpus(n, seed):
    rng = np.random.default_rng(seed)
    names = list(TOPICS)
    docs, labels = [], []
    for _ in range(n):
        mix = rng.dirichlet(np.full(len(names), 0.15))
        words = []
        for _ in range(int(rng.integers(25, 60))):
            if rng.random() < 0.3:
                words.append(COMMON[int(rng.integers(len(COMMON)))])
            else:
                t = names[int(rng.choice(len(names), p=mix))]
                words.append(TOPICS[t][min(int(rng.exponential(3.0)), 9)])
        docs.append(words)
        labels.append(names[int(mix.argmax())])
    return docs, labels


class EpochLogger(CallbackAny2Vec):
    def __init__(self, path):
        self.epoch, self.prev, self.path = 0, 0.0, path
        self.rows = []

    def on_epoch_begin(self, model):
        self.t = time.time()

    def on_epoch_end(self, model):
        loss = model.get_latest_training_loss()
        self.rows.append({"epoch": self.epoch, "loss": float(loss - self.prev), "seconds": time.time() - self.t, "at": time.ctime()})
        print(f"epoch {self.epoch}: loss {loss - self.prev:.2f} in {time.time() - self.t:.3f} s")
        self.prev = loss
        self.epoch += 1

    def on_train_end(self, model):
        with open(self.path, "w") as f:
            for r in self.rows:
                f.write(json.dumps(r) + "\n")


def main():
    logging.basicConfig(filename="gensim.log", format="%(asctime)s : %(levelname)s : %(message)s", level=logging.INFO)
    t0 = time.time()
    docs, labels = make_corpus(900, SEED)
    print(f"gensim {gensim.__version__}, {len(docs)} documents, {sum(map(len, docs))} words, pid {os.getpid()}")
    print("labels:", dict(sorted(Counter(labels).items())))

    epoch_logger = EpochLogger("w2v_epochs.jsonl")
    w2v = Word2Vec(docs, vector_size=32, window=4, min_count=2, sample=1e-2, negative=5, workers=1, epochs=4, seed=SEED,
                   compute_loss=True, callbacks=[epoch_logger])
    w2v.wv.save_word2vec_format("vectors.txt")
    neighbours = {}
    for topic, words in TOPICS.items():
        top = w2v.wv.most_similar(words[0], topn=4)
        neighbours[words[0]] = [(w, round(float(s), 5)) for w, s in top]
        print(f"{words[0]:8s} ->", ", ".join(f"{w} {s:.4f}" for w, s in top))
    with tempfile.NamedTemporaryFile(prefix="gensim-model-", suffix=".w2v", delete=False) as tmp:
        path = tmp.name
    w2v.save(path)
    again = Word2Vec.load(path)
    same = bool(np.array_equal(again.wv.vectors, w2v.wv.vectors))
    print(f"Model saved to {path} and loaded again: identical vectors {same}")
    for ev in again.lifecycle_events:
        print("  lifecycle:", ev["event"], ev["datetime"])
    os.unlink(path)

    stop = set(COMMON)
    texts = [[w for w in d if w not in stop] for d in docs]
    dictionary = Dictionary(texts)
    dictionary.filter_extremes(no_below=3, no_above=0.9)
    dictionary.save_as_text("dictionary.txt")
    bow = [dictionary.doc2bow(t) for t in texts]
    MmCorpus.serialize("corpus.mm", bow)
    tfidf = TfidfModel(bow)
    t1 = time.time()
    lda = LdaModel(bow, id2word=dictionary, num_topics=5, random_state=SEED, passes=2, chunksize=300, eval_every=None, dtype=np.float64)
    lda_time = time.time() - t1
    topics = {k: [(w, round(float(p), 5)) for w, p in lda.show_topic(k, 6)] for k in range(5)}
    for k, ws in topics.items():
        print(f"topic {k}: " + " + ".join(f"{p:.3f}*{w}" for w, p in ws))
    coherence = CoherenceModel(model=lda, corpus=bow, dictionary=dictionary, coherence="u_mass").get_coherence()
    assign = [max(lda.get_document_topics(b, minimum_probability=0.0), key=lambda t: t[1])[0] for b in bow]
    purity = sum(Counter(l for l, a in zip(labels, assign) if a == k).most_common(1)[0][1] for k in sorted(set(assign))) / len(docs)
    print(f"u_mass coherence {coherence:.6f}, purity {purity:.4f}, lda took {lda_time:.2f} s")
    weights = np.array([sum(v for _, v in tfidf[b]) for b in bow])
    np.savez("topics.npz", topics=lda.get_topics(), assign=np.array(assign), tfidf=weights)
    Path("summary.json").write_text(json.dumps({
        "created": datetime.now().isoformat(timespec="seconds"), "neighbours": neighbours, "topics": topics, "coherence": float(coherence),
        "purity": purity, "w2v_train_time": w2v.total_train_time, "lda_time": lda_time, "total_time": time.time() - t0}, indent=1))
    print(f"done in {time.time() - t0:.2f} s; words/s {sum(map(len, docs)) * 4 / w2v.total_train_time:,.0f}")


if __name__ == "__main__":
    main()
