#!/usr/bin/env python
"""Churn model trained from a SQL feature query.

Modelled on https://github.com/sql-machine-learning/sqlflow/issues/133

Loads an event log into DuckDB, aggregates it to one row of features per customer
with SQL, trains a torch model on the rows and writes the predictions back into
the database and to a file.
"""
import argparse
import json
import logging
import random
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

log = logging.getLogger("sqlmodel")

CREATE_EVENTS = """
CREATE TABLE events AS
SELECT (hash(i * 13 + {seed}) % {customers})::INTEGER        AS customer_id,
       (i % 180)::INTEGER                                    AS day,
       (hash(i + {seed} * 7) % 20000)::BIGINT                AS cents,
       (hash(i * 3 + {seed}) % 5)::INTEGER                   AS channel
FROM range({events}) t(i)
"""

CREATE_LABELS = """
CREATE TABLE labels AS
SELECT customer_id,
       ((sum(CASE WHEN day > 120 THEN cents ELSE 0 END) * 2 < sum(cents) * 13 // 20)
         <> (hash(customer_id + {seed}) % 10 = 0))::INTEGER AS churned
FROM events GROUP BY customer_id
"""

FEATURE_QUERY = """
SELECT e.customer_id,
       count(*)                                            AS n_events,
       sum(e.cents)                                        AS total,
       max(e.cents)                                        AS largest,
       sum(CASE WHEN e.day > 150 THEN 1 ELSE 0 END)        AS recent,
       sum(CASE WHEN e.day BETWEEN 110 AND 150 THEN e.cents ELSE 0 END) AS middle,
       sum(CASE WHEN e.channel = 0 THEN e.cents ELSE 0 END) AS web,
       sum(CASE WHEN e.channel = 1 THEN e.cents ELSE 0 END) AS store,
       any_value(l.churned)                                AS churned
FROM events e JOIN labels l USING (customer_id)
GROUP BY e.customer_id
"""


@dataclass
class Settings:
    events: int = 2500000
    customers: int = 6000
    epochs: int = 4
    batch_size: int = 64
    lr: float = 2e-3
    threads: int = 8
    seed: int = 133
    workdir: Path = Path("sqlmodel")


class FeatureStore:
    def __init__(self, settings):
        self.settings = settings
        self.con = duckdb.connect(str(settings.workdir / "warehouse.duckdb"))
        self.con.execute(f"SET threads TO {settings.threads}")

    def populate(self):
        names = {"seed": self.settings.seed, "customers": self.settings.customers, "events": self.settings.events}
        self.con.execute(CREATE_EVENTS.format(**names))
        self.con.execute(CREATE_LABELS.format(**names))

    def features(self):
        table = self.con.execute(FEATURE_QUERY).fetchnumpy()  # cause
        ids = np.asarray(table.pop("customer_id"))
        label = np.asarray(table.pop("churned")).astype(np.float32)
        columns = list(table)
        matrix = np.column_stack([np.log1p(np.asarray(table[c]).astype(np.float64)) for c in columns])
        return ids, columns, matrix, label

    def save_predictions(self, ids, scores):
        self.con.execute("CREATE TABLE predictions (customer_id INTEGER, score DOUBLE)")
        order = np.argsort(ids)
        rows = list(zip(ids[order].tolist(), np.round(scores[order], 6).tolist()))
        self.con.executemany("INSERT INTO predictions VALUES (?, ?)", rows[:200])
        return rows


class ChurnNet(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 16), nn.ReLU(),
                                 nn.Linear(16, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def standardise(matrix):
    order = np.lexsort(matrix.T)
    ordered = matrix[order]
    return ((matrix - ordered.mean(0)) / ordered.std(0)).astype(np.float32)


def train(x, y, settings):
    gen = torch.Generator().manual_seed(settings.seed)
    loader = DataLoader(TensorDataset(x, y), batch_size=settings.batch_size, shuffle=True, generator=gen)
    model = ChurnNet(x.shape[1])
    opt = torch.optim.AdamW(model.parameters(), lr=settings.lr)
    losses = []
    for epoch in range(settings.epochs):
        model.train()
        total = 0.0
        for xb, yb in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(xb)
        losses.append(round(total / len(x), 7))
        log.info("epoch %d loss %.5f", epoch + 1, losses[-1])
    return model.eval(), losses


def main():
    defaults = Settings()
    p = argparse.ArgumentParser()
    p.add_argument("--events", type=int, default=defaults.events)
    p.add_argument("--customers", type=int, default=defaults.customers)
    p.add_argument("--epochs", type=int, default=defaults.epochs)
    p.add_argument("--threads", type=int, default=defaults.threads)
    p.add_argument("--seed", type=int, default=defaults.seed)
    p.add_argument("--workdir", type=Path, default=defaults.workdir)
    settings = Settings(**vars(p.parse_args()))
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    random.seed(settings.seed)
    np.random.seed(settings.seed)
    torch.manual_seed(settings.seed)
    torch.set_num_threads(1)
    settings.workdir.mkdir(parents=True, exist_ok=True)

    store = FeatureStore(settings)
    t0 = time.time()
    store.populate()
    ids, columns, matrix, label = store.features()
    log.info("%d customers, %d features in %.2fs, churn rate %.3f", len(ids), len(columns), time.time() - t0, label.mean())
    x, y = torch.from_numpy(standardise(matrix)), torch.from_numpy(label)
    holdout = torch.from_numpy(ids % 5 == 0)
    model, losses = train(x[~holdout], y[~holdout], settings)
    with torch.no_grad():
        scores = torch.sigmoid(model(x)).numpy()
    accuracy = float(((scores > 0.5) == (label > 0.5))[holdout.numpy()].mean())
    rows = store.save_predictions(ids, scores)
    with open(settings.workdir / "predictions.csv", "w") as fh:
        fh.writelines(f"{i},{s:.6f}\n" for i, s in rows)
    result = {"losses": losses, "holdout_accuracy": round(accuracy, 5)}
    (settings.workdir / "result.json").write_text(json.dumps(result))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
