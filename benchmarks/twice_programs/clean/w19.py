"""Data-parallel language-model style regression with torch.distributed (gloo), two local ranks.

torchrun-like launcher inside: picks a free port, forks the ranks, one log per rank,
rank 0 prints the progress and writes the checkpoint, gathered timings end up in a report.
"""
import json
import logging
import os
import socket
import sys
import time
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

CFG = {
    "world_size": 2,
    "seed": 4242,
    "epochs": 3,
    "batch_size": 16,
    "n": 768,
    "seq_len": 24,
    "n_vars": 5,
    "d_model": 32,
    "lr": 3e-3,
    "log_every": 8,
    "out": "ddp_run",
}


def find_free_port():
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Sensors(Dataset):
    """Multivariate series; the target is the next value of the first sensor."""

    def __init__(self, n, seq_len, n_vars, seed):
        rng = np.random.default_rng(seed)
        t = np.arange(seq_len + 1)
        f = rng.uniform(0.05, 0.3, (n, n_vars, 1))
        ph = rng.uniform(0, 6.28, (n, n_vars, 1))
        x = np.sin(2 * np.pi * f * t + ph)
        mix = np.random.default_rng(0).normal(0, 0.5, (n_vars, n_vars)) + np.eye(n_vars)
        x = np.einsum("ij,njt->nit", mix, x) + rng.normal(0, 0.05, x.shape)
        self.x = torch.tensor(x[:, :, :-1].transpose(0, 2, 1), dtype=torch.float32)
        self.y = torch.tensor(x[:, 0, -1], dtype=torch.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Forecaster(nn.Module):
    def __init__(self, n_vars, d, seq_len):
        super().__init__()
        self.inp = nn.Linear(n_vars, d)
        self.pos = nn.Parameter(torch.zeros(1, seq_len, d))
        layer = nn.TransformerEncoderLayer(d, 4, 2 * d, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 1)
        self.head = nn.Linear(d, 1)

    def forward(self, x):
        return self.head(self.enc(self.inp(x) + self.pos)[:, -1]).squeeze(-1)


def get_logger(rank, out):
    lg = logging.getLogger(f"rank{rank}")
    lg.setLevel(logging.INFO)
    lg.propagate = False
    fmt = logging.Formatter(f"[rank{rank}|pid %(process)d] %(asctime)s %(filename)s:%(lineno)d] %(message)s", "%m%d %H:%M:%S")
    fh = logging.FileHandler(Path(out) / f"rank_{rank}.log")
    fh.setFormatter(fmt)
    lg.addHandler(fh)
    sh = logging.StreamHandler(sys.stdout)
    sh.setFormatter(fmt)
    lg.addHandler(sh)
    return lg


def reduce_mean(v):
    t = torch.tensor(v, dtype=torch.float64)
    dist.all_reduce(t)
    return (t / dist.get_world_size()).item()


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    se, n = 0.0, 0
    for x, y in loader:
        se += F.mse_loss(model(x), y, reduction="sum").item()
        n += len(y)
    model.train()
    return se / n


def worker(rank, cfg, port, launch_time):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(cfg["world_size"]),
                      LOCAL_RANK=str(rank), GLOO_SOCKET_IFNAME=os.environ.get("GLOO_SOCKET_IFNAME", "lo"))
    torch.set_num_threads(1)
    log = get_logger(rank, cfg["out"])
    dist.init_process_group("gloo", rank=rank, world_size=cfg["world_size"], timeout=timedelta(seconds=60))
    log.info("initialized %d/%d, store tcp://127.0.0.1:%d, startup took %.2fs", rank, cfg["world_size"], port, time.time() - launch_time)
    torch.manual_seed(cfg["seed"])
    train = Sensors(cfg["n"], cfg["seq_len"], cfg["n_vars"], cfg["seed"])
    valid = Sensors(192, cfg["seq_len"], cfg["n_vars"], cfg["seed"] + 1)
    sampler = DistributedSampler(train, cfg["world_size"], rank, shuffle=True, seed=cfg["seed"])
    loader = DataLoader(train, cfg["batch_size"], sampler=sampler)
    vloader = DataLoader(valid, 96)
    model = DDP(Forecaster(cfg["n_vars"], cfg["d_model"], cfg["seq_len"]))
    opt = torch.optim.AdamW(model.parameters(), lr=cfg["lr"])
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, cfg["epochs"] * len(loader))
    history, comm = [], 0.0
    for epoch in range(cfg["epochs"]):
        sampler.set_epoch(epoch)
        t0, tot = time.time(), 0.0
        for step, (x, y) in enumerate(loader):
            loss = F.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            tot += loss.item()
            if step % cfg["log_every"] == 0:
                c = time.perf_counter()
                mean = reduce_mean(loss.item())
                comm += time.perf_counter() - c
                if rank == 0:
                    sps = (step + 1) * cfg["batch_size"] * cfg["world_size"] / (time.time() - t0)
                    log.info("epoch %d step %d | loss %.5f | lr %.2e | %.1f samples/s", epoch, step, mean, sched.get_last_lr()[0], sps)
        vl = evaluate(model.module, vloader)
        ep = {"epoch": epoch, "train_loss": reduce_mean(tot / len(loader)), "val_mse": vl, "epoch_time": time.time() - t0}
        log.info("epoch %d finished in %.2fs, local loss %.6f", epoch, ep["epoch_time"], tot / len(loader))
        history.append(ep)
        if rank == 0:
            with open(Path(cfg["out"]) / "history.jsonl", "a") as f:
                f.write(json.dumps({**ep, "ts": datetime.now().isoformat(timespec="seconds")}) + "\n")
            torch.save({"model": model.module.state_dict(), "opt": opt.state_dict(), "epoch": epoch, "val_mse": vl,
                        "world_size": cfg["world_size"], "elapsed": time.time() - launch_time},
                       Path(cfg["out"]) / "snapshot.pt")
        dist.barrier()
    stats = {"rank": rank, "pid": os.getpid(), "comm_s": round(comm, 4), "train_s": round(sum(h["epoch_time"] for h in history), 4)}
    gathered = [None] * cfg["world_size"]
    dist.all_gather_object(gathered, stats)
    norm = float(sum(p.detach().double().pow(2).sum() for p in model.parameters()) ** 0.5)
    same = [None] * cfg["world_size"]
    dist.all_gather_object(same, norm)
    if rank == 0:
        assert len(set(same)) == 1, "ranks diverged"
        with torch.no_grad():
            pred = torch.cat([model.module(x) for x, _ in vloader])
        np.savetxt(Path(cfg["out"]) / "val_predictions.csv", np.c_[valid.y.numpy(), pred.numpy()], delimiter=",",
                   header="target,prediction", comments="", fmt="%.7f")
        with open(Path(cfg["out"]) / "report.json", "w") as f:
            json.dump({"param_norm": norm, "val_mse": history[-1]["val_mse"], "history": history, "ranks": gathered,
                       "master_port": port}, f, indent=2)
        log.info("param norm %.8f, comm share %.1f%%", norm, 100 * stats["comm_s"] / stats["train_s"])
    dist.destroy_process_group()
    log.info("rank %d done", rank)


def main():
    Path(CFG["out"]).mkdir(exist_ok=True)
    port = find_free_port()
    print(f"*****************************************\nlaunching {CFG['world_size']} ranks on {socket.gethostname()}, "
          f"rdzv endpoint 127.0.0.1:{port}, run id {int(time.time()) % 100000}\n*****************************************", flush=True)
    t0 = time.time()
    mp.start_processes(worker, (CFG, port, t0), nprocs=CFG["world_size"], join=True, start_method="fork")
    rep = json.loads((Path(CFG["out"]) / "report.json").read_text())
    for h in rep["history"]:
        print(f"epoch {h['epoch']}: train {h['train_loss']:.6f} val {h['val_mse']:.6f} ({h['epoch_time']:.2f}s)")
    print(f"all ranks finished, total {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
