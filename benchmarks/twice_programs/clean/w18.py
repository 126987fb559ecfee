# %% [markdown]
# Beta-VAE on synthetic glyphs - exported notebook. Figures, latents and a packed run archive at the end.
# %%
import gzip
import io
import json
import math
import os
import pickle
import shutil
import tarfile
import tempfile
import time
from datetime import datetime
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn, optim
from torch.nn import functional as F

# %% settings
SEED = 8
LATENT = 6
HIDDEN = 160
BETA = 1.5
EPOCHS = 9
BATCH = 64
N = 1536
SIZE = 16
FIGS, RUN = Path("figures"), Path("run")
for d in (FIGS, RUN):
    d.mkdir(exist_ok=True)
torch.manual_seed(SEED)
np.random.seed(SEED)
torch.set_num_threads(1)
plt.rcParams["figure.dpi"] = 70
start_dt = datetime.now()
print("Notebook started:", start_dt.strftime("%d/%m/%Y, %H:%M:%S"))
print("cwd:", os.getcwd())


# %% decorator used in many notebooks
def timeit(f):
    def wrap(*a, **k):
        t = time.perf_counter()
        r = f(*a, **k)
        dt = time.perf_counter() - t
        TIMINGS.setdefault(f.__name__, []).append(dt)
        print(f"{f.__name__}: CPU times total: {dt:.2f} s" if dt > 1 else f"{f.__name__}: Wall time: {dt * 1e3:.0f} ms")
        return r
    return wrap


TIMINGS = {}


# %% data
@timeit
def make_glyphs(n, size):
    yy, xx = np.mgrid[0:size, 0:size]
    imgs, factors = np.zeros((n, size * size), "float32"), np.zeros((n, 4))
    for i in range(n):
        shape, r = np.random.randint(3), np.random.uniform(2.5, 5)
        cx, cy = np.random.uniform(5, size - 6, 2)
        if shape == 0:
            d = np.hypot(xx - cx, yy - cy) - r
        elif shape == 1:
            d = np.maximum(abs(xx - cx), abs(yy - cy)) - r * 0.85
        else:
            d = np.minimum(np.maximum(abs(xx - cx) - r, abs(yy - cy) - 1), np.maximum(abs(yy - cy) - r, abs(xx - cx) - 1))
        imgs[i] = (1 / (1 + np.exp(2.5 * d))).ravel()
        factors[i] = shape, r, cx, cy
    return torch.from_numpy(imgs), factors


X, factors = make_glyphs(N, SIZE)
n_train = int(0.85 * N)
Xtr, Xte = X[:n_train], X[n_train:]
print("data", tuple(X.shape), "mean intensity %.5f" % X.mean().item())


# %% model
class VAE(nn.Module):
    def __init__(self, d, h, z):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU())
        self.mu, self.logvar = nn.Linear(h, z), nn.Linear(h, z)
        self.dec = nn.Sequential(nn.Linear(z, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, d))

    def encode(self, x):
        h = self.enc(x)
        return self.mu(h), self.logvar(h)

    def forward(self, x):
        mu, lv = self.encode(x)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * lv)
        return self.dec(z), mu, lv


def elbo(logits, x, mu, lv):
    bce = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + lv - mu.pow(2) - lv.exp())
    return bce, kld


model = VAE(SIZE * SIZE, HIDDEN, LATENT)
opt = optim.Adam(model.parameters(), lr=1.5e-3)
print(model)


# %% training
def time_since(since, percent):
    """'1m 2s (- 3m 4s)' as in the PyTorch seq2seq tutorial."""
    s = time.time() - since
    rs = s / percent - s
    fmt = lambda v: f"{int(v // 60)}m {int(v % 60)}s"
    return f"{fmt(s)} (- {fmt(rs)})"


@timeit
def train_epoch(epoch):
    model.train()
    perm = torch.randperm(n_train)
    tot = np.zeros(2)
    t0 = time.time()
    for b, idx in enumerate(perm.split(BATCH)):
        out, mu, lv = model(Xtr[idx])
        bce, kld = elbo(out, Xtr[idx], mu, lv)
        opt.zero_grad()
        ((bce + BETA * kld) / len(idx)).backward()
        opt.step()
        tot += (bce.item(), kld.item())
        if b % 10 == 0:
            print("Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.6f}\tms/batch: {:.2f}".format(
                epoch, b * BATCH, n_train, 100.0 * b * BATCH / n_train, (bce.item() + BETA * kld.item()) / len(idx),
                (time.time() - t0) * 1e3 / (b + 1)))
    return tot / n_train


@torch.no_grad()
def evaluate():
    model.eval()
    mu, lv = model.encode(Xte)
    bce, kld = elbo(model.dec(mu), Xte, mu, lv)
    return np.array([bce.item(), kld.item()]) / len(Xte)


hist = {"train_bce": [], "train_kld": [], "test_bce": [], "test_kld": [], "epoch_seconds": []}
t_start = time.time()
for epoch in range(1, EPOCHS + 1):
    t = time.time()
    tr, te = train_epoch(epoch), evaluate()
    for k, v in zip(hist, (*tr, *te, time.time() - t)):
        hist[k].append(float(v))
    print(f"====> Epoch: {epoch} Average loss: {tr[0] + BETA * tr[1]:.4f} test: {te[0] + BETA * te[1]:.4f}  {time_since(t_start, epoch / EPOCHS)}")

# %% how much of each factor is linear in the code
with torch.no_grad():
    Z = model.encode(X)[0].double().numpy()
A = np.c_[Z, np.ones(len(Z))]
r2 = {}
for j, name in enumerate(("shape", "radius", "cx", "cy")):
    y = factors[:, j]
    coef, *_ = np.linalg.lstsq(A[:n_train], y[:n_train], rcond=None)
    res = y[n_train:] - A[n_train:] @ coef
    r2[name] = float(1 - (res ** 2).sum() / ((y[n_train:] - y[n_train:].mean()) ** 2).sum())
print("linear R2:", {k: round(v, 4) for k, v in r2.items()})

# %% figures
fig, ax = plt.subplots(1, 2, figsize=(8, 3))
ax[0].plot(hist["train_bce"], label="train")
ax[0].plot(hist["test_bce"], label="test")
ax[0].set_title("reconstruction")
ax[0].legend()
ax[1].plot(hist["train_kld"], label="KL")
ax[1].set_title("KL divergence")
fig.tight_layout()
fig.savefig(FIGS / "curves.pdf")
fig.savefig(FIGS / "curves.png")
plt.close(fig)
with torch.no_grad():
    grid = torch.sigmoid(model.dec(torch.randn(36, LATENT, generator=torch.Generator().manual_seed(3))))
canvas = grid.view(6, 6, SIZE, SIZE).permute(0, 2, 1, 3).reshape(6 * SIZE, 6 * SIZE).numpy()
plt.imsave(FIGS / "samples.png", canvas, cmap="gray", vmin=0, vmax=1)
fig = plt.figure(figsize=(5, 2.5))
plt.bar(list(r2), list(r2.values()))
plt.ylabel("linear $R^2$")
fig.savefig(FIGS / "r2.svg")
plt.close(fig)

# %% save everything
np.save(RUN / "latents.npy", Z.astype("float32"))
np.save(RUN / "samples.npy", grid.numpy())
torch.save({"model": model.state_dict(), "hist": hist, "finished": datetime.now(), "seed": SEED}, RUN / "vae.pt")
with open(RUN / "history.pkl", "wb") as f:
    pickle.dump({"hist": hist, "timings": TIMINGS, "started": start_dt}, f)
with gzip.open(RUN / "test_reconstruction.csv.gz", "wt") as f:
    f.write("i,bce\n")
    with torch.no_grad():
        per = F.binary_cross_entropy_with_logits(model.dec(model.encode(Xte)[0]), Xte, reduction="none").sum(1)
    for i, v in enumerate(per.tolist()):
        f.write(f"{i},{v:.6f}\n")
with open(RUN / "metrics.json", "w") as f:
    json.dump({"test_bce": hist["test_bce"][-1], "test_kld": hist["test_kld"][-1], "r2": r2,
               "timings": {k: {"n": len(v), "total": sum(v), "mean": sum(v) / len(v)} for k, v in TIMINGS.items()},
               "date": str(datetime.now().date()), "runtime": str(datetime.now() - start_dt)}, f, indent=4)
with tempfile.TemporaryDirectory() as tmp:
    print("packing in", tmp)
    arc = Path(tmp) / "bundle.tar.gz"
    with tarfile.open(arc, "w:gz") as tf:
        for p in sorted(RUN.glob("*.npy")) + [RUN / "vae.pt"]:
            tf.add(p, arcname=p.name)
        note = f"packed {datetime.now():%Y-%m-%d %H:%M:%S}\n".encode()
        info = tarfile.TarInfo("README")
        info.size, info.mtime = len(note), int(time.time())
        tf.addfile(info, io.BytesIO(note))
    shutil.copy(arc, RUN / "bundle.tar.gz")
print("size of the bundle: %.0f KiB" % (os.path.getsize(RUN / "bundle.tar.gz") / 1024))
print(f"final test loss {hist['test_bce'][-1] + BETA * hist['test_kld'][-1]:.6f}, runtime {math.ceil(time.time() - t_start)} s")
