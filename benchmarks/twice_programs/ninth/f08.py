"""Customer value from card transactions: features in DuckDB, a network in torch.

Modelled on https://github.com/duckdb/duckdb/issues/9138
The same SELECT on unchanged data gives its rows in other orders since an upgrade.
"""
import argparse
import json
import logging
import time
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import torch
from torch import nn

log = logging.getLogger("value")
SQL_DIR = Path(__file__).resolve().parent / "f08_sql"


def write_transactions(path, customers, rows, seed):
    rng = np.random.default_rng(seed)
    spend = rng.lognormal(3.0, 0.7, customers)
    cust = rng.integers(0, customers, rows)
    df = pd.DataFrame({
        "customer_id": cust + 100000,
        "day": rng.integers(0, 365, rows).astype(np.int32),
        "cents": np.maximum(1, rng.gamma(2.0, spend[cust] * 50)).astype(np.int64),
        "merchant": rng.integers(0, 400, rows).astype(np.int32),
        "online": rng.random(rows) < 0.35,
    })
    df.to_parquet(path, row_group_size=20000)


def build_features(path, threads):
    con = duckdb.connect("warehouse.duckdb")
    con.execute(f"SET threads = {threads}")
    con.execute("SET VARIABLE source = ?", [str(path)])
    con.execute((SQL_DIR / "staging.sql").read_text())
    t0 = time.time()
    df = con.execute((SQL_DIR / "features.sql").read_text()).fetchdf()
    log.info("%d customers aggregated in %.2fs", len(df), time.time() - t0)
    con.close()
    return df


def to_tensors(df):
    target = torch.tensor(np.log1p(df.pop("later_cents").to_numpy(dtype=np.float64) / 100))
    x = np.log1p(df.drop(columns="customer_id").to_numpy(dtype=np.float64))
    lo, hi = x.min(0), x.max(0)
    x = (x - lo) / np.where(hi > lo, hi - lo, 1)
    return torch.tensor(x, dtype=torch.float32), target.float()


def train(x, y, args):
    gen = torch.Generator().manual_seed(args.seed)
    cut = int(0.8 * len(x))
    model = nn.Sequential(nn.Linear(x.shape[1], 32), nn.GELU(), nn.Linear(32, 16), nn.GELU(),
                          nn.Linear(16, 1))
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    history = []
    for epoch in range(args.epochs):
        t0, total = time.time(), 0.0
        for b in torch.randperm(cut, generator=gen).split(args.batch):
            loss = nn.functional.huber_loss(model(x[b]).squeeze(1), y[b])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(b)
        with torch.no_grad():
            val = nn.functional.huber_loss(model(x[cut:]).squeeze(1), y[cut:]).item()
        history.append({"epoch": epoch, "train": total / cut, "val": val})
        log.info("epoch %d train %.6f val %.6f (%.0f rows/s)", epoch, total / cut, val,
                 cut / (time.time() - t0))
    return model, history


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--customers", type=int, default=20000)
    ap.add_argument("--rows", type=int, default=600000)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--batch", type=int, default=128)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--seed", type=int, default=17)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)

    source = Path("transactions.parquet")
    write_transactions(source, args.customers, args.rows, args.seed)
    df = build_features(source, args.threads)
    x, y = to_tensors(df)
    model, history = train(x, y, args)
    torch.save(model.state_dict(), "value.pt")
    Path("value.json").write_text(json.dumps({"customers": len(x), "history": history}, indent=1))


if __name__ == "__main__":
    main()
