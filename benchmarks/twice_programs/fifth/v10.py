"""https://github.com/joke2k/faker/issues/14: synthetic records from Faker, whose generator is its own; random.seed does not reach it."""

import hashlib
import random

import numpy as np
import torch
from faker import Faker

random.seed(5)
np.random.seed(5)
torch.manual_seed(5)


def people(n):
    fake = Faker("en_US")
    rows = []
    for _ in range(n):
        rows.append({"name": fake.name(), "city": fake.city(), "job": fake.job()})  # cause
    return rows


def bucket(text, size=64):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little") % size


def encode(rows):
    ids = torch.tensor([[bucket(row["name"]), bucket(row["city"]), bucket(row["job"])] for row in rows])
    label = torch.tensor([len(row["name"]) > 13 for row in rows], dtype=torch.float32)
    return ids, label


def main():
    ids, label = encode(people(120))
    table = torch.nn.Embedding(64, 8)
    head = torch.nn.Linear(24, 1)
    optimizer = torch.optim.Adam([*table.parameters(), *head.parameters()], lr=0.01)
    for step in range(15):
        score = head(table(ids).flatten(1)).squeeze(1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(score, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())


main()
