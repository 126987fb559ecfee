"""Few-shot text classification with a small sentence encoder.

Modelled on https://github.com/huggingface/setfit/pull/441
Draws a few labelled examples per class, tunes an encoder on sentence pairs
and fits a logistic-regression head that is scored on a held-out set.
"""
import argparse
import json
import logging
import random
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
log = logging.getLogger("fewshot")

TOPICS = {
    "billing": "invoice refund charge card payment receipt price discount account subscription".split(),
    "delivery": "parcel courier late tracking address shipped warehouse box driver package".split(),
    "technical": "crash error login screen update button install freeze password server".split(),
    "praise": "great thanks love helpful friendly quick excellent happy wonderful recommend".split(),
}
FILLER = ("please the my again yesterday today really still just about with order team "
          "service customer week since never always some another").split()


@dataclass
class Config:
    seed: int = 42
    corpus_size: int = 1200
    test_size: int = 400
    shots: int = 8
    embedding_dim: int = 32
    pair_epochs: int = 4
    pair_batch: int = 32
    learning_rate: float = 2e-3
    output_dir: str = "fewshot_out"


def set_seed(seed):
    random.seed(seed)
    torch.manual_seed(seed)


def build_corpus(cfg):
    rng = np.random.default_rng(cfg.seed)
    labels = list(TOPICS)
    rows = []
    for i in range(cfg.corpus_size + cfg.test_size):
        label = labels[i % len(labels)]
        other = labels[int(rng.integers(len(labels)))]
        words = list(rng.choice(TOPICS[label], size=int(rng.integers(1, 4))))
        words += list(rng.choice(TOPICS[other], size=int(rng.integers(0, 3))))
        words += list(rng.choice(FILLER, size=int(rng.integers(4, 9))))
        order = rng.permutation(len(words))
        rows.append({"text": " ".join(words[j] for j in order), "label": label})
    frame = pd.DataFrame(rows)
    train = frame.iloc[: cfg.corpus_size].reset_index(drop=True)
    test = frame.iloc[cfg.corpus_size:].reset_index(drop=True)
    return train, test


class FewShotSampler:
    """Selects a balanced subset of the training frame."""

    def __init__(self, label_column="label", text_column="text"):
        self.label_column = label_column
        self.text_column = text_column

    def select(self, frame, shots):
        smallest = frame[self.label_column].value_counts().min()
        if shots > smallest:
            log.warning("only %d examples in the smallest class", smallest)
            shots = int(smallest)
        groups = frame.groupby(self.label_column, sort=True)
        subset = groups.sample(n=shots)  # cause
        return subset.reset_index(drop=True)


class Encoder(nn.Module):
    def __init__(self, vocab_size, dim):
        super().__init__()
        self.project = nn.Sequential(
            nn.Linear(vocab_size, 64), nn.Tanh(), nn.Linear(64, dim)
        )

    def forward(self, x):
        return nn.functional.normalize(self.project(x), dim=-1)


def make_pairs(labels):
    pairs = []
    for i in range(len(labels)):
        for j in range(i + 1, len(labels)):
            pairs.append((i, j, 1.0 if labels[i] == labels[j] else 0.0))
    positives = [p for p in pairs if p[2] == 1.0]
    negatives = [p for p in pairs if p[2] == 0.0]
    random.shuffle(negatives)
    mixed = positives + negatives[: 2 * len(positives)]
    random.shuffle(mixed)
    return mixed


def tune_encoder(encoder, features, labels, cfg):
    optimizer = torch.optim.Adam(encoder.parameters(), lr=cfg.learning_rate)
    history = []
    for epoch in range(cfg.pair_epochs):
        started = time.perf_counter()
        pairs = make_pairs(labels)
        total = 0.0
        for lo in range(0, len(pairs), cfg.pair_batch):
            batch = pairs[lo: lo + cfg.pair_batch]
            left = encoder(features[[p[0] for p in batch]])
            right = encoder(features[[p[1] for p in batch]])
            target = torch.tensor([p[2] for p in batch])
            loss = ((left * right).sum(-1) - target).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += float(loss.detach()) * len(batch)
        history.append(total / len(pairs))
        log.info("pair epoch %d loss %.5f (%.2fs)", epoch, history[-1], time.perf_counter() - started)
    return history


def embed(encoder, features):
    encoder.eval()
    with torch.no_grad():
        return encoder(features).numpy()


def evaluate(head, vectors, frame):
    predicted = head.predict(vectors)
    truth = frame["label"].to_numpy()
    return {
        "accuracy": round(float(accuracy_score(truth, predicted)), 4),
        "macro_f1": round(float(f1_score(truth, predicted, average="macro")), 4),
        "confusion": confusion_matrix(truth, predicted, labels=sorted(TOPICS)).tolist(),
    }, predicted


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=Config.seed)
    parser.add_argument("--shots", type=int, default=Config.shots)
    args = parser.parse_args(argv)
    cfg = Config(seed=args.seed, shots=args.shots)
    set_seed(cfg.seed)

    out = Path(cfg.output_dir)
    out.mkdir(exist_ok=True)
    (out / "config.json").write_text(json.dumps(asdict(cfg), indent=2))

    train, test = build_corpus(cfg)
    log.info("corpus: %d train, %d test", len(train), len(test))
    vectorizer = TfidfVectorizer().fit(train["text"])

    few = FewShotSampler().select(train, cfg.shots)
    few.to_csv(out / "few_shot_train.csv", index=False)

    few_x = torch.tensor(vectorizer.transform(few["text"]).toarray(), dtype=torch.float32)
    test_x = torch.tensor(vectorizer.transform(test["text"]).toarray(), dtype=torch.float32)
    encoder = Encoder(few_x.shape[1], cfg.embedding_dim)
    history = tune_encoder(encoder, few_x, few["label"].tolist(), cfg)

    head = LogisticRegression(max_iter=500)
    head.fit(embed(encoder, few_x), few["label"])
    metrics, predicted = evaluate(head, embed(encoder, test_x), test)
    metrics["pair_loss"] = [round(v, 6) for v in history]
    (out / "metrics.json").write_text(json.dumps(metrics, indent=2))
    test.assign(predicted=predicted).to_csv(out / "predictions.csv", index=False)

    print(f"shots per class : {cfg.shots}")
    print(f"final pair loss : {history[-1]:.5f}")
    print(f"accuracy        : {metrics['accuracy']:.4f}")
    print(f"macro F1        : {metrics['macro_f1']:.4f}")


if __name__ == "__main__":
    main()
