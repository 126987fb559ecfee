"""Audio feature extraction with a multiprocessing pool: synthetic clips -> log-mel + statistics.

Each worker has its own log file and progress is printed as clips finish (imap_unordered),
the collected table and feature archive are sorted by clip id.
"""
import argparse
import csv
import logging
import multiprocessing as mp
import os
import socket
import sys
import tempfile
import threading
import time
import wave
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import signal
from scipy.fft import dct

SR = 8000
N_FFT, HOP, N_MELS, N_MFCC = 256, 128, 26, 13


def get_args():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--out", type=Path, default=Path("features"))
    p.add_argument("--n-clips", type=int, default=72)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--seed", type=int, default=31)
    return p.parse_args()


def mel_filterbank():
    hz2mel = lambda f: 2595 * np.log10(1 + f / 700)
    mel2hz = lambda m: 700 * (10 ** (m / 2595) - 1)
    pts = mel2hz(np.linspace(hz2mel(60), hz2mel(SR / 2), N_MELS + 2))
    bins = np.floor((N_FFT + 1) * pts / SR).astype(int)
    fb = np.zeros((N_MELS, N_FFT // 2 + 1))
    for m in range(1, N_MELS + 1):
        lo, c, hi = bins[m - 1], bins[m], bins[m + 1]
        fb[m - 1, lo:c + 1] = np.linspace(0, 1, max(c - lo + 1, 1))
        fb[m - 1, c:hi + 1] = np.linspace(1, 0, max(hi - c + 1, 1))
    return fb


def synth(clip_id, seed):
    """Harmonic tone, chirp or noise burst - the label is the kind."""
    rng = np.random.default_rng([seed, clip_id])
    kind = int(rng.integers(3))
    dur = rng.uniform(1.5, 3.0)
    t = np.arange(int(SR * dur)) / SR
    f0 = rng.uniform(110, 500)
    if kind == 0:
        x = sum(np.sin(2 * np.pi * f0 * k * t) / k for k in range(1, 5))
    elif kind == 1:
        x = signal.chirp(t, f0, dur, f0 * rng.uniform(3, 6))
    else:
        b, a = signal.butter(2, [f0 / (SR / 2), min(f0 * 4, SR * 0.45) / (SR / 2)], "band")
        x = signal.lfilter(b, a, rng.normal(0, 1, len(t))) * 3
    x = x * np.exp(-t * rng.uniform(0.2, 1.5)) + rng.normal(0, 0.02, len(t))
    return (x / np.abs(x).max() * 0.9).astype("float32"), ["tone", "chirp", "noise"][kind]


def init_worker(log_dir, scratch_root, ready):
    global LOG, SCRATCH, FB
    SCRATCH = tempfile.mkdtemp(prefix=f"feat_{os.getpid()}_", dir=scratch_root)
    FB = mel_filterbank()
    LOG = logging.getLogger("worker")
    LOG.propagate = False
    h = logging.FileHandler(Path(log_dir) / f"worker-{os.getpid()}.log")
    h.setFormatter(logging.Formatter("%(asctime)s %(processName)s %(message)s"))
    LOG.addHandler(h)
    LOG.setLevel(logging.INFO)
    with ready.get_lock():
        ready.value += 1
        LOG.info("ready as number %d, scratch=%s", ready.value, SCRATCH)


def extract(job):
    clip_id, seed = job
    t0 = time.perf_counter()
    x, label = synth(clip_id, seed)
    fd, path = tempfile.mkstemp(suffix=".wav", dir=SCRATCH)
    os.close(fd)
    with wave.open(path, "wb") as w:
        w.setnchannels(1), w.setsampwidth(2), w.setframerate(SR)
        w.writeframes((x * 32767).astype("<i2").tobytes())
    with wave.open(path, "rb") as w:
        y = np.frombuffer(w.readframes(w.getnframes()), "<i2").astype("float64") / 32768
    os.remove(path)
    y = np.append(y[0], y[1:] - 0.97 * y[:-1])
    fr = np.lib.stride_tricks.sliding_window_view(y, N_FFT)[::HOP] * np.hanning(N_FFT)
    power = np.abs(np.fft.rfft(fr, axis=1)) ** 2
    logmel = np.log(power @ FB.T + 1e-8)
    mfcc = dct(logmel, type=2, axis=1, norm="ortho")[:, :N_MFCC]
    delta = np.gradient(mfcc, axis=0)
    freqs = np.fft.rfftfreq(N_FFT, 1 / SR)
    centroid = (power * freqs).sum(1) / power.sum(1)
    zcr = float((np.diff(np.signbit(y).astype(int)) != 0).mean())
    f, pxx = signal.welch(y, SR, nperseg=512)
    feats = {"centroid_mean": centroid.mean(), "centroid_std": centroid.std(), "zcr": zcr,
             "peak_hz": float(f[pxx.argmax()]), "flatness": float(np.exp(np.log(pxx + 1e-12).mean()) / pxx.mean())}
    vec = np.concatenate([mfcc.mean(0), mfcc.std(0), delta.std(0)]).astype("float32")
    took = time.perf_counter() - t0
    LOG.info("clip %04d %-5s %5d samples -> %d frames (%.2f ms)", clip_id, label, len(y), len(mfcc), took * 1e3)
    return clip_id, label, len(y), feats, vec, os.getpid(), mp.current_process().name, took


class Heartbeat(threading.Thread):
    """Prints the state of the pool once in a while."""

    def __init__(self, every, state):
        super().__init__(daemon=True)
        self.every, self.state, self.stop = every, state, threading.Event()

    def run(self):
        while not self.stop.wait(self.every):
            print(f"[heartbeat] {time.strftime('%X')} {self.state['done']} clips done", file=sys.stderr, flush=True)


def nearest_centroid_cv(X, y, k=4):
    X = (X - X.mean(0)) / (X.std(0) + 1e-9)
    accs, idx = [], np.arange(len(X))
    for f in range(k):
        te = idx % k == f
        cents = {c: X[~te & (y == c)].mean(0) for c in np.unique(y)}
        names = sorted(cents)
        d = np.stack([((X[te] - cents[c]) ** 2).sum(1) for c in names], 1)
        accs.append(float((np.array(names)[d.argmin(1)] == y[te]).mean()))
    return accs


def main():
    args = get_args()
    log_dir = args.out / "logs"
    log_dir.mkdir(parents=True, exist_ok=True)
    print(f"{Path(sys.argv[0]).name} on {socket.gethostname()} (pid {os.getpid()}), {datetime.now():%c}")
    jobs = [(i, args.seed) for i in range(args.n_clips)]
    ctx = mp.get_context("spawn")
    scratch = tempfile.TemporaryDirectory(prefix="feat_")
    rows, vecs, state = [], {}, {"done": 0}
    hb = Heartbeat(0.5, state)
    hb.start()
    t0 = time.perf_counter()
    with ctx.Pool(args.workers, init_worker, (str(log_dir), scratch.name, ctx.Value("i", 0))) as pool:
        for clip_id, label, n, feats, vec, pid, name, took in pool.imap_unordered(extract, jobs, chunksize=3):
            rows.append({"clip": clip_id, "label": label, "samples": n, **feats, "worker": name, "pid": pid, "ms": took * 1e3})
            vecs[clip_id] = vec
            state["done"] += 1
            if state["done"] % 12 == 0:
                el = time.perf_counter() - t0
                print(f"{state['done']:>4}/{len(jobs)} | last clip {clip_id:04d} by {name} | {state['done'] / el:.1f} clips/s "
                      f"| remaining {el / state['done'] * (len(jobs) - state['done']):.1f}s")
        pool.close()
        pool.join()
    hb.stop.set()
    scratch.cleanup()
    wall = time.perf_counter() - t0
    df = pd.DataFrame(rows).sort_values("clip").reset_index(drop=True)
    df.drop(columns=["worker", "pid", "ms"]).to_csv(args.out / "features.csv", index=False, float_format="%.8g")
    X = np.stack([vecs[i] for i in range(args.n_clips)])
    np.savez_compressed(args.out / "mfcc.npz", X=X, label=df.label.to_numpy(dtype="U8"))
    with open(args.out / "processing.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["order", "clip", "pid", "worker", "ms"])
        for i, r in enumerate(rows):
            w.writerow([i, r["clip"], r["pid"], r["worker"], f"{r['ms']:.3f}"])
    print("\nclips per label:", df.label.value_counts().sort_index().to_dict())
    print(df.groupby("label")[["centroid_mean", "zcr", "flatness"]].mean().round(5).to_string())
    accs = nearest_centroid_cv(X.astype("float64"), df.label.to_numpy())
    print("nearest centroid cv accuracy:", " ".join(f"{a:.4f}" for a in accs), f"mean {np.mean(accs):.4f}")
    share = df.groupby("pid").size().sort_values(ascending=False)
    print("per worker:", ", ".join(f"{p}: {n}" for p, n in share.items()))
    audio = df.samples.sum() / SR
    print(f"{audio:.1f} s of audio in {wall:.2f} s wall ({audio / wall:.0f}x real time), cpu in workers {df.ms.sum() / 1e3:.2f} s")


if __name__ == "__main__":
    main()
