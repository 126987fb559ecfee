"""Train a small VAE on pictures of simple shapes and store its encoder.

The shapes (disc, square, cross) are drawn by the program.  The encoder file is
what the later chapters start from, so the whole run is seeded.

Modelled on: https://github.com/datawhalechina/learn-world-model/pull/13
"""
import json
import os
import random
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEED = 42
SIZE = 16
KINDS = ("disc", "square", "cross")
LATENT = 4


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    os.makedirs("checkpoints", exist_ok=True)


def make_shape_image(kind):
    """One picture with a shape of random place, size and shade."""
    rng = np.random.default_rng()  # cause
    cx, cy = rng.uniform(5, SIZE - 5, size=2)
    radius = rng.uniform(2.0, 4.0)
    shade = rng.uniform(0.6, 1.0)
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    if kind == "disc":
        mask = (xx - cx) ** 2 + (yy - cy) ** 2 <= radius**2
    elif kind == "square":
        mask = (abs(xx - cx) <= radius) & (abs(yy - cy) <= radius)
    else:
        mask = ((abs(xx - cx) <= 1) & (abs(yy - cy) <= radius)) | (
            (abs(yy - cy) <= 1) & (abs(xx - cx) <= radius)
        )
    return (mask * shade).astype("float32")


class ShapeDataset(Dataset):
    """n pictures, the kinds in turn."""

    def __init__(self, n=900, seed=SEED):
        np.random.seed(seed)
        self.labels = np.array([i % len(KINDS) for i in range(n)])
        self.images = np.stack([make_shape_image(KINDS[k]) for k in self.labels])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return torch.from_numpy(self.images[i]).flatten(), int(self.labels[i])


class VAE(nn.Module):
    def __init__(self, hidden=64, latent=LATENT):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(SIZE * SIZE, hidden), nn.ReLU())
        self.mu = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, SIZE * SIZE), nn.Sigmoid()
        )

    def encode(self, x):
        h = self.encoder(x)
        return self.mu(h), self.logvar(h)

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.decoder(z), mu, logvar


def loss_fn(reconstruction, x, mu, logvar, beta=0.5):
    rec = nn.functional.binary_cross_entropy(reconstruction, x, reduction="sum") / len(x)
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()) / len(x)
    return rec + beta * kl, rec, kl


def train(model, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    history = []
    for epoch in range(epochs):
        total = rec_total = kl_total = 0.0
        began = time.time()
        for x, _ in loader:
            optimizer.zero_grad()
            out, mu, logvar = model(x)
            loss, rec, kl = loss_fn(out, x, mu, logvar)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
            rec_total += rec.item() * len(x)
            kl_total += kl.item() * len(x)
        n = len(loader.dataset)
        history.append({"epoch": epoch, "loss": total / n, "rec": rec_total / n, "kl": kl_total / n})
        print(f"epoch {epoch}  loss {total / n:.4f}  ({time.time() - began:.2f}s)")
    return history


def latent_summary(model, dataset):
    """Mean code of every kind."""
    model.eval()
    x = torch.stack([dataset[i][0] for i in range(len(dataset))])
    with torch.no_grad():
        mu, _ = model.encode(x)
    return {
        kind: [round(v, 5) for v in mu[dataset.labels == k].mean(0).tolist()]
        for k, kind in enumerate(KINDS)
    }


def main():
    set_seed(SEED)
    dataset = ShapeDataset()
    print(f"{len(dataset)} pictures, mean shade {dataset.images.mean():.5f}")
    loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=0)
    model = VAE()
    history = train(model, loader, epochs=10)
    torch.save(
        {"encoder": model.encoder.state_dict(), "mu": model.mu.state_dict()},
        "checkpoints/vae_encoder.pt",
    )
    report = {"seed": SEED, "history": history, "codes": latent_summary(model, dataset)}
    with open("report.json", "w") as handle:
        json.dump(report, handle, indent=1)
    for kind, code in report["codes"].items():
        print(f"{kind:7s} {code}")


if __name__ == "__main__":
    main()
