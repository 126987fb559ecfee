"""https://github.com/mostly-ai/mostlyai-engine/pull/121 : with a seed set the generated tables are reproducible except for the uuid4 keys;
everything that sorts or groups by key afterwards is different each time. Fixed by drawing the uuids from the seeded generator."""
import json
import random
import time
import uuid

import numpy as np
import pandas as pd
import torch
from torch import nn

SEED = 77


def set_random_state(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Encoder:
    """Learns marginals and a Gaussian copula of the numeric columns."""

    def fit(self, frame):
        self.columns = list(frame.columns)
        self.sorted = {c: np.sort(frame[c].to_numpy()) for c in self.columns}
        z = np.stack([frame[c].rank().to_numpy() / (len(frame) + 1) for c in self.columns], 1)
        z = np.log(z / (1 - z))
        self.chol = np.linalg.cholesky(np.corrcoef(z.T) + 1e-6 * np.eye(len(self.columns)))
        return self

    def sample(self, n):
        z = np.random.randn(n, len(self.columns)) @ self.chol.T
        u = 1 / (1 + np.exp(-1.7 * z))
        return pd.DataFrame({c: np.quantile(self.sorted[c], u[:, i]) for i, c in enumerate(self.columns)})


def original(n=800):
    rs = np.random.RandomState(0)
    age = rs.randint(18, 80, n)
    income = np.exp(rs.normal(10, 0.4, n) + 0.004 * age)
    orders = rs.poisson(2 + income / 30000)
    return pd.DataFrame({"age": age.astype(float), "income": income, "orders": orders.astype(float)})


def make_key():
    return str(uuid.uuid4())  # cause


def generate(encoder, n):
    subjects = encoder.sample(n)
    subjects.insert(0, "id", [make_key() for _ in range(n)])
    rows = []
    for key, income, orders in subjects[["id", "income", "orders"]].itertuples(index=False):
        for _ in range(max(1, int(round(orders)))):
            rows.append((key, float(np.random.gamma(2.0, income / 4000)), int(np.random.randint(0, 7))))
    return subjects, pd.DataFrame(rows, columns=["subject_id", "amount", "weekday"])


def training_table(subjects, purchases):
    agg = purchases.groupby("subject_id").agg(total=("amount", "sum"), top=("amount", "max"), weekend=("weekday", lambda s: (s >= 5).mean()))
    table = agg.join(subjects.set_index("id"))
    return table[["total", "top", "weekend", "age", "orders"]].to_numpy(np.float32), np.log(table["income"].to_numpy(np.float32))


def standardise(a, mean=None, std=None):
    mean, std = (a.mean(0), a.std(0)) if mean is None else (mean, std)
    return (a - mean) / std, mean, std


def train(x, y, epochs=12, batch=64):
    net = nn.Sequential(nn.Linear(x.shape[1], 24), nn.Tanh(), nn.Linear(24, 1))
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    x, y = torch.from_numpy(x), torch.from_numpy(y)[:, None]
    for epoch in range(epochs):
        total = 0.0
        for rows in torch.randperm(len(x)).split(batch):
            loss = nn.functional.mse_loss(net(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(rows)
    return net, total / len(x)


def main():
    t = time.time()
    set_random_state(SEED)
    encoder = Encoder().fit(original())
    subjects, purchases = generate(encoder, 1500)
    print("generated %d subjects, %d purchases in %.2f s" % (len(subjects), len(purchases), time.time() - t))
    x, y = training_table(subjects, purchases)
    cut = int(0.8 * len(x))
    x_tr, mean, std = standardise(x[:cut])
    net, loss = train(x_tr, y[:cut] - 10)
    with torch.no_grad():
        pred = net(torch.from_numpy(standardise(x[cut:], mean, std)[0])).numpy()[:, 0] + 10
    mae = float(np.abs(pred - y[cut:]).mean())
    print("loss %.6f  holdout mae %.6f" % (loss, mae))
    stats = {c: float(subjects[c].mean()) for c in ("age", "income", "orders")}
    with open("quality.json", "w") as f:
        json.dump({"loss": loss, "mae": mae, "means": stats}, f)
    print("report written", time.strftime("%Y-%m-%dT%H:%M:%S"))


if __name__ == "__main__":
    main()
