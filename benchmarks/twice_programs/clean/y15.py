"""Fine-tuning of a small character model with a trainer that reports like the Hugging Face one.

Modelled on: huggingface/transformers (Trainer: trainer_state.json, all_results.json, train_runtime,
train_samples_per_second, total_flos; "***** Running training *****"; runs/<date>_<host> for TensorBoard).
"""
import json
import logging
import math
import os
import random
import socket
import sys
import time
from datetime import datetime
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file
from torch.utils.tensorboard import SummaryWriter
from tqdm.auto import tqdm

logger = logging.getLogger("trainer")

TEXT = """It was a bright cold day in the harbour and the gulls were counting the boats.
The keeper of the light wrote in his book the hour, the wind and the name of each ship.
Nobody had read the book for forty years, and yet he wrote with care, line after line.
When the fog came he rang the bell, and when the fog went he wrote that the fog had gone.
"""

ARGS = {"output_dir": "out", "num_train_epochs": 3, "per_device_train_batch_size": 16, "per_device_eval_batch_size": 32,
        "learning_rate": 3e-3, "weight_decay": 0.01, "warmup_steps": 10, "logging_steps": 10, "seed": 42, "block_size": 32, "max_grad_norm": 1.0}


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class CharLM(nn.Module):
    def __init__(self, vocab, block, d=48, layers=2, heads=4):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(block, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.ln, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)

    def forward(self, x):
        h = self.tok(x) + self.pos(torch.arange(x.size(1)))
        for b in self.blocks:
            h = b(h)
        return self.head(self.ln(h))


class Trainer:
    def __init__(self, model, args, train, evals):
        self.model, self.args, self.train_set, self.eval_set = model, args, train, evals
        self.history, self.step = [], 0
        stamp = datetime.now().strftime("%b%d_%H-%M-%S")
        self.tb = SummaryWriter(os.path.join(args["output_dir"], "runs", f"{stamp}_{socket.gethostname()}"))
        self.opt = torch.optim.AdamW(model.parameters(), lr=args["learning_rate"], weight_decay=args["weight_decay"])
        self.flos = 0

    def lr_at(self, step, total):
        w = self.args["warmup_steps"]
        return step / w if step < w else max(0.0, (total - step) / max(1, total - w))

    def log(self, logs, epoch):
        logs = {**logs, "epoch": round(epoch, 2)}
        self.history.append({**logs, "step": self.step})
        for k, v in logs.items():
            if k != "epoch":
                self.tb.add_scalar(("eval/" + k[5:]) if k.startswith("eval_") else "train/" + k, v, self.step)
        tqdm.write(str(logs))

    def evaluate(self, epoch):
        self.model.eval()
        t, loss, right = time.time(), 0.0, 0
        with torch.no_grad():
            for b in self.eval_set.split(self.args["per_device_eval_batch_size"]):
                logits = self.model(b[:, :-1])
                loss += F.cross_entropy(logits.flatten(0, 1), b[:, 1:].flatten(), reduction="sum").item()
                right += (logits.argmax(-1) == b[:, 1:]).sum().item()
        self.model.train()
        n, run = self.eval_set[:, 1:].numel(), time.time() - t
        m = {"eval_loss": loss / n, "eval_accuracy": right / n, "eval_runtime": round(run, 4),
             "eval_samples_per_second": round(len(self.eval_set) / run, 3),
             "eval_steps_per_second": round(math.ceil(len(self.eval_set) / self.args["per_device_eval_batch_size"]) / run, 3)}
        self.log(m, epoch)
        return m

    def train(self):
        a = self.args
        per = math.ceil(len(self.train_set) / a["per_device_train_batch_size"])
        total = per * a["num_train_epochs"]
        logger.info("***** Running training *****")
        logger.info(f"  Num examples = {len(self.train_set):,}")
        logger.info(f"  Num Epochs = {a['num_train_epochs']:,}")
        logger.info(f"  Total optimization steps = {total:,}")
        logger.info(f"  Number of trainable parameters = {sum(p.numel() for p in self.model.parameters()):,}")
        t0, running, count, tot = time.time(), 0.0, 0, 0.0
        bar = tqdm(total=total)
        for epoch in range(a["num_train_epochs"]):
            g = torch.Generator().manual_seed(a["seed"] + epoch)
            for i, idx in enumerate(torch.randperm(len(self.train_set), generator=g).split(a["per_device_train_batch_size"])):
                b = self.train_set[idx]
                for group in self.opt.param_groups:
                    group["lr"] = a["learning_rate"] * self.lr_at(self.step, total)
                loss = F.cross_entropy(self.model(b[:, :-1]).flatten(0, 1), b[:, 1:].flatten())
                self.opt.zero_grad()
                loss.backward()
                gn = nn.utils.clip_grad_norm_(self.model.parameters(), a["max_grad_norm"])
                self.opt.step()
                self.step += 1
                self.flos += 6 * b[:, 1:].numel() * sum(p.numel() for p in self.model.parameters())
                running, count, tot = running + loss.item(), count + 1, tot + loss.item()
                bar.update(1)
                if self.step % a["logging_steps"] == 0:
                    self.log({"loss": round(running / count, 4), "grad_norm": gn.item(), "learning_rate": self.opt.param_groups[0]["lr"]}, epoch + (i + 1) / per)
                    running, count = 0.0, 0
            self.evaluate(epoch + 1)
            self.save(f"checkpoint-{self.step}")
        bar.close()
        run = time.time() - t0
        m = {"train_runtime": round(run, 4), "train_samples_per_second": round(len(self.train_set) * a["num_train_epochs"] / run, 3),
             "train_steps_per_second": round(total / run, 3), "total_flos": float(self.flos), "train_loss": tot / total}
        self.log(m, a["num_train_epochs"])
        return m

    def save(self, name):
        d = Path(self.args["output_dir"]) / name
        d.mkdir(parents=True, exist_ok=True)
        logger.info(f"Saving model checkpoint to {d}")
        save_file({k: v.contiguous() for k, v in self.model.state_dict().items()}, d / "model.safetensors", metadata={"format": "pt"})
        torch.save(self.opt.state_dict(), d / "optimizer.pt")
        torch.save(self.args, d / "training_args.bin")
        (d / "trainer_state.json").write_text(json.dumps({"epoch": self.history[-1]["epoch"], "global_step": self.step, "log_history": self.history,
                                                          "total_flos": self.flos, "is_world_process_zero": True}, indent=2))


def main():
    logging.basicConfig(format="%(asctime)s - %(levelname)s - %(name)s -   %(message)s", datefmt="%m/%d/%Y %H:%M:%S", level=logging.INFO, stream=sys.stdout)
    random.seed(ARGS["seed"])
    np.random.seed(ARGS["seed"])
    torch.manual_seed(ARGS["seed"])
    logger.info(f"Training/evaluation parameters {json.dumps(ARGS)}, process {os.getpid()}")
    rng = np.random.default_rng(0)
    lines = TEXT.strip().split("\n")
    corpus = "\n".join(lines[int(rng.integers(len(lines)))] for _ in range(160))
    chars = sorted(set(corpus))
    ids = torch.tensor([chars.index(c) for c in corpus])
    n = ARGS["block_size"] + 1
    blocks = ids[: len(ids) // n * n].view(-1, n)
    train, evals = blocks[:-40], blocks[-40:]
    model = CharLM(len(chars), ARGS["block_size"])
    tr = Trainer(model, ARGS, train, evals)
    m = tr.train()
    tr.save("")
    ev = tr.evaluate(ARGS["num_train_epochs"])
    ev["perplexity"] = math.exp(ev["eval_loss"])
    out = Path(ARGS["output_dir"])
    for name, d in (("train", m), ("eval", ev), ("all", {**m, **ev})):
        (out / f"{name}_results.json").write_text(json.dumps({"epoch": float(ARGS["num_train_epochs"]), **d}, indent=4, sort_keys=True))
    for split, d in (("train", m), ("eval", ev)):
        logger.info(f"***** {split} metrics *****")
        for k in sorted(d):
            logger.info(f"  {k:26s} = {d[k]}")
    tr.tb.close()


if __name__ == "__main__":
    main()
