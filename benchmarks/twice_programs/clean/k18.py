"""word2vec training tracked in an MLflow file store.

Modelled on mlflow/mlflow examples/sklearn_elasticnet_wine/train.py and examples/pytorch (log_param, log_metric,
log_artifact; mlruns/<experiment>/<run uuid>/{meta.yaml,metrics,params,tags,artifacts}; metric lines
"timestamp value step") with RaRe-Technologies/gensim word2vec log lines
("EPOCH 1 - PROGRESS: at 12.3% examples, 123456 words/s"). Skip-gram with negative sampling in numpy.
"""
import getpass
import json
import logging
import os
import random
import shutil
import sys
import tempfile
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import yaml

logging.basicConfig(format='%(asctime)s : %(levelname)s : %(message)s', level=logging.INFO, stream=sys.stdout)
logger = logging.getLogger('gensim.models.word2vec')
now_ms = lambda: int(time.time() * 1000)


class FileStore:
    """The part of mlflow.store.tracking.file_store that scripts touch."""

    def __init__(self, root='mlruns', experiment='word2vec'):
        self.exp = Path(root) / '100001'
        self.exp.mkdir(parents=True, exist_ok=True)
        (self.exp / 'meta.yaml').write_text(yaml.safe_dump({'artifact_location': f'file://{self.exp.resolve()}', 'creation_time': now_ms(), 'experiment_id': '100001',
                                                            'last_update_time': now_ms(), 'lifecycle_stage': 'active', 'name': experiment}))

    @contextmanager
    def start_run(self, name):
        rid = uuid.uuid4().hex
        self.run = self.exp / rid
        for d in ('metrics', 'params', 'tags', 'artifacts'):
            (self.run / d).mkdir(parents=True)
        meta = {'artifact_uri': f'file://{(self.run / "artifacts").resolve()}', 'end_time': None, 'run_id': rid, 'run_uuid': rid, 'run_name': name,
                'start_time': now_ms(), 'status': 1, 'user_id': getpass.getuser(), 'lifecycle_stage': 'active'}
        for k, v in {'mlflow.runName': name, 'mlflow.source.name': os.path.basename(__file__), 'mlflow.user': getpass.getuser()}.items():
            (self.run / 'tags' / k).write_text(v)
        print(f'INFO mlflow.tracking.fluent: started run {rid}')
        yield rid
        meta.update(end_time=now_ms(), status=3)
        (self.run / 'meta.yaml').write_text(yaml.safe_dump(meta))

    def log_params(self, params):
        for k, v in params.items():
            (self.run / 'params' / k).write_text(str(v))

    def log_metric(self, key, value, step=0):
        with open(self.run / 'metrics' / key, 'a') as f:
            f.write(f'{now_ms()} {value} {step}\n')

    def log_artifact(self, path):
        shutil.copy(path, self.run / 'artifacts')


def make_corpus(n, seed):
    rng = random.Random(seed)
    groups = {'animal': 'cat dog horse cow sheep goat'.split(), 'food': 'bread cheese apple rice soup cake'.split(), 'city': 'paris rome berlin madrid oslo vienna'.split()}
    verbs = {'animal': ['runs', 'sleeps', 'barks', 'grazes'], 'food': ['tastes', 'cooks', 'bakes', 'smells'], 'city': ['votes', 'builds', 'hosts', 'grows']}
    sents = []
    for _ in range(n):
        g = rng.choice(sorted(groups))
        sents.append(['the', rng.choice(groups[g]), rng.choice(verbs[g]), 'near', 'a', rng.choice(groups[g]), rng.choice(['today', 'often', 'never'])])
    return sents, groups


class Word2Vec:
    def __init__(self, sentences, vector_size=24, window=3, negative=5, alpha=0.05, min_alpha=0.001, seed=1):
        t0 = time.time()
        counts = {}
        for s in sentences:
            for w in s:
                counts[w] = counts.get(w, 0) + 1
        self.index2word = sorted(counts, key=lambda w: (-counts[w], w))
        self.w2i = {w: i for i, w in enumerate(self.index2word)}
        p = np.array([counts[w] for w in self.index2word]) ** 0.75
        self.noise, self.rng = p / p.sum(), np.random.RandomState(seed)
        self.W = (self.rng.rand(len(p), vector_size) - 0.5) / vector_size
        self.C = np.zeros_like(self.W)
        self.window, self.negative, self.alpha, self.min_alpha = window, negative, alpha, min_alpha
        logger.info('collected %i word types from a corpus of %i raw words and %i sentences in %.3fs', len(p), sum(counts.values()), len(sentences), time.time() - t0)

    def train(self, sentences, epochs, callback):
        total, start = epochs * len(sentences), time.perf_counter()
        for ep in range(epochs):
            loss, words, pairs, t0, last = 0.0, 0, 0, time.perf_counter(), time.perf_counter()
            for si, s in enumerate(sentences):
                lr = max(self.min_alpha, self.alpha * (1 - (ep * len(sentences) + si) / total))
                ids = [self.w2i[w] for w in s]
                b = self.rng.randint(1, self.window + 1)
                for i, c in enumerate(ids):
                    for o in ids[max(0, i - b):i] + ids[i + 1:i + 1 + b]:
                        t = np.concatenate([[o], self.rng.choice(len(self.noise), self.negative, p=self.noise)])
                        y = np.zeros(len(t))
                        y[0] = 1
                        f = 1 / (1 + np.exp(-self.C[t] @ self.W[c]))
                        loss -= np.log(np.where(y == 1, f, 1 - f) + 1e-12).sum()
                        g = (y - f) * lr
                        dw = g @ self.C[t]
                        np.add.at(self.C, t, np.outer(g, self.W[c]))
                        self.W[c] += dw
                        pairs += 1
                words += len(ids)
                if time.perf_counter() - last > 0.4:
                    last = time.perf_counter()
                    logger.info('EPOCH %i - PROGRESS: at %.2f%% examples, %.0f words/s', ep, 100 * (si + 1) / len(sentences), words / (last - t0))
            dt = time.perf_counter() - t0
            logger.info('EPOCH %i: training on %i raw words took %.1fs, %.0f effective words/s', ep, words, dt, words / dt)
            callback(ep, loss / pairs, words / dt)
        logger.info('training on %i raw words took %.1fs', words * epochs, time.perf_counter() - start)

    def most_similar(self, w, topn=5):
        E = self.W / np.linalg.norm(self.W, axis=1, keepdims=True)
        sims = E @ E[self.w2i[w]]
        return [(self.index2word[i], float(sims[i])) for i in np.argsort(-sims, kind='stable') if self.index2word[i] != w][:topn]


def main():
    store = FileStore()
    sents, groups = make_corpus(700, 5)
    leaderboard = []
    for size, neg in ((16, 5), (24, 8)):
        params = dict(vector_size=size, window=3, negative=neg, epochs=3, seed=1)
        with store.start_run(f'sg-d{size}-n{neg}') as rid, tempfile.TemporaryDirectory(prefix='w2v_') as tmp:
            store.log_params(params)
            model = Word2Vec(sents, size, 3, neg, seed=1)

            def cb(ep, loss, wps):
                store.log_metric('loss', loss, ep)
                store.log_metric('words_per_sec', wps, ep)
                print(f'Loss after epoch {ep}: {loss:.8f}')

            t0 = time.time()
            model.train(sents, params['epochs'], cb)
            hits = [sum(n in ws for n, _ in model.most_similar(w)) / 5 for ws in groups.values() for w in ws]
            acc = float(np.mean(hits))
            store.log_metric('neighbour_precision', acc)
            store.log_metric('train_seconds', time.time() - t0)
            np.save(f'{tmp}/vectors.npy', model.W)
            json.dump({w: model.most_similar(w) for w in ('cat', 'bread', 'paris')}, open(f'{tmp}/similar.json', 'w'), indent=1)
            for f in ('vectors.npy', 'similar.json'):
                store.log_artifact(f'{tmp}/{f}')
            logger.info('artifacts copied from %s', tmp)
            print(f'Word2Vec(vocab={len(model.W)}, vector_size={size}): precision@5 {acc:.4f}, most similar to cat: {model.most_similar("cat", 3)}')
            leaderboard.append((acc, params))
    best = max(leaderboard, key=lambda t: t[0])
    print(f'best params: {best[1]} precision {best[0]:.4f}')


if __name__ == '__main__':
    main()
