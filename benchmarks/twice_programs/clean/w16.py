"""CTC recogniser on synthetic "tone speech", structured like a SpeechBrain recipe:
Brain class, train_log.txt, env.log, save/CKPT+<date> folders with CKPT.yaml, wer.txt."""
import datetime
import inspect
import logging
import math
import os
import pathlib
import shutil
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import yaml

HPARAMS_YAML = """
seed: 1986
output_folder: results/tone_ctc/1986
number_of_epochs: 5
batch_size: 16
lr: 0.004
lr_annealing_factor: 0.5
improvement_threshold: 0.0025
n_train: 320
n_valid: 64
n_test: 64
n_symbols: 8
n_feats: 20
hidden: 48
max_grad_norm: 5.0
ckpt_interval_minutes: 15
keep_checkpoints: 2
"""

logger = logging.getLogger("speechbrain.core")


class Stage:
    TRAIN, VALID, TEST = range(3)


def create_experiment_directory(folder):
    os.makedirs(os.path.join(folder, "save"), exist_ok=True)
    fmt = "%(asctime)s [%(levelname)s] %(name)s - %(message)s"
    logging.basicConfig(level=logging.INFO, format=fmt, handlers=[
        logging.StreamHandler(sys.stderr), logging.FileHandler(os.path.join(folder, "log.txt"))])
    with open(os.path.join(folder, "hyperparams.yaml"), "w") as f:
        f.write(f"# Generated {datetime.date.today()} from:\n# {os.path.abspath(__file__)}\n# yamllint disable\n")
        f.write(HPARAMS_YAML.strip() + "\n")
    with open(os.path.join(folder, "env.log"), "w") as f:
        f.write("SpeechBrain-like system description\n==============================\n")
        f.write(f"Python version:\n{sys.version}\n==============================\n")
        f.write(f"torch=={torch.__version__}\nnumpy=={np.__version__}\n")
        f.write(f"load average: {os.getloadavg()}\npid: {os.getpid()}\n")
    logger.info("Beginning experiment!")
    logger.info("Experiment folder: %s", folder)


def make_split(n, hp, seed):
    """Every symbol has its own spectral shape; symbols last 3-6 frames and are separated by short gaps."""
    protos = np.random.RandomState(7).randn(hp["n_symbols"], hp["n_feats"]) * 1.2
    rng = np.random.RandomState(seed)
    data = []
    for _ in range(n):
        seq = rng.randint(0, hp["n_symbols"], rng.randint(3, 8))
        frames = []
        for s in seq:
            frames += [protos[s]] * rng.randint(3, 7) + [np.zeros(hp["n_feats"])] * rng.randint(1, 3)
        x = np.array(frames) + rng.randn(len(frames), hp["n_feats"]) * 0.7
        data.append((torch.tensor(x, dtype=torch.float32), torch.tensor(seq + 1)))
    return data


def batches(data, bs, order):
    for i in range(0, len(order), bs):
        part = [data[j] for j in order[i:i + bs]]
        xl = torch.tensor([len(x) for x, _ in part])
        yl = torch.tensor([len(y) for _, y in part])
        yield nn.utils.rnn.pad_sequence([x for x, _ in part], True), xl, nn.utils.rnn.pad_sequence([y for _, y in part], True), yl


def edit_distance(a, b):
    d = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        prev, d[0] = d[0], i
        for j, y in enumerate(b, 1):
            prev, d[j] = d[j], min(d[j] + 1, d[j - 1] + 1, prev + (x != y))
    return d[-1]


class Model(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.conv = nn.Conv1d(hp["n_feats"], hp["hidden"], 5, padding=2)
        self.norm = nn.LayerNorm(hp["hidden"])
        self.rnn = nn.GRU(hp["hidden"], hp["hidden"], batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.15)
        self.out = nn.Linear(2 * hp["hidden"], hp["n_symbols"] + 1)

    def forward(self, x):
        h = torch.relu(self.norm(self.conv(x.transpose(1, 2)).transpose(1, 2)))
        h, _ = self.rnn(self.drop(h))
        return self.out(self.drop(h)).log_softmax(-1)


class Checkpointer:
    def __init__(self, folder, keep):
        self.folder, self.keep = pathlib.Path(folder), keep

    def save_and_keep_only(self, recoverables, meta):
        stamp = time.strftime("%Y-%m-%d+%H-%M-%S", time.localtime())
        n = 0
        while (path := self.folder / f"CKPT+{stamp}+{n:02d}").exists():
            n += 1
        path.mkdir()
        for name, obj in recoverables.items():
            torch.save(obj, path / f"{name}.ckpt")
        with open(path / "CKPT.yaml", "w") as f:
            f.write("# yamllint disable\n")
            yaml.safe_dump({"unixtime": time.time(), "end-of-epoch": True, **meta}, f)
        logger.info("Saved an end-of-epoch checkpoint in %s", path)
        found = [(yaml.safe_load((p / "CKPT.yaml").read_text()), p) for p in self.folder.glob("CKPT+*")]
        found.sort(key=lambda t: (t[0]["PER"], -t[0]["epoch"]))
        for _, p in found[self.keep:]:
            shutil.rmtree(p)
            logger.info("Deleted checkpoint in %s", p)
        return found[0][1]


class ToneBrain:
    def __init__(self, hp):
        self.hp = hp
        self.model = Model(hp)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=hp["lr"])
        self.ctc = nn.CTCLoss(blank=0, zero_infinity=True)
        self.ckpt = Checkpointer(os.path.join(hp["output_folder"], "save"), hp["keep_checkpoints"])
        self.gen = torch.Generator().manual_seed(hp["seed"])
        self.prev_loss = math.inf
        self.log_path = os.path.join(hp["output_folder"], "train_log.txt")
        n = sum(p.numel() for p in self.model.parameters() if p.requires_grad)
        logger.info("%.1fk trainable parameters in ToneBrain", n / 1e3)

    def run_stage(self, stage, data, wer=None):
        train = stage == Stage.TRAIN
        self.model.train(train)
        order = torch.randperm(len(data), generator=self.gen).tolist() if train else list(range(len(data)))
        tot, cnt, errs, ref, frames, t0 = 0.0, 0, 0, 0, 0, time.perf_counter()
        for x, xl, y, yl in batches(data, self.hp["batch_size"], order):
            with torch.set_grad_enabled(train):
                lp = self.model(x)
                loss = self.ctc(lp.transpose(0, 1), y, xl, yl)
            if train:
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), self.hp["max_grad_norm"])
                self.optimizer.step()
            else:
                for k in range(len(xl)):
                    raw = lp[k, :xl[k]].argmax(-1).tolist()
                    hyp = [c for i, c in enumerate(raw) if c and (i == 0 or raw[i - 1] != c)]
                    gold = y[k, :yl[k]].tolist()
                    e = edit_distance(hyp, gold)
                    errs, ref = errs + e, ref + len(gold)
                    if wer is not None:
                        wer.append((len(wer), e, len(gold), hyp, gold))
            tot, cnt, frames = tot + loss.item() * len(xl), cnt + len(xl), frames + int(xl.sum())
        dt = time.perf_counter() - t0
        return {"loss": tot / cnt, "PER": 100 * errs / ref if ref else None}, dt, frames / dt

    def log_stats(self, meta, train=None, valid=None, test=None, speed=None):
        f = lambda d, p: ", ".join(f"{p} {k}: {v:.2e}" if k == "loss" else f"{p} {k}: {v:.2f}" for k, v in d.items() if v is not None)
        line = ", ".join(f"{k}: {v}" for k, v in meta.items())
        line += "".join(" - " + f(d, p) for d, p in ((train, "train"), (valid, "valid"), (test, "test")) if d)
        with open(self.log_path, "a") as fh:
            fh.write(line + (f" - {speed:.0f} frames/s" if speed else "") + "\n")
        print(line)

    def fit(self, train, valid):
        for epoch in range(1, self.hp["number_of_epochs"] + 1):
            logger.info("Going into epoch %d", epoch)
            tr, dt, fps = self.run_stage(Stage.TRAIN, train)
            va, vt, _ = self.run_stage(Stage.VALID, valid)
            lr = self.optimizer.param_groups[0]["lr"]
            self.log_stats({"epoch": epoch, "lr": f"{lr:.2e}"}, tr, va, speed=fps)
            logger.info("epoch %d took %.2f s train (RTF %.5f), %.2f s valid", epoch, dt, 1 / (fps * 0.01), vt)
            if (self.prev_loss - va["loss"]) / self.prev_loss < self.hp["improvement_threshold"] and epoch > 1:
                for g in self.optimizer.param_groups:
                    g["lr"] *= self.hp["lr_annealing_factor"]
            self.prev_loss = va["loss"]
            self.best = self.ckpt.save_and_keep_only(
                {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()},
                {"PER": float(va["PER"]), "valid_loss": float(va["loss"]), "epoch": epoch, "train_time": dt})

    def evaluate(self, test):
        logger.info("Loading a checkpoint from %s", self.best)
        self.model.load_state_dict(torch.load(self.best / "model.ckpt"))
        wer = []
        st, dt, _ = self.run_stage(Stage.TEST, test, wer)
        self.log_stats({"Epoch loaded": yaml.safe_load((self.best / "CKPT.yaml").read_text())["epoch"]}, test=st)
        with open(os.path.join(self.hp["output_folder"], "wer.txt"), "w") as f:
            e, n = sum(w[1] for w in wer), sum(w[2] for w in wer)
            f.write(f"%WER {100 * e / n:.2f} [ {e} / {n} ]\n%SER {100 * sum(w[1] > 0 for w in wer) / len(wer):.2f}\n" + "=" * 80 + "\n")
            for i, err, ln, hyp, gold in wer:
                f.write(f"utt{i:04d}, %WER {100 * err / ln:.2f}\nREF {' '.join(map(str, gold))}\nHYP {' '.join(map(str, hyp))}\n")
        logger.info("Decoding took %s", datetime.timedelta(seconds=dt))


if __name__ == "__main__":
    hparams = yaml.safe_load(HPARAMS_YAML)
    torch.manual_seed(hparams["seed"])
    torch.set_num_threads(1)
    create_experiment_directory(hparams["output_folder"])
    sets = [make_split(hparams[f"n_{s}"], hparams, 100 + i) for i, s in enumerate(("train", "valid", "test"))]
    brain = ToneBrain(hparams)
    logger.debug("defined in %s", inspect.getfile(ToneBrain))
    brain.fit(sets[0], sets[1])
    brain.evaluate(sets[2])
