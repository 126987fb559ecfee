"""Sequence tagging with Accelerate (no Trainer)."""
import argparse
import json
import logging
import math
import os
import time

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.logging import get_logger
from accelerate.utils import ProjectConfiguration, set_seed
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset
from tqdm.auto import tqdm

logger = get_logger(__name__)


def parse_args():
    p = argparse.ArgumentParser(description="Train a token tagger with accelerate (no Trainer)")
    p.add_argument("--per_device_train_batch_size", type=int, default=16)
    p.add_argument("--per_device_eval_batch_size", type=int, default=32)
    p.add_argument("--learning_rate", type=float, default=4e-3)
    p.add_argument("--num_train_epochs", type=int, default=3)
    p.add_argument("--gradient_accumulation_steps", type=int, default=2)
    p.add_argument("--num_warmup_steps", type=int, default=5)
    p.add_argument("--checkpointing_steps", type=str, default="epoch")
    p.add_argument("--output_dir", type=str, default="tagger")
    p.add_argument("--seed", type=int, default=2024)
    return p.parse_args()


class TagDataset(Dataset):
    """Tokens are ids; the tag of a token depends on it and on its left neighbour."""

    def __init__(self, n, seed, vocab=60, n_tags=5):
        rng = np.random.default_rng(seed)
        self.items = []
        for _ in range(n):
            length = int(rng.integers(6, 20))
            ids = rng.integers(1, vocab, length)
            prev = np.concatenate([[0], ids[:-1]])
            tags = (ids + 2 * (prev % 3)) % n_tags
            noise = rng.random(length) < 0.05
            tags = np.where(noise, rng.integers(0, n_tags, length), tags)
            self.items.append((torch.tensor(ids), torch.tensor(tags)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    ids, tags = zip(*batch)
    return {"input_ids": pad_sequence(ids, batch_first=True),
            "labels": pad_sequence(tags, batch_first=True, padding_value=-100)}


class Tagger(nn.Module):
    def __init__(self, vocab=60, dim=32, n_tags=5):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.rnn = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(2 * dim, n_tags)

    def forward(self, input_ids, labels):
        h, _ = self.rnn(self.emb(input_ids))
        logits = self.out(self.drop(h))
        return nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits


def main():
    args = parse_args()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=args.gradient_accumulation_steps,
                              log_with="tensorboard",
                              project_config=ProjectConfiguration(project_dir=args.output_dir))
    logging.basicConfig(format="%(asctime)s - %(levelname)s - %(name)s - %(message)s",
                        datefmt="%m/%d/%Y %H:%M:%S", level=logging.INFO)
    logger.info(accelerator.state, main_process_only=False)
    if args.seed is not None:
        set_seed(args.seed)
    os.makedirs(args.output_dir, exist_ok=True)

    train_ds, eval_ds = TagDataset(600, 11), TagDataset(200, 12)
    train_dl = DataLoader(train_ds, shuffle=True, collate_fn=collate, batch_size=args.per_device_train_batch_size)
    eval_dl = DataLoader(eval_ds, collate_fn=collate, batch_size=args.per_device_eval_batch_size)
    model = Tagger()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    steps_per_epoch = math.ceil(len(train_dl) / args.gradient_accumulation_steps)
    max_steps = args.num_train_epochs * steps_per_epoch
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min((s + 1) / args.num_warmup_steps, max(0.0, (max_steps - s) / max_steps)))
    model, optimizer, train_dl, eval_dl, scheduler = accelerator.prepare(model, optimizer, train_dl, eval_dl, scheduler)
    accelerator.init_trackers("tagger_no_trainer", vars(args))

    logger.info("***** Running training *****")
    logger.info(f"  Num examples = {len(train_ds)}")
    logger.info(f"  Num Epochs = {args.num_train_epochs}")
    logger.info(f"  Gradient Accumulation steps = {args.gradient_accumulation_steps}")
    logger.info(f"  Total optimization steps = {max_steps}")
    progress = tqdm(range(max_steps), disable=not accelerator.is_local_main_process)
    completed, records = 0, []
    start = time.time()
    for epoch in range(args.num_train_epochs):
        model.train()
        total_loss = 0.0
        for batch in train_dl:
            with accelerator.accumulate(model):
                loss, _ = model(**batch)
                total_loss += loss.detach().float().item()
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                progress.update(1)
                completed += 1
        model.eval()
        correct = count = 0
        eval_loss = 0.0
        for batch in eval_dl:
            with torch.no_grad():
                loss, logits = model(**batch)
            preds, refs = accelerator.gather_for_metrics((logits.argmax(-1), batch["labels"]))
            mask = refs != -100
            correct += (preds[mask] == refs[mask]).sum().item()
            count += mask.sum().item()
            eval_loss += loss.item()
        rec = {"epoch": epoch, "step": completed, "train_loss": total_loss / len(train_dl),
               "eval_loss": eval_loss / len(eval_dl), "accuracy": correct / count}
        logger.info(f"epoch {epoch}: {rec}")
        accelerator.log({k: v for k, v in rec.items() if k not in ("epoch", "step")}, step=completed)
        records.append(rec)
        if args.checkpointing_steps == "epoch":
            accelerator.save_state(os.path.join(args.output_dir, f"epoch_{epoch}"))
    train_seconds = time.time() - start
    accelerator.end_training()
    accelerator.save_model(model, args.output_dir)
    with open(os.path.join(args.output_dir, "all_results.json"), "w") as f:
        json.dump({"eval_accuracy": records[-1]["accuracy"], "eval_loss": records[-1]["eval_loss"],
                   "history": records, "train_runtime": round(train_seconds, 4),
                   "train_samples_per_second": round(len(train_ds) * args.num_train_epochs / train_seconds, 3)},
                  f, indent=2)
    logger.info(f"Saved results to {args.output_dir}/all_results.json")


if __name__ == "__main__":
    main()
