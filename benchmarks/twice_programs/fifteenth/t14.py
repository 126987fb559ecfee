#!/usr/bin/env python
"""Preference reward model on a tiny Hugging Face transformer.

Modelled on https://github.com/huggingface/trl/pull/4887

Generates pairs of good and bad token sequences, loads a small pretrained-like
encoder from a checkpoint written beforehand, puts a reward head on it, trains it
with a pairwise loss and reports the accuracy on held-out pairs.
"""
import argparse
import json
import logging
import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertForSequenceClassification, BertModel, set_seed
from transformers.utils import logging as hf_logging

log = logging.getLogger("reward")
VOCAB, LENGTH = 120, 20


class PairDataset(Dataset):
    """Chosen and rejected sequences."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.items = []
        for _ in range(n):
            prompt = rng.integers(4, VOCAB, size=8)
            good = np.where(rng.random(LENGTH - 8) < 0.55, rng.choice(prompt, LENGTH - 8),
                            rng.integers(4, VOCAB, LENGTH - 8))
            bad = np.where(rng.random(LENGTH - 8) < 0.15, rng.choice(prompt, LENGTH - 8),
                           rng.integers(4, VOCAB, LENGTH - 8))
            self.items.append((np.concatenate([prompt, good]), np.concatenate([prompt, bad])))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        chosen, rejected = self.items[i]
        return {"chosen": torch.from_numpy(chosen), "rejected": torch.from_numpy(rejected)}


def collate(features):
    return {k: torch.stack([f[k] for f in features]) for k in ("chosen", "rejected")}


class RewardTrainer:
    """Minimal trainer with a pairwise loss."""

    def __init__(self, model, args, train_dataset):
        set_seed(args.seed)
        self.model, self.args = model, args
        sampler = torch.Generator().manual_seed(args.seed)
        self.loader = DataLoader(train_dataset, batch_size=args.batch_size, shuffle=True,
                                 generator=sampler, collate_fn=collate)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
        steps = args.epochs * len(self.loader)
        self.scheduler = torch.optim.lr_scheduler.LinearLR(self.optimizer, 1.0, 0.05, total_iters=steps)
        self.log_history = []

    def compute_loss(self, inputs):
        r_good = self.model(input_ids=inputs["chosen"]).logits.squeeze(-1)
        r_bad = self.model(input_ids=inputs["rejected"]).logits.squeeze(-1)
        return -nn.functional.logsigmoid(r_good - r_bad).mean()

    def train(self):
        self.model.train()
        step, window = 0, []
        for epoch in range(self.args.epochs):
            for inputs in self.loader:
                loss = self.compute_loss(inputs)
                loss.backward()
                norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.scheduler.step()
                self.optimizer.zero_grad()
                window.append(loss.item())
                step += 1
                if step % self.args.logging_steps == 0:
                    self.log_history.append({"step": step, "loss": float(np.mean(window)), "grad_norm": float(norm)})
                    log.info("epoch %d step %d loss %.5f", epoch, step, np.mean(window))
                    window = []


def write_base_checkpoint(path, seed):
    """Stands for the published encoder: the weights depend on the seed only."""
    config = BertConfig(vocab_size=VOCAB, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                        intermediate_size=96, max_position_embeddings=LENGTH + 2, num_labels=1,
                        hidden_dropout_prob=0.05, attention_probs_dropout_prob=0.05)
    encoder = BertModel(config)
    gen = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in sorted(encoder.named_parameters()):
            if p.dim() > 1:
                p.copy_(0.08 * torch.randn(p.shape, generator=gen))
            elif "LayerNorm.weight" in name:
                p.fill_(1.0)
            else:
                p.zero_()
    encoder.save_pretrained(path)
    return path


@torch.no_grad()
def evaluate(model, pairs, batch_size=64):
    model.eval()
    margins = []
    for start in range(0, len(pairs), batch_size):
        batch = collate([pairs[i] for i in range(start, min(len(pairs), start + batch_size))])
        diff = model(input_ids=batch["chosen"]).logits - model(input_ids=batch["rejected"]).logits
        margins.append(diff.squeeze(-1))
    margins = torch.cat(margins)
    return float((margins > 0).float().mean()), float(margins.mean()), margins


def parse_args(argv):
    p = argparse.ArgumentParser(description="reward model training")
    p.add_argument("--train-pairs", type=int, default=320)
    p.add_argument("--eval-pairs", type=int, default=160)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--logging-steps", type=int, default=10)
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--output-dir", type=Path, default=Path("reward_model"))
    return p.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    hf_logging.set_verbosity_error()
    torch.set_num_threads(1)
    base = write_base_checkpoint(args.output_dir / "base", args.seed)
    train, held_out = PairDataset(args.train_pairs, args.seed), PairDataset(args.eval_pairs, args.seed + 1)

    model = BertForSequenceClassification.from_pretrained(base, num_labels=1)  # cause
    log.info("reward model with %d parameters", sum(p.numel() for p in model.parameters()))

    trainer = RewardTrainer(model, args, train)
    trainer.train()
    losses = [round(h["loss"], 6) for h in trainer.log_history]
    accuracy, margin, margins = evaluate(model, held_out)

    np.savetxt(args.output_dir / "margins.csv", margins.numpy(), fmt="%.6f")
    result = {"losses": losses, "accuracy": round(accuracy, 5), "margin": round(margin, 6)}
    (args.output_dir / "result.json").write_text(json.dumps(result, indent=2))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
