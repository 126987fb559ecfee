"""Modelled on https://github.com/mahmoodlab/CLAM/pull/314. Trains the attention model and keeps the best checkpoint."""
import argparse
import json
import random
import time

import numpy as np
import torch
import torch.nn.functional as F

from model import AttentionMIL, load_bags, split


def seed_torch(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)


def validate(model, bags):
    model.eval()
    loss, hits = 0.0, 0
    with torch.no_grad():
        for _, x, _, y in bags:
            logits, _ = model(x)
            loss += F.cross_entropy(logits.unsqueeze(0), torch.tensor([y])).item()
            hits += int(logits.argmax().item() == y)
    return loss / len(bags), hits / len(bags)


def train_epoch(model, bags, opt, rng):
    model.train()
    total = 0.0
    for i in rng.permutation(len(bags)):
        _, x, _, y = bags[i]
        logits, _ = model(x)
        loss = F.cross_entropy(logits.unsqueeze(0), torch.tensor([y]))
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    return total / len(bags)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--config", required=True)
    ap.add_argument("--bags", required=True)
    ap.add_argument("--ckpt", required=True)
    args = ap.parse_args()
    cfg = json.load(open(args.config))
    seed_torch(cfg["seed"])
    rng = np.random.default_rng(cfg["seed"] + 1)
    train_bags, val_bags = split(load_bags(args.bags), cfg["val_fraction"])
    model = AttentionMIL(cfg["feat_dim"], cfg["hidden"], cfg["dropout"])
    opt = torch.optim.Adam(model.parameters(), lr=cfg["lr"], weight_decay=cfg["weight_decay"])
    best = float("inf")
    for epoch in range(cfg["epochs"]):
        t0 = time.time()
        tr = train_epoch(model, train_bags, opt, rng)
        vl, va = validate(model, val_bags)
        mark = ""
        if vl < best:
            best = vl
            torch.save(model.state_dict(), args.ckpt)
            mark = " *"
        print(f"epoch {epoch:02d} train {tr:.4f} val {vl:.4f} acc {va:.3f} ({time.time() - t0:.2f}s){mark}")
    print(f"best val loss {best:.6f}")


if __name__ == "__main__":
    main()
