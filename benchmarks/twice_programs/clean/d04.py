"""Style of allenai/allennlp (training/trainer.py, metrics.json, model.tar.gz). Differs in each run: training_duration,
peak/worker memory figures, epoch durations, estimated time remaining, tqdm rates, tar member times, serialization folder."""
import datetime
import json
import logging
import os
import re
import tarfile
import tempfile
import time

import numpy as np
import psutil
import torch
from torch import nn
from tqdm import tqdm

logging.basicConfig(format="%(asctime)s - %(levelname)s - %(name)s - %(message)s", level=logging.INFO)
logger = logging.getLogger("allennlp.training.trainer")


class Vocabulary:
    def __init__(self, texts):
        words = sorted({w for t in texts for w in t.split()})
        self.itos = ["@@PAD@@", "@@UNK@@"] + words
        self.stoi = {w: i for i, w in enumerate(self.itos)}

    def save(self, folder):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "tokens.txt"), "w") as f:
            f.write("\n".join(self.itos[1:]))

    def encode(self, text, n):
        ids = [self.stoi.get(w, 1) for w in text.split()][:n]
        return ids + [0] * (n - len(ids))


def peak_memory_mb():
    return psutil.Process().memory_info().rss / 1_000_000


def corpus(n, seed):
    rng = np.random.default_rng(seed)
    pos, neg, neu = ["good", "great", "lovely", "fine"], ["bad", "awful", "dull", "poor"], [f"w{i}" for i in range(300)]
    out = []
    for _ in range(n):
        y = int(rng.integers(2))
        ws = list(rng.choice(neu, 12)) + list(rng.choice(pos if y else neg, 2)) + list(rng.choice(neg if y else pos, 1))
        rng.shuffle(ws)
        out.append((" ".join(ws), y))
    return out


class BagClassifier(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.emb = nn.Embedding(n, 48, padding_idx=0)
        self.rnn = nn.LSTM(48, 48, batch_first=True, bidirectional=True)
        self.out = nn.Linear(96, 2)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0].max(1).values)


def run_epoch(model, x, y, opt=None, gen=None):
    order = torch.randperm(len(x), generator=gen) if opt else torch.arange(len(x))
    total, hit, n = 0.0, 0, 0
    bar = tqdm(range(0, len(x), 32), mininterval=0.2)
    for i in bar:
        idx = order[i:i + 32]
        with torch.set_grad_enabled(opt is not None):
            logits = model(x[idx])
            loss = nn.functional.cross_entropy(logits, y[idx])
        if opt:
            opt.zero_grad()
            loss.backward()
            opt.step()
        total += loss.item()
        n += 1
        hit += (logits.argmax(1) == y[idx]).sum().item()
        bar.set_description(f"accuracy: {hit / (i + len(idx)):.4f}, loss: {total / n:.4f} ||", refresh=False)
    return hit / len(x), total / n


def main():
    torch.manual_seed(13370)
    torch.set_num_threads(1)
    serialization_dir = tempfile.mkdtemp(prefix="allennlp_", dir=".")
    logger.info("serialization_dir = %s, pid = %d", serialization_dir, os.getpid())
    train, dev = corpus(1400, 1), corpus(300, 2)
    vocab = Vocabulary(t for t, _ in train)
    vocab.save(os.path.join(serialization_dir, "vocabulary"))
    enc = lambda d: (torch.tensor([vocab.encode(t, 16) for t, _ in d]), torch.tensor([y for _, y in d]))
    (xt, yt), (xv, yv) = enc(train), enc(dev)
    model = BagClassifier(len(vocab.itos))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    gen = torch.Generator().manual_seed(5)
    start, best, peak, epochs = time.time(), {"validation_accuracy": -1}, 0.0, 4
    logger.info("Beginning training.")
    for epoch in range(epochs):
        t_ep = time.time()
        logger.info("Epoch %d/%d", epoch, epochs - 1)
        mem = peak_memory_mb()
        peak = max(peak, mem)
        logger.info(f"Worker 0 memory usage: {mem / 1000:.1f}G")
        logger.info("Training")
        tr = run_epoch(model, xt, yt, opt, gen)
        logger.info("Validating")
        va = run_epoch(model, xv, yv)
        rows = [("accuracy", tr[0], va[0]), ("loss", tr[1], va[1])]
        logger.info("%-20s |  %9s  |  %10s", "", "Training", "Validation")
        for k, a, b in rows:
            logger.info("%-20s |  %9.3f  |  %10.3f", k, a, b)
        logger.info("%-20s |  %9.3f  |  %10s", "worker_0_memory_MB", mem, "N/A")
        metrics = {"best_epoch": best.get("best_epoch", 0), "peak_worker_0_memory_MB": peak,
                   "training_duration": str(datetime.timedelta(seconds=time.time() - start)), "epoch": epoch,
                   "training_accuracy": tr[0], "training_loss": tr[1], "training_worker_0_memory_MB": mem,
                   "validation_accuracy": va[0], "validation_loss": va[1]}
        if va[0] > best["validation_accuracy"]:
            best = dict(metrics, best_epoch=epoch)
            torch.save(model.state_dict(), os.path.join(serialization_dir, "best.th"))
            logger.info("Best validation performance so far. Copying weights to '%s/best.th'.", serialization_dir)
        with open(os.path.join(serialization_dir, f"metrics_epoch_{epoch}.json"), "w") as f:
            json.dump(metrics, f, indent=2)
        logger.info("Epoch duration: %s", datetime.timedelta(seconds=time.time() - t_ep))
        if epoch < epochs - 1:
            left = (time.time() - start) * (epochs / float(epoch + 1) - 1)
            logger.info("Estimated training time remaining: %s", str(datetime.timedelta(seconds=int(left))))
    final = {"best_epoch": best["best_epoch"], "peak_worker_0_memory_MB": peak, "training_duration":
             str(datetime.timedelta(seconds=time.time() - start)), "training_start_epoch": 0, "training_epochs": epochs - 1,
             **{f"best_{k}": v for k, v in best.items() if k.startswith("validation")}}
    with open(os.path.join(serialization_dir, "metrics.json"), "w") as f:
        json.dump(final, f, indent=2)
    archive = os.path.join(serialization_dir, "model.tar.gz")
    with tarfile.open(archive, "w:gz") as tar:
        for m in ("best.th", "vocabulary", "metrics.json"):
            tar.add(os.path.join(serialization_dir, m), arcname=m)
    logger.info("archiving weights and vocabulary to %s", re.sub(r"^\./", "", archive))
    print("Metrics:", json.dumps(final, indent=2))


if __name__ == "__main__":
    main()
