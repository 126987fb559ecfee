"""Modelled on https://github.com/amaiya/ktrain/issues/34

Text classification from a folder of documents without a test folder: models
compared in separate executions are validated on different documents.
"""
import json
import logging
import os
import random
import shutil
import time
from dataclasses import asdict, dataclass

import numpy as np
from sklearn.datasets import load_files
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import accuracy_score, classification_report, log_loss
from sklearn.model_selection import train_test_split

logger = logging.getLogger("textclf")

TOPICS = {
    "electronics": "circuit voltage signal amplifier battery sensor resistor board chip cable",
    "gardening": "soil seed plant compost tomato pruning mulch bulb watering lawn",
    "cycling": "pedal chain saddle gear wheel climb helmet brake tyre sprint",
    "cooking": "oven butter simmer garlic dough whisk pepper roast stock flour",
}
COMMON = ("the and with from about when after some very little good new time people use make "
          "need part small large first last work best time week today question answer").split()


@dataclass
class Config:
    seed: int = 42
    docs_per_topic: int = 150
    val_pct: float = 0.1
    max_features: int = 2000
    ngram_max: int = 2
    hidden: int = 24
    epochs: int = 14
    batch_size: int = 32
    lr: float = 0.01
    max_lr: float = 0.03
    data_dir: str = "corpus"
    out_dir: str = "model"


def write_corpus(cfg):
    """Documents with a mixture of topic words, other topics' words and filler."""
    rng = random.Random(cfg.seed)
    names = sorted(TOPICS)
    if os.path.isdir(cfg.data_dir):
        shutil.rmtree(cfg.data_dir)
    for topic in names:
        folder = os.path.join(cfg.data_dir, "train", topic)
        os.makedirs(folder)
        own = TOPICS[topic].split()
        others = [w for t in names if t != topic for w in TOPICS[t].split()]
        for i in range(cfg.docs_per_topic):
            strength = rng.uniform(0.06, 0.34)
            words = []
            for _ in range(rng.randint(18, 60)):
                r = rng.random()
                if r < strength:
                    words.append(rng.choice(own))
                elif r < strength + 0.16:
                    words.append(rng.choice(others))
                else:
                    words.append(rng.choice(COMMON))
            with open(os.path.join(folder, f"{topic}_{i:04d}.txt"), "w") as fh:
                fh.write(" ".join(words))


def texts_from_folder(datadir, val_pct, seed, classes=None):
    """Load texts and labels; a part of the training set serves for validation."""
    train_b = load_files(os.path.join(datadir, "train"), shuffle=True, random_state=seed,
                         categories=classes, encoding="utf-8")
    test_dir = os.path.join(datadir, "test")
    if os.path.isdir(test_dir):
        test_b = load_files(test_dir, shuffle=False, categories=classes, encoding="utf-8")
        return (train_b.data, train_b.target), (test_b.data, test_b.target), train_b.target_names
    x_train, x_val, y_train, y_val = train_test_split(  # cause
        train_b.data, train_b.target, test_size=val_pct
    )
    return (x_train, y_train), (x_val, y_val), train_b.target_names


class Learner:
    """One-hidden-layer network on tf-idf features, trained with a triangular rate."""

    def __init__(self, n_in, n_out, cfg):
        self.cfg = cfg
        self.rng = np.random.RandomState(cfg.seed)
        self.W1 = self.rng.normal(0, np.sqrt(2.0 / n_in), (n_in, cfg.hidden))
        self.b1 = np.zeros(cfg.hidden)
        self.W2 = self.rng.normal(0, np.sqrt(2.0 / cfg.hidden), (cfg.hidden, n_out))
        self.b2 = np.zeros(n_out)
        self.moments = [[np.zeros_like(p), np.zeros_like(p)] for p in self.params()]
        self.t = 0

    def params(self):
        return [self.W1, self.b1, self.W2, self.b2]

    def forward(self, X):
        h = np.maximum(X @ self.W1 + self.b1, 0)
        z = h @ self.W2 + self.b2
        z = z - z.max(axis=1, keepdims=True)
        p = np.exp(z)
        return h, p / p.sum(axis=1, keepdims=True)

    def step(self, X, y, lr):
        h, p = self.forward(X)
        d = p.copy()
        d[np.arange(len(y)), y] -= 1
        d /= len(y)
        dh = (d @ self.W2.T) * (h > 0)
        grads = [X.T @ dh, dh.sum(0), h.T @ d, d.sum(0)]
        self.t += 1
        for p_, g, m in zip(self.params(), grads, self.moments):
            m[0] += 0.1 * (g - m[0])
            m[1] += 0.001 * (g * g - m[1])
            mh = m[0] / (1 - 0.9 ** self.t)
            vh = m[1] / (1 - 0.999 ** self.t)
            p_ -= lr * mh / (np.sqrt(vh) + 1e-8)

    def fit(self, X, y, Xv, yv):
        cfg = self.cfg
        history = []
        for epoch in range(cfg.epochs):
            t0 = time.time()
            phase = 1 - abs(2 * epoch / max(cfg.epochs - 1, 1) - 1)
            lr = cfg.lr + (cfg.max_lr - cfg.lr) * phase
            order = self.rng.permutation(len(y))
            for s in range(0, len(y), cfg.batch_size):
                b = order[s:s + cfg.batch_size]
                self.step(X[b], y[b], lr)
            row = self.evaluate(X, y, "train") | self.evaluate(Xv, yv, "val")
            row["epoch"] = epoch + 1
            history.append(row)
            logger.info("epoch %2d loss %.4f acc %.4f val_loss %.4f val_acc %.4f (%.2fs)",
                        epoch + 1, row["train_loss"], row["train_acc"], row["val_loss"],
                        row["val_acc"], time.time() - t0)
        return history

    def evaluate(self, X, y, name):
        p = self.forward(X)[1]
        return {
            f"{name}_loss": round(float(log_loss(y, p, labels=range(p.shape[1]))), 6),
            f"{name}_acc": round(float(accuracy_score(y, p.argmax(1))), 6),
        }


def main():
    cfg = Config()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logger.info("config %s", asdict(cfg))
    os.makedirs(cfg.out_dir, exist_ok=True)
    write_corpus(cfg)

    (x_train, y_train), (x_val, y_val), names = texts_from_folder(
        cfg.data_dir, cfg.val_pct, cfg.seed
    )
    logger.info("%d training and %d validation texts, classes %s", len(x_train), len(x_val), names)

    vec = TfidfVectorizer(max_features=cfg.max_features, ngram_range=(1, cfg.ngram_max),
                          sublinear_tf=True)
    X = vec.fit_transform(x_train).toarray()
    Xv = vec.transform(x_val).toarray()

    learner = Learner(X.shape[1], len(names), cfg)
    history = learner.fit(X, y_train, Xv, y_val)
    pred = learner.forward(Xv)[1].argmax(1)
    report = classification_report(y_val, pred, target_names=names, digits=4, zero_division=0)
    print(report)

    np.savez(os.path.join(cfg.out_dir, "weights.npz"), W1=learner.W1, b1=learner.b1,
             W2=learner.W2, b2=learner.b2)
    with open(os.path.join(cfg.out_dir, "history.json"), "w") as fh:
        json.dump(history, fh, indent=1)
    best = min(history, key=lambda r: r["val_loss"])
    print(f"best epoch {best['epoch']} val_loss {best['val_loss']:.5f} val_acc {best['val_acc']:.4f}")
    print(f"vocabulary {len(vec.vocabulary_)}")


if __name__ == "__main__":
    main()
