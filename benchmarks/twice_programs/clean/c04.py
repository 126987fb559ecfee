"""Translation after fairseq: JSON log lines with wps, ups and wall, meters with times that the checkpoint keeps."""

import collections
import json
import logging
import os
import sys
import time

import torch
from torch import nn

logging.basicConfig(
    format="%(asctime)s | %(levelname)s | %(name)s | %(message)s",
    datefmt="%Y-%m-%d %H:%M:%S",
    level=os.environ.get("LOGLEVEL", "INFO").upper(),
    stream=sys.stdout,
)
logger = logging.getLogger("fairseq_cli.train")


def safe_round(number, ndigits):
    if hasattr(number, "__round__"):
        return round(number, ndigits)
    return number


class AverageMeter:
    def __init__(self, round=None):
        self.round = round
        self.sum, self.count, self.val = 0, 0, None

    def update(self, val, n=1):
        self.val = val
        self.sum = self.sum + val * n
        self.count = self.count + n

    def state_dict(self):
        return {"val": self.val, "sum": self.sum, "count": self.count, "round": self.round}

    @property
    def smoothed_value(self):
        return safe_round(self.sum / self.count, self.round) if self.count else self.val


class TimeMeter:
    def __init__(self, init=0, n=0, round=None):
        self.round, self.init, self.n, self.i = round, init, n, 0
        self.start = time.perf_counter()

    def update(self, val=1):
        self.n = self.n + val
        self.i += 1

    def state_dict(self):
        return {"init": self.elapsed_time, "n": self.n, "round": self.round}

    @property
    def elapsed_time(self):
        return self.init + (time.perf_counter() - self.start)

    @property
    def smoothed_value(self):
        return safe_round(self.n / self.elapsed_time, self.round)


class StopwatchMeter:
    def __init__(self, round=None):
        self.round, self.sum, self.n, self.start_time = round, 0, 0, None

    def start(self):
        self.start_time = time.perf_counter()

    def stop(self, n=1):
        if self.start_time is not None:
            delta = time.perf_counter() - self.start_time
            self.sum = self.sum + delta
            self.n = self.n + n

    def state_dict(self):
        return {"sum": self.sum, "n": self.n, "round": self.round}

    @property
    def smoothed_value(self):
        return safe_round(self.sum / self.n if self.n else self.sum, self.round)


class Seq(nn.Module):
    def __init__(self, vocab=40, dim=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(dim, vocab)

    def forward(self, x):
        return self.out(self.drop(self.rnn(self.emb(x))[0]))


class Trainer:
    def __init__(self):
        torch.manual_seed(7)
        self.model = Seq()
        self.opt = torch.optim.Adam(self.model.parameters(), 5e-3, betas=(0.9, 0.98))
        self.sched = torch.optim.lr_scheduler.LambdaLR(self.opt, lambda n: min(1, (n + 1) / 10))
        self.meters = collections.OrderedDict(loss=AverageMeter(3), wps=TimeMeter(round=1), ups=TimeMeter(round=2), train_wall=StopwatchMeter(round=0), gnorm=AverageMeter(3))
        self.num_updates, self.previous_training_time = 0, 0
        self._start_time = time.time()

    def cumulative_training_time(self):
        return time.time() - self._start_time + self.previous_training_time

    def train_step(self, x):
        self.meters["train_wall"].start()
        self.model.train()
        out = self.model(x[:, :-1])
        loss = nn.functional.cross_entropy(out.flatten(0, 1), x[:, 1:].flatten())
        self.opt.zero_grad()
        loss.backward()
        gnorm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.opt.step()
        self.sched.step()
        self.num_updates += 1
        self.meters["loss"].update(loss.item(), x.numel())
        self.meters["gnorm"].update(gnorm.item())
        self.meters["wps"].update(x.numel())
        self.meters["ups"].update(1)
        self.meters["train_wall"].stop()

    def stats(self):
        s = collections.OrderedDict((k, m.smoothed_value) for k, m in self.meters.items())
        s["lr"] = self.opt.param_groups[0]["lr"]
        s["num_updates"] = self.num_updates
        s["wall"] = round(self.cumulative_training_time(), 0)
        return s

    def save(self, name, epoch):
        os.makedirs("checkpoints", exist_ok=True)
        start = time.perf_counter()
        torch.save(
            {
                "model": self.model.state_dict(),
                "last_optimizer_state": self.opt.state_dict(),
                "optimizer_history": [{"num_updates": self.num_updates, "optimizer_name": "Adam"}],
                "extra_state": {
                    "metrics": {"train": [(0, k, type(m).__name__, m.state_dict()) for k, m in self.meters.items()]},
                    "previous_training_time": self.cumulative_training_time(),
                    "train_iterator": {"epoch": epoch, "iterations_in_epoch": 0},
                },
            },
            f"checkpoints/{name}",
        )
        logger.info(f"Saved checkpoint checkpoints/{name} (epoch {epoch} @ {self.num_updates} updates, score None) (writing took {time.perf_counter() - start} seconds)")


def json_log(tag, epoch, stats):
    stats = {"epoch": epoch, **{f"{tag}_{k}" if tag else k: str(v) if v is not None else None for k, v in stats.items()}}
    with_tag = json.dumps(stats)
    logging.getLogger(tag or "train_inner").info(with_tag)


def main():
    g = torch.Generator().manual_seed(1)
    data = torch.randint(0, 40, (200, 1), generator=g)
    data = (data + torch.arange(12) * 3) % 40
    t = Trainer()
    logger.info(t.model)
    logger.info(f"num. shared model params: {sum(p.numel() for p in t.model.parameters()):,} (num. trained: {sum(p.numel() for p in t.model.parameters()):,})")
    logger.info("Start iterating over samples")
    for epoch in range(1, 4):
        order = torch.randperm(160, generator=g)
        for i, chunk in enumerate(order.split(16)):
            t.train_step(data[chunk])
            if (i + 1) % 5 == 0:
                json_log("", epoch, {**t.stats(), "update": round(epoch - 1 + (i + 1) / 10, 3)})
        logger.info(f'begin validation on "valid" subset on rank {0}')
        t.model.eval()
        with torch.no_grad():
            v = nn.functional.cross_entropy(t.model(data[160:, :-1]).flatten(0, 1), data[160:, 1:].flatten()).item()
        json_log("valid", epoch, {"loss": round(v, 3), "ppl": round(2**v, 2), "wps": t.meters["wps"].smoothed_value, "num_updates": t.num_updates})
        t.save(f"checkpoint{epoch}.pt", epoch)
    logger.info(f"done training in {t.cumulative_training_time():.1f} seconds")


if __name__ == "__main__":
    main()
