"""Train the timeline model with next-token prediction."""
import argparse
import os

import numpy as np
import torch
from torch.nn import functional as F

from model import TimelineModel
from vocab import CONTEXT, INDEX, TOKENS


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", required=True)
    ap.add_argument("--model", required=True)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--epochs", type=int, default=6)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    rng = np.random.default_rng(args.seed)

    data = torch.from_numpy(np.load(os.path.join(args.data, "train.npy")))
    model = TimelineModel(len(TOKENS), CONTEXT)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(1, args.epochs + 1):
        losses = []
        for part in np.array_split(rng.permutation(len(data)), max(1, len(data) // 32)):
            ids = data[torch.from_numpy(part)]
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(),
                                   ignore_index=INDEX["PAD"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: loss {np.mean(losses):.5f}", flush=True)
    torch.save({"config": model.config, "state": model.state_dict()}, args.model)


if __name__ == "__main__":
    main()
