"""Keyword spotting with noise-augmented audio.

Modelled on https://github.com/iver56/audiomentations/issues/362
Synthesises keywords, mixes background noise in and trains a small spectrogram classifier.
"""
import argparse
import json
import logging
import random
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.io import wavfile
from scipy.signal import butter, lfilter, stft
from torch import nn

log = logging.getLogger("kws")
RATE = 8000


@dataclass
class Config:
    seed: int = 42
    per_class: int = 60
    epochs: int = 8
    batch: int = 32
    min_snr_db: float = 0.0
    max_snr_db: float = 12.0
    sounds: Path = Path("noises")


def set_seed(seed):
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)


def write_noises(folder, n=8):
    folder.mkdir(exist_ok=True)
    rng = np.random.RandomState(7)
    for k in range(n):
        cut = 300 + 400 * k
        b, a = butter(2, min(cut / (RATE / 2), 0.95))
        noise = lfilter(b, a, rng.randn(RATE * 2)).astype(np.float32)
        wavfile.write(folder / f"noise_{k:02d}.wav", RATE, noise / np.abs(noise).max())


def keyword(label, rng):
    t = np.arange(RATE // 2) / RATE
    base = {0: 300, 1: 360, 2: 430}[label] * rng.uniform(0.9, 1.1)
    glide = {0: 1.0, 1: 1.4, 2: 0.75}[label]
    phase = 2 * np.pi * base * (t + (glide - 1) * t ** 2)
    wave = np.sin(phase) + 0.4 * np.sin(2 * phase)
    return (wave * np.hanning(len(t))).astype(np.float32)


class AddBackgroundNoise:
    def __init__(self, sounds_path, min_snr_db, max_snr_db, p=0.9):
        self.files = sorted(Path(sounds_path).glob("*.wav"))
        self.min_snr_db = min_snr_db
        self.max_snr_db = max_snr_db
        self.p = p
        self.cache = {f: wavfile.read(f)[1] for f in self.files}

    def __call__(self, samples):
        if np.random.rand() > self.p:
            return samples
        noise = self.cache[random.choice(self.files)]  # cause
        start = np.random.randint(0, len(noise) - len(samples))
        snr = np.random.uniform(self.min_snr_db, self.max_snr_db)
        piece = noise[start:start + len(samples)]
        gain = np.sqrt((samples ** 2).mean() / (piece ** 2).mean() / 10 ** (snr / 10))
        return samples + gain * piece


class Gain:
    def __init__(self, low=-6.0, high=6.0):
        self.low, self.high = low, high

    def __call__(self, samples):
        return samples * 10 ** (np.random.uniform(self.low, self.high) / 20)


class Compose:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, samples):
        for step in self.steps:
            samples = step(samples)
        return samples


def log_spectrogram(samples):
    _, _, z = stft(samples, RATE, nperseg=128, noverlap=64)
    return np.log1p(np.abs(z)[:40] * 100).astype(np.float32)


class Net(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(40, 24, 5), nn.ReLU(), nn.AdaptiveMaxPool1d(4),
                                  nn.Flatten(), nn.Linear(96, classes))

    def forward(self, x):
        return self.body(x)


def make_split(cfg, seed):
    rng = np.random.RandomState(seed)
    waves, labels = [], []
    for label in range(3):
        for _ in range(cfg.per_class):
            waves.append(keyword(label, rng))
            labels.append(label)
    return waves, torch.tensor(labels)


def train(cfg, augment):
    waves, labels = make_split(cfg, 1)
    net = Net()
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    history = []
    for epoch in range(cfg.epochs):
        t0 = time.time()
        x = torch.from_numpy(np.stack([log_spectrogram(augment(w)) for w in waves]))
        order = torch.randperm(len(x))
        losses = []
        for idx in order.split(cfg.batch):
            loss = nn.functional.cross_entropy(net(x[idx]), labels[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        history.append(float(np.mean(losses)))
        log.info("epoch %d loss %.4f (%.2f s)", epoch, history[-1], time.time() - t0)
    return net, history


def evaluate(net, cfg):
    waves, labels = make_split(cfg, 2)
    rng = np.random.RandomState(3)
    x = np.stack([log_spectrogram(w + rng.randn(len(w)).astype(np.float32) * 0.5) for w in waves])
    with torch.no_grad():
        out = net(torch.from_numpy(x))
    return float((out.argmax(1) == labels).float().mean()), out


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=Config.epochs)
    ap.add_argument("--seed", type=int, default=Config.seed)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO)
    torch.set_num_threads(1)
    cfg = Config(seed=args.seed, epochs=args.epochs)
    set_seed(cfg.seed)
    write_noises(cfg.sounds)
    augment = Compose(AddBackgroundNoise(cfg.sounds, cfg.min_snr_db, cfg.max_snr_db), Gain())
    net, history = train(cfg, augment)
    acc, logits = evaluate(net, cfg)
    np.savetxt("logits.txt", logits.numpy(), fmt="%.6f")
    Path("kws.json").write_text(json.dumps({"accuracy": acc, "loss": history}))
    print(f"accuracy {acc:.4f} final loss {history[-1]:.6f}")


if __name__ == "__main__":
    main()
