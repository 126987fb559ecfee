"""Score the hold-out customers with the trained model."""
import csv
import pathlib

import torch

from data import N_FEATURES, make_customers, split
from model import ANN

CKPT = pathlib.Path("lightning_logs/version_0/checkpoints")


def newest(folder):
    return sorted(folder.glob("epoch=*.ckpt"))[-1]


def main():
    _, (x_test, y_test) = split(*make_customers())

    model = ANN(n_features=N_FEATURES)  # cause
    model.load_from_checkpoint(newest(CKPT))  # cause
    model.eval()

    with torch.no_grad():
        proba = torch.sigmoid(model(x_test))
    with open("predictions.csv", "w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["customer", "churn_proba", "churn"])
        for i, p in enumerate(proba.tolist()):
            writer.writerow([i, f"{p:.6f}", int(p > 0.5)])
    accuracy = ((proba > 0.5).float() == y_test).float().mean().item()
    print(f"hold-out customers: {len(x_test)}")
    print(f"predicted churners: {int((proba > 0.5).sum())}")
    print(f"hold-out accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
