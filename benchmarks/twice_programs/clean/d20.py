"""Style of saforem2/ezpz (examples/test.py, History; 'iter=.. loss=.. dt=..' lines) with rich tables. Differs in each run: dt, dtf,
dtb, their min/max/std summary, date in log lines and folder, rich progress, timings inside the history dataset, machine report."""
import json
import logging
import os
import platform
import statistics
import time
from collections import defaultdict
from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from torch import nn

logging.basicConfig(format="[%(asctime)s,%(msecs)06d][%(levelname).1s][ezpz/test:%(lineno)d:%(funcName)s] %(message)s", datefmt="%Y-%m-%d %H:%M:%S", level=logging.INFO)
logging.getLogger("torch").setLevel(logging.WARNING)
logger = logging.getLogger("ezpz")
console = Console(width=110)
NOW = datetime.now().strftime("%Y-%m-%d-%H%M%S")
OUT = Path("outputs", "ezpz-test", NOW)
OUT.mkdir(parents=True)


class History:
    def __init__(self):
        self.h = defaultdict(list)

    def update(self, d):
        for k, v in d.items():
            self.h[k].append(v)
        return " ".join(f"{k}={v:d}" if isinstance(v, int) else f"{k}={v:.6f}" for k, v in d.items())

    def stats(self):
        return {k: dict(mean=statistics.fmean(v), min=min(v), max=max(v), std=statistics.pstdev(v)) for k, v in self.h.items() if k != "iter"}

    def finalize(self, out):
        df = pl.DataFrame(dict(self.h))
        df.write_parquet(out / "history.parquet")
        np.savez_compressed(out / "dataset_dataset.npz", **{k: np.asarray(v) for k, v in self.h.items()})
        return df


def setup():
    t0 = time.perf_counter()
    torch.manual_seed(1992)
    torch.set_num_threads(1)
    logger.info("Setting random seed manually: seed=1992, rank=0/0, host=%s, pid=%d", platform.node(), os.getpid())
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 128))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    logger.info("timer: setup took %.4f seconds; %d parameters", time.perf_counter() - t0, sum(p.numel() for p in model.parameters()))
    return model, opt


def bars(values, width=40, rows=6):
    v = np.asarray(values)
    v = v[: len(v) // width * width].reshape(width, -1).mean(1)
    lo, hi = v.min(), v.max()
    lines = [[" "] * width for _ in range(rows)]
    for i, a in enumerate(v):
        lines[rows - 1 - int((a - lo) / (hi - lo or 1) * (rows - 1))][i] = "▞"
    return "\n".join(f"{hi - (hi - lo) * r / (rows - 1):9.4f} ┤{''.join(l)}" for r, l in enumerate(lines))


def main():
    t_all = time.perf_counter()
    model, opt = setup()
    g = torch.Generator().manual_seed(5)
    target = torch.randn(128, 128, generator=g) / 11
    hist, n_iter = History(), 160
    with Progress(TextColumn("train"), BarColumn(), TextColumn("{task.completed}/{task.total}"), TimeElapsedColumn(), TimeRemainingColumn(),
                  console=console, transient=False) as prog:
        task = prog.add_task("train", total=n_iter)
        for it in range(n_iter):
            t0 = time.perf_counter()
            x = torch.randn(128, 128, generator=g)
            loss = ((model(x) - x @ target) ** 2).mean()
            t1 = time.perf_counter()
            loss.backward()
            gn = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
            t2 = time.perf_counter()
            line = hist.update({"iter": it, "loss": loss.item(), "grad_norm": gn.item(), "dt": t2 - t0, "dtf": t1 - t0, "dtb": t2 - t1,
                                "sps": 128 / (t2 - t0)})
            if it % 20 == 0:
                logger.info(line)
            prog.advance(task)
    df = hist.finalize(OUT)
    tab = Table(title=f"ezpz test {NOW}")
    for c in ("metric", "mean", "min", "max", "std"):
        tab.add_column(c, justify="left" if c == "metric" else "right")
    st = hist.stats()
    for k, s in st.items():
        tab.add_row(k, *(f"{s[x]:.6f}" for x in ("mean", "min", "max", "std")))
    console.print(tab)
    print("loss\n" + bars(hist.h["loss"]))
    print("dt [s]\n" + bars(hist.h["dt"]))
    (OUT / "dt.txt").write_text(bars(hist.h["dt"]) + "\n")
    print(df.select(["iter", "loss", "dt"]).tail(4))
    with torch.no_grad():
        x = torch.randn(64, 128, generator=g)
        final = ((model(x) - x @ target) ** 2).mean().item()
    torch.save(model.state_dict(), OUT / "model.pt")
    (OUT / "report.json").write_text(json.dumps({"date": NOW, "machine": platform.uname()._asdict(), "eval_loss": final, "stats": st,
                                                 "runtime_s": time.perf_counter() - t_all}, indent=1))
    with open("report.md", "w") as f:
        f.write(f"# Training run {NOW}\n\n- eval loss: {final:.8f}\n- median dt: {1e3 * statistics.median(hist.h['dt']):.3f} ms\n"
                f"- p95 dt: {1e3 * float(torch.quantile(torch.tensor(hist.h['dt']), 0.95)):.3f} ms\n- working directory: {Path.cwd()}\n")
    logger.info("eval_loss=%.8f | took %s", final, time.strftime("%H:%M:%S", time.gmtime(time.perf_counter() - t_all)))


if __name__ == "__main__":
    main()
