"""Ticket triage: synthetic support tickets, hashed split, bag of words classifier.

Modelled on https://github.com/mostly-ai/mostlyai-engine/pull/121
A generator of synthetic tables has a seed, and its output still is not the same twice.
"""
import argparse
import hashlib
import json
import logging
import random
import time

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import f1_score, log_loss

from f09_tickets.generator import TicketGenerator

log = logging.getLogger("triage")


def bucket(key, salt, buckets=1000):
    digest = hashlib.md5(f"{salt}:{key}".encode()).hexdigest()
    return int(digest[:12], 16) % buckets


def split(tickets, holdout, salt):
    """The usual rule: a ticket stays in its part for ever, whatever else comes in."""
    train, test = [], []
    for t in tickets:
        part = test if bucket(t["ticket_id"], salt) < 1000 * holdout else train
        part.append(t)
    return train, test


def batches(rows, size, rng):
    order = rng.permutation(len(rows))
    for i in range(0, len(rows), size):
        yield [rows[k] for k in order[i:i + size]]


def fit(train, classes, args):
    rng = np.random.default_rng(args.seed)
    vec = HashingVectorizer(n_features=2 ** 12, alternate_sign=False, ngram_range=(1, 2))
    model = SGDClassifier(loss="log_loss", alpha=3e-5, random_state=args.seed)
    for epoch in range(args.epochs):
        t0 = time.time()
        for rows in batches(train, args.batch, rng):
            x = vec.transform([r["text"] for r in rows])
            model.partial_fit(x, [r["queue"] for r in rows], classes=classes)
        dt = time.time() - t0
        log.info("epoch %d done (%.0f tickets/s)", epoch, len(train) / dt)
    return vec, model


def score(vec, model, rows, classes):
    x = vec.transform([r["text"] for r in rows])
    y = [r["queue"] for r in rows]
    prob = model.predict_proba(x)
    pred = [classes[k] for k in prob.argmax(1)]
    return {
        "n": len(rows),
        "logloss": float(log_loss(y, prob, labels=classes)),
        "macro_f1": float(f1_score(y, pred, average="macro")),
    }


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--tickets", type=int, default=9000)
    ap.add_argument("--holdout", type=float, default=0.2)
    ap.add_argument("--salt", default="triage-v2")
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--batch", type=int, default=256)
    ap.add_argument("--seed", type=int, default=99)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    random.seed(args.seed)
    np.random.seed(args.seed)

    gen = TicketGenerator(args.seed)
    t0 = time.time()
    with open("tickets.jsonl", "w") as fh:
        for ticket in gen.stream(args.tickets):
            fh.write(json.dumps(ticket) + "\n")
    log.info("%d tickets written in %.2fs", args.tickets, time.time() - t0)

    with open("tickets.jsonl") as fh:
        tickets = [json.loads(line) for line in fh]
    classes = sorted({t["queue"] for t in tickets})
    train, test = split(tickets, args.holdout, args.salt)
    vec, model = fit(train, classes, args)
    report = {"train": score(vec, model, train, classes), "test": score(vec, model, test, classes)}
    log.info("test logloss %.6f macro f1 %.4f on %d", report["test"]["logloss"],
             report["test"]["macro_f1"], report["test"]["n"])
    with open("triage.json", "w") as fh:
        json.dump(report, fh, indent=1)


if __name__ == "__main__":
    main()
