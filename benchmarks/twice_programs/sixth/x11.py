"""https://github.com/Lightning-AI/pytorch-lightning/issues/20953 - the asynchronous checkpoint writer gets references to live tensors, which training keeps changing while the other thread writes (the fix clones them first)."""
import io
import json
import os
import queue
import random
import threading
import time

import numpy as np
import torch
from torch import nn

SEED = 31


class AsyncCheckpointIO:
    """Serializes checkpoints on a background thread."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.jobs = queue.Queue()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self):
        while True:
            job = self.jobs.get()
            if job is None:
                return
            path, payload = job
            buf = io.BytesIO()
            torch.save(payload, buf)
            with open(path, "wb") as f:
                f.write(buf.getvalue())

    def save(self, name, payload):
        self.jobs.put((os.path.join(self.folder, name), payload))  # cause

    def close(self):
        self.jobs.put(None)
        self.thread.join()


class Trainer:
    def __init__(self, model, lr, io_plugin):
        self.model = model
        self.opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.io = io_plugin
        self.global_step = 0

    def dump_checkpoint(self):
        weights = self.model.state_dict()  # cause
        return {"step": self.global_step, "weights": weights}

    def fit(self, x, y, epochs, batch, every):
        names = []
        for epoch in range(epochs):
            perm = torch.randperm(len(x))
            for i in range(0, len(x), batch):
                idx = perm[i:i + batch]
                loss = nn.functional.mse_loss(self.model(x[idx]), y[idx])
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.global_step += 1
                if self.global_step % every == 0:
                    name = f"step{self.global_step:05d}.pt"
                    self.io.save(name, self.dump_checkpoint())
                    names.append(name)
        return names, loss.item()


def make_data(n):
    rng = np.random.default_rng(SEED)
    x = rng.uniform(-1, 1, (n, 6)).astype(np.float32)
    y = np.sin(3 * x[:, :1] * x[:, 1:2]) + x[:, 2:3] ** 2 - 0.5 * x[:, 3:4]
    y += rng.normal(0, 0.05, y.shape)
    return torch.from_numpy(x), torch.from_numpy(y.astype(np.float32))


def build():
    return nn.Sequential(nn.Linear(6, 96), nn.Tanh(), nn.Linear(96, 96), nn.Tanh(), nn.Linear(96, 1))


@torch.no_grad()
def average_checkpoints(folder, names):
    total = None
    for name in names:
        w = torch.load(os.path.join(folder, name))["weights"]
        total = {k: v.double() for k, v in w.items()} if total is None else {k: total[k] + w[k] for k in total}
    model = build()
    model.load_state_dict({k: (v / len(names)).float() for k, v in total.items()})
    return model


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    t0 = time.time()
    x, y = make_data(1600)
    model = build()
    plugin = AsyncCheckpointIO("checkpoints")
    trainer = Trainer(model, lr=0.02, io_plugin=plugin)
    names, last = trainer.fit(x[:1300], y[:1300], epochs=12, batch=16, every=65)
    plugin.close()
    print(f"{trainer.global_step} steps, {len(names)} checkpoints, {time.time() - t0:.2f}s, pid {os.getpid()}")

    rows = []
    with torch.no_grad():
        for name in names[-4:]:
            m = average_checkpoints("checkpoints", [name])
            rows.append({"checkpoint": name, "val_mse": nn.functional.mse_loss(m(x[1300:]), y[1300:]).item()})
            print(name, f"{rows[-1]['val_mse']:.7f}")
        swa = average_checkpoints("checkpoints", names[-8:])
        swa_mse = nn.functional.mse_loss(swa(x[1300:]), y[1300:]).item()
    print(f"average of 8: {swa_mse:.7f}")
    with open("eval.json", "w") as f:
        json.dump({"final_train": last, "rows": rows, "swa_mse": swa_mse, "date": time.ctime()}, f, indent=1)


if __name__ == "__main__":
    main()
