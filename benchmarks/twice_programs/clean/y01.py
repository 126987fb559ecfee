"""Tiny sequence to sequence training with progress lines in the style of fairseq.

Modelled on: facebookresearch/fairseq (``fairseq_cli/train.py``, ``--log-format json``),
which logs ``| INFO | train_inner | {...}`` lines with wps, ups, train_wall and wall.
"""
import argparse
import json
import logging
import math
import os
import platform
import random
import sys
import time
from collections import OrderedDict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

logging.basicConfig(
    format="%(asctime)s | %(levelname)s | %(name)s | %(message)s",
    datefmt="%Y-%m-%d %H:%M:%S",
    level=logging.INFO,
    handlers=[logging.StreamHandler(sys.stdout), logging.FileHandler("train.log")],
)
logger = logging.getLogger("fairseq_cli.train")

PAD, BOS, EOS = 0, 1, 2


class StopwatchMeter:
    def __init__(self):
        self.sum = 0.0
        self.n = 0
        self.start_time = None

    def start(self):
        self.start_time = time.perf_counter()

    def stop(self):
        self.sum += time.perf_counter() - self.start_time
        self.n += 1


class AverageMeter:
    def __init__(self, round=3):
        self.round = round
        self.reset()

    def reset(self):
        self.sum = 0.0
        self.count = 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(1, self.count)


def make_corpus(n, vocab, seed):
    """Source: random words. Target: the reversed source, with a fixed substitution."""
    rng = np.random.default_rng(seed)
    table = np.arange(vocab)
    table[3:] = rng.permutation(np.arange(3, vocab)) if seed == 0 else np.roll(np.arange(3, vocab), 7)
    pairs = []
    for _ in range(n):
        ln = int(rng.integers(4, 9))
        src = rng.integers(3, vocab, size=ln)
        tgt = (src[::-1] - 3 + 7) % (vocab - 3) + 3
        pairs.append((src.tolist(), tgt.tolist()))
    return pairs


def collate(pairs):
    sl = max(len(s) for s, _ in pairs)
    tl = max(len(t) for _, t in pairs) + 1
    src = torch.full((len(pairs), sl), PAD)
    prev = torch.full((len(pairs), tl), PAD)
    tgt = torch.full((len(pairs), tl), PAD)
    for i, (s, t) in enumerate(pairs):
        src[i, : len(s)] = torch.tensor(s)
        prev[i, : len(t) + 1] = torch.tensor([BOS] + t)
        tgt[i, : len(t) + 1] = torch.tensor(t + [EOS])
    return src, prev, tgt


class Model(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.enc = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.dec = nn.GRU(dim, 2 * dim, batch_first=True)
        self.out = nn.Linear(4 * dim, vocab)

    def forward(self, src, prev):
        h, _ = self.enc(self.emb(src))
        d, _ = self.dec(self.emb(prev))
        score = torch.bmm(d, h.transpose(1, 2)) / math.sqrt(h.size(-1))
        score = score.masked_fill((src == PAD).unsqueeze(1), -1e9)
        ctx = torch.bmm(score.softmax(-1), h)
        return self.out(torch.cat([d, ctx], -1))


def batches(pairs, size, seed):
    order = np.random.default_rng(seed).permutation(len(pairs))
    for i in range(0, len(order), size):
        yield [pairs[j] for j in order[i : i + size]]


def validate(model, pairs, args):
    model.eval()
    loss, n, right = 0.0, 0, 0
    with torch.no_grad():
        for i in range(0, len(pairs), args.batch_size):
            src, prev, tgt = collate(pairs[i : i + args.batch_size])
            logits = model(src, prev)
            loss += F.cross_entropy(logits.flatten(0, 1), tgt.flatten(), ignore_index=PAD, reduction="sum").item()
            mask = tgt != PAD
            right += ((logits.argmax(-1) == tgt) & mask).sum().item()
            n += mask.sum().item()
    model.train()
    return loss / n / math.log(2), 100.0 * right / n


def fmt(stats):
    return json.dumps(OrderedDict((k, str(v)) for k, v in stats.items()))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--vocab", type=int, default=60)
    p.add_argument("--dim", type=int, default=48)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--max-epoch", type=int, default=3)
    p.add_argument("--log-interval", type=int, default=10)
    p.add_argument("--clip-norm", type=float, default=1.0)
    p.add_argument("--save-dir", default="checkpoints")
    args = p.parse_args()
    logger.info(vars(args))
    logger.info("host %s | pid %d | torch %s", platform.node(), os.getpid(), torch.__version__)

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    train, valid = make_corpus(1920, args.vocab, 10), make_corpus(256, args.vocab, 11)
    model = Model(args.vocab, args.dim)
    logger.info(model)
    logger.info("num. model params: {:,} (num. trained: {:,})".format(
        sum(q.numel() for q in model.parameters()), sum(q.numel() for q in model.parameters() if q.requires_grad)))
    opt = torch.optim.Adam(model.parameters(), lr=args.lr, betas=(0.9, 0.98))
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 20) * (20 / max(20, s + 1)) ** 0.5)

    os.makedirs(args.save_dir, exist_ok=True)
    wall0 = time.time()
    updates, best = 0, None
    for epoch in range(1, args.max_epoch + 1):
        logger.info(f"Start iterating over samples, epoch {epoch}")
        train_wall = StopwatchMeter()
        ml, mg = AverageMeter(), AverageMeter()
        inner, words, since = AverageMeter(), 0, time.perf_counter()
        for i, b in enumerate(batches(train, args.batch_size, args.seed * 100 + epoch)):
            train_wall.start()
            src, prev, tgt = collate(b)
            loss = F.cross_entropy(model(src, prev).flatten(0, 1), tgt.flatten(), ignore_index=PAD)
            opt.zero_grad()
            loss.backward()
            gnorm = nn.utils.clip_grad_norm_(model.parameters(), args.clip_norm)
            opt.step()
            sched.step()
            updates += 1
            train_wall.stop()
            n = int((tgt != PAD).sum())
            words += n
            for m in (ml, inner):
                m.update(loss.item() / math.log(2), n)
            mg.update(gnorm.item())
            if updates % args.log_interval == 0:
                dt = time.perf_counter() - since
                logging.getLogger("train_inner").info(fmt({
                    "epoch": epoch, "update": round(epoch - 1 + (i + 1) / 30, 3),
                    "loss": f"{inner.avg:.3f}", "ppl": f"{2 ** inner.avg:.2f}",
                    "wps": f"{words / dt:.1f}", "ups": f"{args.log_interval / dt:.2f}",
                    "wpb": f"{words / args.log_interval:.1f}", "bsz": args.batch_size, "num_updates": updates,
                    "lr": f"{sched.get_last_lr()[0]:.6g}", "gnorm": f"{gnorm.item():.3f}", "clip": 100 if gnorm > args.clip_norm else 0,
                    "train_wall": f"{train_wall.sum:.2f}", "wall": f"{time.time() - wall0:.1f}"}))
                inner.reset()
                words, since = 0, time.perf_counter()
        vl, acc = validate(model, valid, args)
        best = vl if best is None else min(best, vl)
        logging.getLogger("valid").info(fmt({
            "epoch": epoch, "valid_loss": f"{vl:.3f}", "valid_ppl": f"{2 ** vl:.2f}", "valid_accuracy": f"{acc:.2f}",
            "valid_num_updates": updates, "valid_best_loss": f"{best:.3f}"}))
        t = time.perf_counter()
        path = os.path.join(args.save_dir, f"checkpoint{epoch}.pt")
        state = {"args": vars(args), "model": model.state_dict(), "last_optimizer_state": opt.state_dict(),
                 "optimizer_history": [{"num_updates": updates, "optimizer_name": "Adam"}],
                 "extra_state": {"epoch": epoch, "val_loss": vl, "train_wall": train_wall.sum,
                                 "previous_training_time": time.time() - wall0}}
        torch.save(state, path)
        if vl == best:
            torch.save(state, os.path.join(args.save_dir, "checkpoint_best.pt"))
        logger.info(f"Saved checkpoint {path} (epoch {epoch} @ {updates} updates, score {vl:.3f}) "
                    f"(writing took {time.perf_counter() - t:.6f} seconds)")
        logging.getLogger("train").info(fmt({
            "epoch": epoch, "train_loss": f"{ml.avg:.3f}", "train_ppl": f"{2 ** ml.avg:.2f}", "train_gnorm": f"{mg.avg:.3f}",
            "train_num_updates": updates, "train_train_wall": f"{train_wall.sum:.0f}", "train_wall": f"{time.time() - wall0:.0f}"}))
    logger.info("done training in {:.1f} seconds".format(time.time() - wall0))


if __name__ == "__main__":
    main()
