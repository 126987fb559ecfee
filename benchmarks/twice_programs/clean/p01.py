"""Train a small encoder-decoder on a synthetic reversal corpus, logging as fairseq does.

Log format: https://github.com/facebookresearch/fairseq/issues/2338
(epoch lines with wps, ups, wpb, bsz, num_updates, lr, gnorm, train_wall, wall)
"""
import json
import logging
import math
import os
import sys
import time

import numpy as np
import torch
import torch.nn as nn

SEED = 3
VOCAB, PAD, BOS, EOS = 40, 0, 1, 2
MAX_TOKENS = 640
EPOCHS = 3
LOG_INTERVAL = 20
SAVE_DIR = "checkpoints"

logging.basicConfig(
    format="%(asctime)s | %(levelname)s | %(name)s | %(message)s",
    datefmt="%Y-%m-%d %H:%M:%S", level=logging.INFO,
    handlers=[logging.StreamHandler(sys.stdout), logging.FileHandler("train.log")])


class Meter:
    """Running average, as in fairseq.meters."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.sum, self.n = 0.0, 0

    def update(self, val, n=1):
        self.sum += val * n
        self.n += n

    @property
    def avg(self):
        return self.sum / max(self.n, 1)


class StopwatchMeter:
    def __init__(self):
        self.total = 0.0
        self.start_t = None

    def start(self):
        self.start_t = time.perf_counter()

    def stop(self):
        self.total += time.perf_counter() - self.start_t


class RevModel(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.attn = nn.Linear(dim, dim, bias=False)
        self.out = nn.Linear(2 * dim, VOCAB)

    def forward(self, src, prev):
        enc, h = self.encoder(self.embed(src))
        dec, _ = self.decoder(self.embed(prev), h)
        score = self.attn(dec) @ enc.transpose(1, 2)
        score = score.masked_fill(src.eq(PAD).unsqueeze(1), -1e9)
        ctx = score.softmax(-1) @ enc
        return self.out(torch.cat([dec, ctx], -1))


def make_split(rng, n):
    data = []
    for _ in range(n):
        length = int(rng.integers(4, 12))
        data.append(rng.integers(3, VOCAB, length).tolist())
    return data


def batches(data, order):
    """Batch by tokens, sentences sorted by length inside the shuffled blocks."""
    out, cur, longest = [], [], 0
    for i in sorted(order, key=lambda j: (len(data[j]), j)):
        longest = max(longest, len(data[i]) + 1)
        if longest * (len(cur) + 1) > MAX_TOKENS:
            out.append(cur)
            cur, longest = [], len(data[i]) + 1
        cur.append(i)
    if cur:
        out.append(cur)
    return out


def collate(data, ids):
    width = max(len(data[i]) for i in ids) + 1
    src = torch.full((len(ids), width), PAD)
    tgt = torch.full((len(ids), width), PAD)
    for r, i in enumerate(ids):
        s = data[i]
        src[r, :len(s) + 1] = torch.tensor(s + [EOS])
        tgt[r, :len(s) + 1] = torch.tensor(s[::-1] + [EOS])
    prev = torch.cat([torch.full((len(ids), 1), BOS), tgt[:, :-1]], 1)
    return src, prev, tgt


def loss_of(model, batch):
    src, prev, tgt = batch
    logits = model(src, prev)
    loss = nn.functional.cross_entropy(logits.reshape(-1, VOCAB), tgt.reshape(-1),
                                       ignore_index=PAD, reduction="sum")
    return loss, int(tgt.ne(PAD).sum())


def main():
    t_begin = time.time()
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    rng = np.random.default_rng(SEED)
    train, valid = make_split(rng, 2600), make_split(rng, 400)
    cli, trn = logging.getLogger("fairseq_cli.train"), logging.getLogger("fairseq.trainer")
    model = RevModel()
    n_par = sum(p.numel() for p in model.parameters())
    cli.info("model RevModel, criterion CrossEntropyCriterion")
    cli.info("num. model params: %d (num. trained: %d)", n_par, n_par)
    cli.info("max tokens per device = %d and max sentences per device = None", MAX_TOKENS)
    os.makedirs(SAVE_DIR, exist_ok=True)
    trn.info("No existing checkpoint found %s/checkpoint_last.pt", SAVE_DIR)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
    updates, train_wall = 0, StopwatchMeter()
    history = open("history.jsonl", "w")

    for epoch in range(1, EPOCHS + 1):
        trn.info("begin training epoch %d", epoch)
        todo = batches(train, list(range(len(train))))
        todo = [todo[i] for i in rng.permutation(len(todo))]
        inner = {k: Meter() for k in ("loss", "wpb", "bsz", "gnorm")}
        epoch_m = {k: Meter() for k in ("loss", "wpb", "bsz", "gnorm")}
        t_inner = t_epoch = time.perf_counter()
        words_epoch = 0
        for step, ids in enumerate(todo, 1):
            train_wall.start()
            lr = 3e-3 * min((updates + 1) / 60, math.sqrt(60 / (updates + 1)))
            for g in opt.param_groups:
                g["lr"] = lr
            loss, ntok = loss_of(model, collate(train, ids))
            opt.zero_grad()
            (loss / ntok).backward()
            gnorm = float(nn.utils.clip_grad_norm_(model.parameters(), 1.0))
            opt.step()
            updates += 1
            train_wall.stop()
            for m in (inner, epoch_m):
                m["loss"].update(loss.item() / ntok / math.log(2), ntok)
                m["wpb"].update(ntok)
                m["bsz"].update(len(ids))
                m["gnorm"].update(gnorm)
            words_epoch += ntok
            if step % LOG_INTERVAL == 0:
                dt = time.perf_counter() - t_inner
                l = inner["loss"].avg
                logging.getLogger("train_inner").info(
                    "epoch %03d: %6d / %d loss=%.3f, ppl=%.2f, wps=%.1f, ups=%.2f, wpb=%.1f, bsz=%.1f, "
                    "num_updates=%d, lr=%.6g, gnorm=%.3f, train_wall=%.0f, wall=%.0f",
                    epoch, step, len(todo), l, 2 ** l, inner["wpb"].sum / dt, LOG_INTERVAL / dt,
                    inner["wpb"].avg, inner["bsz"].avg, updates, lr, inner["gnorm"].avg,
                    train_wall.total, time.time() - t_begin)
                for m in inner.values():
                    m.reset()
                t_inner = time.perf_counter()
        dt = time.perf_counter() - t_epoch
        l = epoch_m["loss"].avg
        logging.getLogger("train").info(
            "epoch %03d | loss %.3f | ppl %.2f | wps %.1f | ups %.2f | wpb %.1f | bsz %.1f | num_updates %d | "
            "lr %.6g | gnorm %.3f | train_wall %.0f | wall %.0f", epoch, l, 2 ** l, words_epoch / dt,
            len(todo) / dt, epoch_m["wpb"].avg, epoch_m["bsz"].avg, updates, lr, epoch_m["gnorm"].avg,
            train_wall.total, time.time() - t_begin)

        vm, hit, tot = Meter(), 0, 0
        t0 = time.perf_counter()
        with torch.no_grad():
            for ids in batches(valid, list(range(len(valid)))):
                b = collate(valid, ids)
                loss, ntok = loss_of(model, b)
                vm.update(loss.item() / ntok / math.log(2), ntok)
                pred = model(b[0], b[1]).argmax(-1)
                mask = b[2].ne(PAD)
                hit += int((pred.eq(b[2]) & mask).sum())
                tot += ntok
        logging.getLogger("valid").info(
            "epoch %03d | valid on 'valid' subset | loss %.3f | ppl %.2f | accuracy %.4f | wps %.1f | num_updates %d",
            epoch, vm.avg, 2 ** vm.avg, hit / tot, tot / (time.perf_counter() - t0), updates)
        t0 = time.perf_counter()
        path = f"{SAVE_DIR}/checkpoint_last.pt"
        torch.save({"model": model.state_dict(), "args": {"seed": SEED, "max_tokens": MAX_TOKENS},
                    "extra_state": {"epoch": epoch, "val_loss": vm.avg,
                                    "previous_training_time": time.time() - t_begin}}, path)
        logging.getLogger("fairseq.checkpoint_utils").info(
            "Saved checkpoint %s (epoch %d @ %d updates, score %.3f) (writing took %s seconds)",
            path, epoch, updates, vm.avg, time.perf_counter() - t0)
        history.write(json.dumps({"epoch": epoch, "train_loss": f"{l:.6f}", "valid_loss": f"{vm.avg:.6f}",
                                  "valid_accuracy": hit / tot, "num_updates": updates,
                                  "train_wall": f"{train_wall.total:.1f}",
                                  "wall": f"{time.time() - t_begin:.1f}"}) + "\n")
    history.close()
    cli.info("done training in %.1f seconds", time.time() - t_begin)


if __name__ == "__main__":
    main()
