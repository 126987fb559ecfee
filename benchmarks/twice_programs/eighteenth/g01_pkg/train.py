"""Train and write the checkpoint."""
import json
import pathlib
import random
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from data import N_FEATURES, make_customers, split
from model import ANN

EPOCHS = 8
OUT = pathlib.Path("lightning_logs/version_0/checkpoints")


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        logits = model(x)
    loss = nn.functional.binary_cross_entropy_with_logits(logits, y).item()
    accuracy = ((logits > 0).float() == y).float().mean().item()
    return {"val_loss": round(loss, 6), "val_acc": round(accuracy, 6)}


def main():
    seed_everything(1234)
    (x_train, y_train), (x_test, y_test) = split(*make_customers())
    loader = DataLoader(
        TensorDataset(x_train, y_train),
        batch_size=64,
        shuffle=True,
        generator=torch.Generator().manual_seed(1234),
    )
    model = ANN(n_features=N_FEATURES)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = []
    for epoch in range(EPOCHS):
        model.train()
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(xb), yb)
            loss.backward()
            optimizer.step()
        metrics = evaluate(model, x_test, y_test)
        history.append(metrics)
        print(f"{time.strftime('%H:%M:%S')} epoch {epoch}: {metrics}")
    OUT.mkdir(parents=True, exist_ok=True)
    model.save_checkpoint(OUT / f"epoch={EPOCHS - 1}.ckpt", EPOCHS - 1, metrics)
    pathlib.Path("lightning_logs/version_0/metrics.json").write_text(json.dumps(history, indent=1))


if __name__ == "__main__":
    main()
