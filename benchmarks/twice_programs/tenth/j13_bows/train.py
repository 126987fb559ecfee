"""Train the matching model with swapped and shuffled captions as negatives."""
import argparse
import csv
import json
import time

import numpy as np
import torch
import torch.nn.functional as F

from model import build


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--config", required=True)
    ap.add_argument("--data", required=True)
    ap.add_argument("--checkpoint", required=True)
    ap.add_argument("--log", required=True)
    args = ap.parse_args()
    with open(args.config) as fh:
        cfg = json.load(fh)
    torch.set_num_threads(1)
    np.random.seed(cfg["seed"])
    torch.manual_seed(cfg["seed"])

    d = np.load(f"{args.data}/train.npz")
    image = torch.from_numpy(d["image"])
    pos = torch.from_numpy(d["caption"])
    hard = [torch.from_numpy(d[k]) for k in ("relation", "attribution")]
    net = build(cfg)
    opt = torch.optim.AdamW(net.parameters(), lr=cfg["lr"], weight_decay=0.01)
    rows = []
    for epoch in range(1, cfg["epochs"] + 1):
        t0 = time.time()
        net.train()
        order = torch.randperm(len(image))
        losses = []
        for s in range(0, len(order), cfg["batch_size"]):
            b = order[s:s + cfg["batch_size"]]
            negs = [h[b] for h in hard[: cfg["negatives"]]] + [pos[b].roll(1, 0)]
            texts = torch.cat([pos[b]] + negs)
            out = net(image[b].repeat(len(negs) + 1, 1), texts)
            out = out.view(len(negs) + 1, -1).T
            loss = F.cross_entropy(out, torch.zeros(len(b), dtype=torch.long))
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        rows.append([epoch, round(float(np.mean(losses)), 6)])
        print(f"epoch {epoch} loss {rows[-1][1]:.5f}")
        print(f"  epoch time {time.time() - t0:.2f} s")
    torch.save(net.state_dict(), args.checkpoint)
    with open(args.log, "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["epoch", "loss"])
        w.writerows(rows)


if __name__ == "__main__":
    main()
