"""Preprocessing in a pool and a loader with workers: each logs its process, results in their own order, a heartbeat thread, a lock file, psutil figures."""

import argparse
import hashlib
import json
import logging
import logging.handlers
import multiprocessing as mp
import os
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np
import psutil
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def features(job):
    index, seed = job
    t = time.time()
    rng = np.random.default_rng(seed)
    x = np.cumsum(rng.normal(size=512))
    spectrum = np.abs(np.fft.rfft(x))[:16]
    return {"index": index, "features": spectrum.astype("float32"), "label": float(x[-1] > 0), "pid": os.getpid(), "seconds": time.time() - t}


class Spectra(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        noise = torch.randn(16) * 0.01
        return torch.tensor(self.rows[i]["features"]).log1p() + noise, torch.tensor(self.rows[i]["label"])


def init(worker):
    info = torch.utils.data.get_worker_info()
    logging.getLogger("loader").info("worker %d up, pid %d, ppid %d, seed offset %d", worker, os.getpid(), os.getppid(), info.id)


class Heartbeat(threading.Thread):
    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.stopped, self.beats = path, threading.Event(), 0

    def run(self):
        while not self.stopped.wait(0.2):
            self.beats += 1
            me = psutil.Process()
            with open(self.path, "w") as f:
                json.dump({"beat": self.beats, "time": time.time(), "rss": me.memory_info().rss, "cpu": me.cpu_percent(), "threads": me.num_threads()}, f)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(process)d] %(threadName)s %(name)s: %(message)s")
    log = logging.getLogger("main")
    torch.manual_seed(0)
    beat = Heartbeat("heartbeat.json")
    beat.start()
    with open("run.lock", "w") as f:
        f.write(f"{os.getpid()}\n")
    work = tempfile.mkdtemp(prefix="prep_")
    log.info("scratch folder %s", work)
    t = time.time()
    rows = {}
    with ProcessPoolExecutor(args.workers, mp_context=mp.get_context("fork")) as pool:
        for done in as_completed([pool.submit(features, (i, 100 + i)) for i in range(64)]):
            row = done.result()
            rows[row["index"]] = row
    rows = [rows[i] for i in sorted(rows)]
    np.save(os.path.join(work, "cache.npy"), np.stack([r["features"] for r in rows]))
    cached = np.load(os.path.join(work, "cache.npy"))
    log.info("preprocessed %d in %.3fs by %d workers, mean %.2f ms, sha %s", len(rows), time.time() - t, args.workers, 1e3 * sum(r["seconds"] for r in rows) / len(rows), hashlib.sha1(cached.tobytes()).hexdigest()[:10])
    np.save("features.npy", cached)
    loader = DataLoader(Spectra(rows), 8, shuffle=True, num_workers=args.workers, worker_init_fn=init, generator=torch.Generator().manual_seed(2), persistent_workers=True)
    model = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 1))
    opt = torch.optim.Adam(model.parameters(), 1e-2)
    history = []
    for epoch in range(3):
        t, waited, total = time.perf_counter(), 0.0, 0.0
        mark = time.perf_counter()
        for x, y in loader:
            waited += time.perf_counter() - mark
            loss = nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
            mark = time.perf_counter()
        took = time.perf_counter() - t
        log.info("epoch %d: loss %.6f, %.1f samples/s, waited %.0f%% for data", epoch, total / len(loader), 64 / took, 100 * waited / took)
        history.append({"epoch": epoch, "loss": total / len(loader), "took": took})
    beat.stopped.set()
    beat.join()
    os.remove(os.path.join(work, "cache.npy"))
    os.rmdir(work)
    os.remove("run.lock")
    os.remove("heartbeat.json")
    with open("history.json", "w") as f:
        json.dump(history, f)
    torch.save(model.state_dict(), "model.pt")
    print(f"peak rss {psutil.Process().memory_info().rss / 1e6:.1f} MB, load {os.getloadavg()[0]:.2f}, {psutil.cpu_count()} cpus, uptime since {time.strftime('%F %T', time.localtime(psutil.boot_time()))}")


if __name__ == "__main__":
    main()
