"""word2vec and LDA with gensim, with gensim's own INFO logging.

Output follows gensim (log as in https://github.com/piskvorky/gensim/issues/3089 and the tutorial "run_word2vec":
"EPOCH 0 - PROGRESS: at ..% examples, ... words/s, in_qsize .., out_qsize .."; lifecycle events with datetimes).
"""
import json
import logging
import os
import random
import tempfile
import time
import uuid
from datetime import datetime

import numpy as np
from gensim import corpora, models
from gensim.models import KeyedVectors, Word2Vec

SEED = 11
TOPICS = {
    "sea": "ship harbor wave sailor anchor tide storm island captain mast rope whale".split(),
    "law": "court judge trial jury witness verdict appeal statute clerk counsel oath motion".split(),
    "farm": "wheat plough barn cattle harvest field meadow tractor seed orchard fence shepherd".split(),
    "music": "violin concert melody tempo choir chord rhythm opera cello sonata flute drum".split(),
}
COMMON = "the of and in a was old new with from under great".split()

logging.basicConfig(format="%(asctime)s : %(levelname)s : %(message)s", level=logging.INFO)
log = logging.getLogger("train")


def make_corpus(n_docs=2000):
    rnd = random.Random(SEED)
    names = list(TOPICS)
    docs, labels = [], []
    for _ in range(n_docs):
        main, other = rnd.sample(names, 2)
        words = []
        for _ in range(rnd.randrange(30, 60)):
            r = rnd.random()
            words.append(rnd.choice(COMMON if r < 0.3 else TOPICS[main] if r < 0.9 else TOPICS[other]))
        docs.append(words)
        labels.append(main)
    return docs, labels


def train_w2v(docs):
    model = Word2Vec(vector_size=24, window=4, min_count=3, workers=1, seed=SEED, sg=1, negative=5,
                     hashfxn=lambda s: sum(ord(c) * 31 ** i for i, c in enumerate(s)) % (2 ** 31))
    t = time.time()
    model.build_vocab(docs, progress_per=300)
    print(f"Time to build vocab: {round((time.time() - t) / 60, 4)} mins")
    t = time.time()
    words, raw = model.train(docs, total_examples=model.corpus_count, epochs=10, report_delay=0.05)
    print(f"Time to train the model: {round((time.time() - t) / 60, 4)} mins")
    print(f"raw words trained: {raw}, vocabulary: {len(model.wv)}")
    return model


def neighbours(wv):
    rows = {}
    for topic, words in TOPICS.items():
        for w in words[:3]:
            rows[w] = [(o, round(float(s), 5)) for o, s in wv.most_similar(w, topn=3)]
            print(f"{topic:<6} {w:<8} " + " ".join(f"{o}({s:.4f})" for o, s in rows[w]))
    hits = sum(o in TOPICS[t] for t, ws in TOPICS.items() for w in ws[:3] for o, _ in rows[w])
    print(f"neighbours inside the topic: {hits}/36")
    return rows


def train_lda(docs):
    dic = corpora.Dictionary(docs)
    dic.filter_extremes(no_below=5, no_above=0.6)
    bow = [dic.doc2bow(d) for d in docs]
    lda = models.LdaModel(bow, num_topics=4, id2word=dic, random_state=SEED, passes=3, chunksize=300,
                          eval_every=3, alpha="auto")
    topics = []
    for i in range(4):
        terms = lda.show_topic(i, topn=6)
        topics.append([[w, round(float(p), 5)] for w, p in terms])
        print(f"topic {i}: " + " + ".join(f"{p:.3f}*{w}" for w, p in terms))
    bound = lda.log_perplexity(bow[:200])
    print(f"per-word bound {bound:.5f}")
    return topics, float(bound)


def main():
    run = uuid.uuid4().hex[:8]
    log.info("running %s (run %s, pid %d)", os.path.basename(__file__), run, os.getpid())
    docs, labels = make_corpus()
    begun = datetime.now()
    model = train_w2v(docs)
    near = neighbours(model.wv)
    topics, bound = train_lda(docs)
    os.makedirs("models", exist_ok=True)
    model.wv.save_word2vec_format("models/vectors.txt")
    with tempfile.NamedTemporaryFile(prefix="gensim-model-", delete=False) as tmp:
        temporary = tmp.name
    model.wv.save(temporary)
    again = KeyedVectors.load(temporary, mmap="r")
    assert np.array_equal(again.vectors, model.wv.vectors)
    for f in (temporary, temporary + ".vectors.npy"):
        if os.path.exists(f):
            os.remove(f)
    events = [{k: str(v) for k, v in e.items()} for e in model.lifecycle_events]
    with open(f"models/run_{begun:%Y%m%d_%H%M%S}.json", "w") as f:
        json.dump({"run": run, "begun": begun.isoformat(), "neighbours": near, "topics": topics,
                   "bound": bound, "total_train_time": model.total_train_time, "events": events}, f, indent=1)
    print(f"done in {(datetime.now() - begun).total_seconds():.1f}s, {len(docs)} documents, {sorted(set(labels))}")


if __name__ == "__main__":
    main()
