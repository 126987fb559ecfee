"""Sequence-to-sequence training in the fairseq manner: progress logging in "json" style,
train/valid stats with wps/ups/wall, checkpoint_best.pt / checkpoint_last.pt."""
import argparse
import json
import logging
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
    stream=sys.stdout,
)
logger = logging.getLogger("fairseq_cli.train")
PAD, BOS, EOS = 0, 1, 2


class AverageMeter:
    def __init__(self, round=None):
        self.sum = self.count = 0
        self.round = round

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        v = self.sum / self.count if self.count else 0.0
        return v if self.round is None else round(v, self.round)


class TimeMeter:
    """Average of events per second."""

    def __init__(self):
        self.start, self.n, self.i = time.perf_counter(), 0, 0

    def update(self, val=1):
        self.n += val
        self.i += 1

    @property
    def elapsed_time(self):
        return time.perf_counter() - self.start

    @property
    def avg(self):
        return self.n / self.elapsed_time


class StopwatchMeter:
    def __init__(self):
        self.sum, self.start_time = 0.0, None

    def start(self):
        self.start_time = time.perf_counter()

    def stop(self):
        self.sum += time.perf_counter() - self.start_time


class Seq2Seq(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.encoder = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.bridge = nn.Linear(2 * dim, dim)
        self.attn = nn.Linear(dim, 2 * dim)
        self.out = nn.Linear(3 * dim, vocab)
        self.drop = nn.Dropout(0.1)

    def forward(self, src, prev):
        enc, h = self.encoder(self.drop(self.embed(src)))
        h0 = torch.tanh(self.bridge(torch.cat([h[0], h[1]], -1))).unsqueeze(0)
        dec, _ = self.decoder(self.drop(self.embed(prev)), h0)
        score = torch.bmm(self.attn(dec), enc.transpose(1, 2))
        score = score.masked_fill((src == PAD).unsqueeze(1), -1e4)
        ctx = torch.bmm(score.softmax(-1), enc)
        return self.out(torch.cat([dec, ctx], -1))


def build_dataset(n, vocab, rng):
    """Task: reverse a sequence of symbols and shift each by one."""
    data = []
    for _ in range(n):
        ln = rng.randint(4, 9)
        s = [rng.randint(3, vocab - 1) for _ in range(ln)]
        t = [3 + (x - 3 + 1) % (vocab - 3) for x in reversed(s)]
        data.append((s + [EOS], t + [EOS]))
    return data


def collate(samples):
    ms, mt = max(len(s) for s, _ in samples), max(len(t) for _, t in samples)
    src = torch.full((len(samples), ms), PAD)
    tgt = torch.full((len(samples), mt), PAD)
    prev = torch.full((len(samples), mt), PAD)
    for i, (s, t) in enumerate(samples):
        src[i, :len(s)] = torch.tensor(s)
        tgt[i, :len(t)] = torch.tensor(t)
        prev[i, :len(t)] = torch.tensor([BOS] + t[:-1])
    return {"src": src, "prev": prev, "target": tgt, "ntokens": int((tgt != PAD).sum())}


def label_smoothed_nll(logits, target, eps):
    lp = F.log_softmax(logits, -1).view(-1, logits.size(-1))
    t = target.view(-1)
    mask = t != PAD
    nll = -lp.gather(1, t.unsqueeze(1)).squeeze(1)[mask].sum()
    smooth = -lp.sum(-1)[mask].sum()
    return (1 - eps) * nll + eps / lp.size(-1) * smooth, nll


class Trainer:
    def __init__(self, args, model):
        self.args, self.model = args, model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, betas=(0.9, 0.98), eps=1e-8)
        self.num_updates = 0
        self.start_time = time.time()
        self.train_wall = StopwatchMeter()

    def lr_step(self):
        w = self.args.warmup_updates
        n = self.num_updates + 1
        lr = self.args.lr * min(n / w, (w / n) ** 0.5)
        for g in self.optimizer.param_groups:
            g["lr"] = lr
        return lr

    def train_step(self, sample):
        self.model.train()
        self.train_wall.start()
        lr = self.lr_step()
        loss, nll = label_smoothed_nll(self.model(sample["src"], sample["prev"]), sample["target"], 0.1)
        self.optimizer.zero_grad()
        (loss / sample["ntokens"]).backward()
        gnorm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.num_updates += 1
        self.train_wall.stop()
        return loss.item() / sample["ntokens"] / np.log(2), nll.item() / sample["ntokens"] / np.log(2), gnorm.item(), lr

    @torch.no_grad()
    def validate(self, batches):
        self.model.eval()
        nll_sum = tokens = correct = 0
        for b in batches:
            logits = self.model(b["src"], b["prev"])
            nll_sum += label_smoothed_nll(logits, b["target"], 0.1)[1].item()
            m = b["target"] != PAD
            correct += int((logits.argmax(-1)[m] == b["target"][m]).sum())
            tokens += b["ntokens"]
        return nll_sum / tokens / np.log(2), correct / tokens

    def save_checkpoint(self, fname, extra):
        os.makedirs(self.args.save_dir, exist_ok=True)
        t = time.time()
        state = {
            "args": vars(self.args), "model": self.model.state_dict(),
            "last_optimizer_state": self.optimizer.state_dict(),
            "optimizer_history": [{"num_updates": self.num_updates, "optimizer_name": "FairseqAdam"}],
            "extra_state": dict(extra, previous_training_time=time.time() - self.start_time),
        }
        path = os.path.join(self.args.save_dir, fname)
        torch.save(state, path + ".tmp")
        os.replace(path + ".tmp", path)
        logger.info("Saved checkpoint %s (epoch %d @ %d updates, score %s) (writing took %s seconds)",
                    path, extra["epoch"], self.num_updates, extra["val_loss"], time.time() - t)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--save-dir", default="checkpoints")
    p.add_argument("--seed", type=int, default=222)
    p.add_argument("--lr", type=float, default=4e-3)
    p.add_argument("--warmup-updates", type=int, default=40)
    p.add_argument("--max-epoch", type=int, default=4)
    p.add_argument("--batch-size", type=int, default=40)
    p.add_argument("--log-interval", type=int, default=15)
    p.add_argument("--vocab", type=int, default=24)
    p.add_argument("--dim", type=int, default=48)
    args = p.parse_args()
    logger.info(args)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    rng = random.Random(args.seed)
    t = time.perf_counter()
    train, valid = build_dataset(1800, args.vocab, rng), build_dataset(200, args.vocab, rng)
    logger.info("loaded %d train and %d valid examples in %.3f s", len(train), len(valid), time.perf_counter() - t)
    model = Seq2Seq(args.vocab, args.dim)
    trainer = Trainer(args, model)
    logger.info("num. shared model params: %s", f"{sum(q.numel() for q in model.parameters()):,}")
    logger.info("training on 1 devices (CPU: %s, torch %s)", platform.machine(), torch.__version__)
    vb = [collate(valid[i:i + 50]) for i in range(0, len(valid), 50)]
    best = float("inf")
    epoch_times = []
    for epoch in range(1, args.max_epoch + 1):
        order = list(range(len(train)))
        random.Random(args.seed + epoch).shuffle(order)
        nb = (len(order) + args.batch_size - 1) // args.batch_size
        loss_m, nll_m, gn_m = AverageMeter(), AverageMeter(), AverageMeter()
        wps, ups = TimeMeter(), TimeMeter()
        logger.info("begin training epoch %d", epoch)
        e0 = time.time()
        for i in range(nb):
            s = collate([train[j] for j in order[i * args.batch_size:(i + 1) * args.batch_size]])
            loss, nll, gnorm, lr = trainer.train_step(s)
            loss_m.update(loss, s["ntokens"]); nll_m.update(nll, s["ntokens"]); gn_m.update(gnorm)
            wps.update(s["ntokens"]); ups.update()
            if (i + 1) % args.log_interval == 0:
                stats = OrderedDict(
                    epoch=epoch, update=round(epoch - 1 + (i + 1) / nb, 3), loss=f"{loss_m.avg:.3f}",
                    nll_loss=f"{nll_m.avg:.3f}", ppl=f"{2 ** nll_m.avg:.2f}", wps=f"{wps.avg:.1f}",
                    ups=f"{ups.avg:.2f}", wpb=f"{wps.n / wps.i:.1f}", num_updates=str(trainer.num_updates),
                    lr=f"{lr:g}", gnorm=f"{gn_m.avg:.3f}", train_wall=f"{trainer.train_wall.sum:.0f}",
                    wall=f"{time.time() - trainer.start_time:.0f}")
                logging.getLogger("train_inner").info(json.dumps(stats))
        vloss, vacc = trainer.validate(vb)
        best = min(best, vloss)
        logging.getLogger("valid").info(json.dumps(OrderedDict(
            epoch=epoch, valid_nll_loss=f"{vloss:.4f}", valid_accuracy=f"{vacc:.4f}",
            valid_num_updates=str(trainer.num_updates), valid_best_loss=f"{best:.4f}")))
        extra = {"epoch": epoch, "val_loss": vloss, "best": best, "val_acc": vacc}
        if vloss == best:
            trainer.save_checkpoint("checkpoint_best.pt", extra)
        trainer.save_checkpoint("checkpoint_last.pt", extra)
        epoch_times.append(time.time() - e0)
        logging.getLogger("train").info("end of epoch %d (average epoch stats below)", epoch)
        logging.getLogger("train").info(
            "epoch %03d | loss %.3f | nll_loss %.3f | ppl %.2f | wps %.1f | ups %.2f | gnorm %.3f | train_wall %.1f | wall %.1f",
            epoch, loss_m.avg, nll_m.avg, 2 ** nll_m.avg, wps.avg, ups.avg, gn_m.avg, trainer.train_wall.sum,
            time.time() - trainer.start_time)
    with open(os.path.join(args.save_dir, "valid_summary.tsv"), "w") as f:
        f.write("best_nll\tlast_nll\tlast_acc\n%.10f\t%.10f\t%.10f\n" % (best, vloss, vacc))
    logger.info("done training in %.1f seconds (slowest epoch %.2f s)", sum(epoch_times), max(epoch_times))


if __name__ == "__main__":
    main()
