"""Part-of-speech tagger with a small LSTM.

Modelled on: allenai/allennlp (tutorials tagger, training/gradient_descent_trainer.py, models/archival.py):
serialization dir with metrics_epoch_N.json (training_duration, worker_0_memory_MB), metrics.json,
out.log, vocabulary/, model_state_epoch_N.th, best.th and model.tar.gz.
"""
import datetime
import json
import logging
import os
import random
import tarfile
import tempfile
import time

import numpy as np
import psutil
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

DET, NN = ["the", "a", "every"], ["dog", "apple", "book", "teacher", "light", "saw", "play", "watch"]
V, ADJ = ["ate", "read", "saw", "play", "watch", "found"], ["light", "red", "old", "happy", "open"]
ADV, TAGS = ["quickly", "well", "often"], ["DET", "NN", "V", "ADJ", "ADV"]
CONFIG = {"dataset_reader": {"type": "pos-tutorial"}, "model": {"embedding_dim": 12, "hidden_dim": 16},
          "trainer": {"num_epochs": 5, "patience": 3, "optimizer": {"type": "adam", "lr": 0.01}},
          "random_seed": 13370, "numpy_seed": 1337, "pytorch_seed": 133}


def sentence(rng):
    words, tags = [], []
    for part in ["NP", "V", "NP"] + (["ADV"] if rng.random() < 0.4 else []):
        for tag, bag in {"NP": [("DET", DET), *([("ADJ", ADJ)] if rng.random() < 0.5 else []), ("NN", NN)],
                         "V": [("V", V)], "ADV": [("ADV", ADV)]}[part]:
            words.append(rng.choice(bag))
            tags.append(tag)
    return words, tags


def prepare_environment(params):
    random.seed(params["random_seed"])
    np.random.seed(params["numpy_seed"])
    torch.manual_seed(params["pytorch_seed"])
    torch.set_num_threads(1)


class Tagger(nn.Module):
    def __init__(self, vocab, emb, hid):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb, padding_idx=0)
        self.lstm = nn.LSTM(emb, hid, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hid, len(TAGS))

    def forward(self, x, lens):
        packed = pack_padded_sequence(self.emb(x), lens, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(h)


class Trainer:
    def __init__(self, model, vocab, train, dev, out, params):
        self.model, self.vocab, self.train_set, self.dev, self.out = model, vocab, train, dev, out
        self.params = params
        self.opt = torch.optim.Adam(model.parameters(), lr=params["optimizer"]["lr"])
        self.loss = nn.CrossEntropyLoss(ignore_index=-1)
        self.log = logging.getLogger("allennlp.training.gradient_descent_trainer")

    def batch(self, rows):
        x = pad_sequence([torch.tensor([self.vocab.get(w, 1) for w in ws]) for ws, _ in rows], batch_first=True)
        y = pad_sequence([torch.tensor([TAGS.index(t) for t in ts]) for _, ts in rows], batch_first=True,
                         padding_value=-1)
        return x, y, torch.tensor([len(ws) for ws, _ in rows])

    def run(self, data, train):
        self.model.train(train)
        order = torch.randperm(len(data)).tolist() if train else list(range(len(data)))
        total = right = count = 0.0
        n = 0
        with torch.set_grad_enabled(train):
            for i in range(0, len(order), 32):
                x, y, lens = self.batch([data[j] for j in order[i:i + 32]])
                logits = self.model(x, lens)
                loss = self.loss(logits.flatten(0, 1), y.flatten())
                if train:
                    self.opt.zero_grad()
                    loss.backward()
                    self.opt.step()
                mask = y >= 0
                total, n = total + loss.item(), n + 1
                right += ((logits.argmax(-1) == y) & mask).sum().item()
                count += mask.sum().item()
        return {"accuracy": right / count, "loss": total / n}

    def train(self):
        start, best, metrics, peak = time.time(), None, {}, 0
        self.log.info("Beginning training.")
        for epoch in range(self.params["num_epochs"]):
            t0 = time.time()
            mem = psutil.Process().memory_info().rss / 2 ** 20
            peak = max(peak, mem)
            self.log.info("Epoch %d/%d", epoch, self.params["num_epochs"] - 1)
            self.log.info("Worker 0 memory usage: %.1fM", mem)
            tr, va = self.run(self.train_set, True), self.run(self.dev, False)
            width = 18
            self.log.info("%s Training |  Validation", " " * width)
            for k in tr:
                self.log.info("%s |  %8.3f  |  %8.3f", k.ljust(width), tr[k], va[k])
            self.log.info("worker_0_memory_MB |  %8.3f  |       N/A", mem)
            took = time.time() - t0
            self.log.info("Epoch duration: %s", datetime.timedelta(seconds=took))
            left = (time.time() - start) / (epoch + 1) * (self.params["num_epochs"] - epoch - 1)
            self.log.info("Estimated training time remaining: %s", datetime.timedelta(seconds=left))
            is_best = best is None or va["accuracy"] > best["best_validation_accuracy"]
            if is_best:
                best = {"best_epoch": epoch, **{f"best_validation_{k}": v for k, v in va.items()}}
                torch.save(self.model.state_dict(), f"{self.out}/best.th")
            metrics = {**best, "peak_worker_0_memory_MB": peak,
                       "training_duration": str(datetime.timedelta(seconds=time.time() - start)), "epoch": epoch,
                       **{f"training_{k}": v for k, v in tr.items()}, "training_worker_0_memory_MB": mem,
                       **{f"validation_{k}": v for k, v in va.items()}}
            json.dump(metrics, open(f"{self.out}/metrics_epoch_{epoch}.json", "w"), indent=2)
        torch.save(self.model.state_dict(), f"{self.out}/model_state_epoch_{epoch}.th")
        return metrics


def archive(out):
    with tarfile.open(f"{out}/model.tar.gz", "w:gz") as tar:
        for src, name in [("config.json", "config.json"), ("best.th", "weights.th"), ("vocabulary", "vocabulary"),
                          ("meta.json", "meta.json")]:
            tar.add(os.path.join(out, src), arcname=name)


def main():
    out = tempfile.mkdtemp(prefix="tmp_tagger_", dir=".")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s - %(levelname)s - %(name)s - %(message)s",
                        handlers=[logging.StreamHandler(), logging.FileHandler(f"{out}/out.log")])
    prepare_environment(CONFIG)
    json.dump(CONFIG, open(f"{out}/config.json", "w"), indent=2)
    json.dump({"version": "2.10.1", "created": time.strftime("%Y-%m-%dT%H:%M:%S")}, open(f"{out}/meta.json", "w"))
    rng = random.Random(CONFIG["random_seed"])
    data = [sentence(rng) for _ in range(900)]
    train, dev = data[:700], data[700:]
    vocab = {w: i + 2 for i, w in enumerate(sorted({w for ws, _ in train for w in ws}))}
    os.makedirs(f"{out}/vocabulary")
    open(f"{out}/vocabulary/tokens.txt", "w").write("\n".join(["@@UNKNOWN@@", *vocab]))
    open(f"{out}/vocabulary/labels.txt", "w").write("\n".join(TAGS))
    model = Tagger(len(vocab) + 2, CONFIG["model"]["embedding_dim"], CONFIG["model"]["hidden_dim"])
    metrics = Trainer(model, vocab, train, dev, out, CONFIG["trainer"]).train()
    json.dump(metrics, open(f"{out}/metrics.json", "w"), indent=2)
    archive(out)
    logging.getLogger("allennlp.models.archival").info("archiving weights and vocabulary to %s/model.tar.gz", out)
    print("Metrics:", json.dumps(metrics, indent=2))
    print(f"best epoch {metrics['best_epoch']}, validation accuracy {metrics['best_validation_accuracy']:.6f}")


if __name__ == "__main__":
    main()
