"""NumPy re-implementation of a small Keras-like API, used for a tabular regression exercise.

Prints Keras-style progress lines, keeps a History object, writes weights to HDF5,
history to pickle, and a CSVLogger file.
"""
import csv
import getpass
import pickle
import sys
import time
from collections import OrderedDict
from datetime import datetime, timezone
from pathlib import Path

import h5py
import numpy as np

BATCH_SIZE = 64
EPOCHS = 40
SEED = 1234
OUT = Path("artifacts")


class Dense:
    def __init__(self, units, activation=None, name="dense"):
        self.units, self.activation, self.name = units, activation, name

    def build(self, fan_in, rng):
        lim = np.sqrt(6 / (fan_in + self.units))
        self.W = rng.uniform(-lim, lim, (fan_in, self.units))
        self.b = np.zeros(self.units)
        return self.units

    def forward(self, x, training):
        self.x = x
        self.z = x @ self.W + self.b
        return np.maximum(self.z, 0) if self.activation == "relu" else self.z

    def backward(self, g):
        if self.activation == "relu":
            g = g * (self.z > 0)
        self.grads = [self.x.T @ g, g.sum(0)]
        return g @ self.W.T

    @property
    def params(self):
        return [self.W, self.b]


class Dropout:
    def __init__(self, rate, name="dropout"):
        self.rate, self.name, self.params = rate, name, []

    def build(self, fan_in, rng):
        self.rng = rng
        return fan_in

    def forward(self, x, training):
        if not training:
            return x
        self.mask = (self.rng.random(x.shape) >= self.rate) / (1 - self.rate)
        return x * self.mask

    def backward(self, g):
        self.grads = []
        return g * self.mask


class Adam:
    def __init__(self, lr=1e-3, b1=0.9, b2=0.999, eps=1e-7):
        self.lr, self.b1, self.b2, self.eps, self.t, self.m, self.v = lr, b1, b2, eps, 0, {}, {}

    def apply(self, layers):
        self.t += 1
        corr = np.sqrt(1 - self.b2 ** self.t) / (1 - self.b1 ** self.t)
        for li, layer in enumerate(layers):
            for pi, (p, g) in enumerate(zip(layer.params, layer.grads)):
                k = (li, pi)
                self.m[k] = self.b1 * self.m.get(k, 0) + (1 - self.b1) * g
                self.v[k] = self.b2 * self.v.get(k, 0) + (1 - self.b2) * g * g
                p -= self.lr * corr * self.m[k] / (np.sqrt(self.v[k]) + self.eps)


class Progbar:
    """Progress bar in the manner of keras.utils.Progbar (verbose=1)."""

    def __init__(self, target, width=30, interval=0.05):
        self.target, self.width, self.interval = target, width, interval
        self._start = time.time()
        self._last = 0

    def update(self, cur, values, finalize=False):
        now = time.time()
        if now - self._last < self.interval and not finalize:
            return
        self._last = now
        done = int(self.width * cur / self.target)
        bar = "=" * done + (">" if done < self.width else "") + "." * max(self.width - done - 1, 0)
        per = (now - self._start) / max(cur, 1)
        eta = per * (self.target - cur)
        per_s = f"{per:.0f}s/step" if per >= 1 else (f"{per * 1e3:.0f}ms/step" if per >= 1e-3 else f"{per * 1e6:.0f}us/step")
        when = f"{now - self._start:.0f}s {per_s}" if finalize else f"ETA: {eta:.0f}s"
        info = "".join(f" - {k}: {v:.4f}" for k, v in values.items())
        sys.stdout.write(f"\r{cur}/{self.target} [{bar}] - {when}{info}" + ("\n" if finalize else ""))
        sys.stdout.flush()


class Sequential:
    def __init__(self, layers, input_dim, seed):
        rng = np.random.default_rng(seed)
        self.layers, self.rng, dim = layers, rng, input_dim
        for layer in layers:
            dim = layer.build(dim, rng)

    def summary(self):
        print("_" * 50)
        for layer in self.layers:
            print(f"{layer.name:<22}{type(layer).__name__:<14}{sum(p.size for p in layer.params):>10,}")
        print("_" * 50)
        print(f"Total params: {sum(p.size for q in self.layers for p in q.params):,}")

    def __call__(self, x, training=False):
        for layer in self.layers:
            x = layer.forward(x, training)
        return x

    def train_on_batch(self, x, y, opt):
        err = self(x, True)[:, 0] - y
        delta = 1.0
        a = np.abs(err)
        loss = np.where(a < delta, 0.5 * err ** 2, delta * (a - 0.5 * delta)).mean()
        g = (np.clip(err, -delta, delta) / len(y))[:, None]
        for layer in reversed(self.layers):
            g = layer.backward(g)
        opt.apply(self.layers)
        return loss, a.mean()

    def evaluate(self, x, y):
        err = self(x)[:, 0] - y
        a = np.abs(err)
        return np.where(a < 1, 0.5 * err ** 2, a - 0.5).mean(), a.mean()

    def fit(self, x, y, validation_data, epochs, batch_size, opt, callbacks=()):
        history = OrderedDict((k, []) for k in ("loss", "mae", "val_loss", "val_mae", "lr", "epoch_time"))
        steps = len(x) // batch_size
        for ep in range(epochs):
            print(f"Epoch {ep + 1}/{epochs}")
            t0 = time.perf_counter()
            perm = self.rng.permutation(len(x))
            bar, tot, mae = Progbar(steps), 0.0, 0.0
            for s in range(steps):
                idx = perm[s * batch_size:(s + 1) * batch_size]
                loss, m = self.train_on_batch(x[idx], y[idx], opt)
                tot, mae = tot + loss, mae + m
                bar.update(s + 1, {"loss": tot / (s + 1), "mae": mae / (s + 1)})
            vl, vm = self.evaluate(*validation_data)
            logs = {"loss": tot / steps, "mae": mae / steps, "val_loss": vl, "val_mae": vm, "lr": opt.lr,
                    "epoch_time": time.perf_counter() - t0}
            bar.update(steps, {k: logs[k] for k in ("loss", "mae", "val_loss", "val_mae")}, finalize=True)
            for k, v in logs.items():
                history[k].append(float(v))
            for cb in callbacks:
                cb(ep, logs, self, opt)
        return history

    def save_weights(self, path, **attrs):
        with h5py.File(path, "w") as f:
            f.attrs["backend"] = "numpy"
            f.attrs["layer_names"] = [q.name for q in self.layers]
            for k, v in attrs.items():
                f.attrs[k] = v
            for layer in self.layers:
                g = f.create_group(layer.name)
                for n, p in zip(("kernel:0", "bias:0"), layer.params):
                    g.create_dataset(n, data=p.astype("float32"))


def make_housing(n=24000):
    rng = np.random.default_rng(SEED)
    area, age, rooms = rng.gamma(6, 18, n), rng.uniform(0, 80, n), rng.integers(1, 8, n)
    dist, noise = rng.exponential(6, n), rng.normal(0, 0.15, n)
    district = rng.integers(0, 6, n)
    eff = np.array([0.4, 0.1, -0.2, 0.3, -0.3, 0.0])[district]
    y = 0.012 * area - 0.006 * age + 0.05 * rooms - 0.04 * dist + eff + 0.2 * np.sin(age / 8) + noise
    x = np.column_stack([area, age, rooms, dist, np.eye(6)[district]])
    return x, y


def reduce_lr_on_plateau(patience=2, factor=0.5):
    st = {"best": np.inf, "wait": 0}

    def cb(ep, logs, model, opt):
        if logs["val_loss"] < st["best"] - 1e-4:
            st.update(best=logs["val_loss"], wait=0)
            return
        st["wait"] += 1
        if st["wait"] >= patience:
            opt.lr *= factor
            st["wait"] = 0
            print(f"\nEpoch {ep + 1}: ReduceLROnPlateau reducing learning rate to {opt.lr:.6g}.")
    return cb


def csv_logger(path):
    def cb(ep, logs, model, opt):
        with open(path, "a", newline="") as f:
            w = csv.writer(f)
            if ep == 0:
                w.writerow(["epoch", *logs])
            w.writerow([ep, *(repr(float(v)) for v in logs.values())])
    return cb


def main():
    OUT.mkdir(exist_ok=True)
    started = datetime.now(timezone.utc)
    print(f"{started:%Y-%m-%d %H:%M:%S.%f}: I core/platform: CPU build, numpy {np.__version__}")
    x, y = make_housing()
    ntr, nva = 18000, 3000
    mu, sd = x[:ntr].mean(0), x[:ntr].std(0) + 1e-9
    x = (x - mu) / sd
    model = Sequential([Dense(64, "relu", "dense"), Dropout(0.05, "dropout"), Dense(32, "relu", "dense_1"),
                        Dense(1, None, "dense_2")], x.shape[1], SEED)
    model.summary()
    opt = Adam(3e-3)
    hist = model.fit(x[:ntr], y[:ntr], (x[ntr:ntr + nva], y[ntr:ntr + nva]), EPOCHS, BATCH_SIZE, opt,
                     [csv_logger(OUT / "training.log"), reduce_lr_on_plateau()])
    loss, mae = model.evaluate(x[ntr + nva:], y[ntr + nva:])
    print(f"Test loss: {loss:.5f} - Test MAE: {mae:.5f}")
    model.save_weights(OUT / "model.weights.h5", created=datetime.now(timezone.utc).isoformat(),
                       training_time=float(sum(hist["epoch_time"])), val_loss=hist["val_loss"][-1])
    with open(OUT / "history.pkl", "wb") as f:
        pickle.dump({"history": dict(hist), "started": started, "params": {"epochs": EPOCHS, "batch": BATCH_SIZE}}, f)
    np.savez(OUT / "test_predictions.npz", pred=model(x[ntr + nva:])[:, 0], y=y[ntr + nva:])
    mins, secs = divmod(sum(hist["epoch_time"]), 60)
    print(f"Training finished for user {getpass.getuser()} in {int(mins)}m {secs:.2f}s "
          f"(mean {np.mean(hist['epoch_time']) * 1e3:.1f} ms/epoch)")


if __name__ == "__main__":
    main()
