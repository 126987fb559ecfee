"""A small network on the features, checked on held out subscribers."""
import argparse
import json
import sqlite3
import time

import pandas as pd
import torch
from sklearn.metrics import roc_auc_score
from torch import nn


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--db", required=True)
    ap.add_argument("--epochs", type=int, required=True)
    ap.add_argument("--seed", type=int, required=True)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    with sqlite3.connect(args.db) as db:
        df = pd.read_sql("select * from features order by id", db)
    y = torch.tensor(df.churned.to_numpy(), dtype=torch.float32)
    x = torch.tensor(df.drop(columns=["id", "churned"]).to_numpy(), dtype=torch.float64)
    x = torch.log1p(x)
    test = torch.arange(len(x)) % 4 == 0
    x = ((x - x[~test].mean(0)) / x[~test].std(0)).float()
    model = nn.Sequential(nn.Linear(x.shape[1], 24), nn.ReLU(), nn.Linear(24, 12), nn.ReLU(),
                          nn.Linear(12, 1))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    rows = torch.nonzero(~test).squeeze(1)
    history = []
    for epoch in range(args.epochs):
        t0, total = time.time(), 0.0
        for b in rows[torch.randperm(len(rows))].split(64):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[b]).squeeze(1), y[b])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(b)
        history.append(total / len(rows))
        if epoch % 10 == 9:
            print(f"epoch {epoch} loss {history[-1]:.8f} ({len(rows) / (time.time() - t0):.0f} rows/s)")
    with torch.no_grad():
        z = model(x[test]).squeeze(1)
        val = nn.functional.binary_cross_entropy_with_logits(z, y[test]).item()
    auc = float(roc_auc_score(y[test], z))
    print(f"held out loss {val:.8f} auc {auc:.5f}")
    with open(args.out, "w") as fh:
        json.dump({"history": history, "val": val, "auc": auc,
                   "recency_mean": float(df.recency.mean())}, fh, indent=1)


if __name__ == "__main__":
    main()
