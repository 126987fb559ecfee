"""rich and loguru: a handler that leaves out repeated times, a live progress into a file, tables with durations, JSON records, tqdm in a loop."""

import logging
import os
import sys
import time

import torch
from loguru import logger
from rich.console import Console
from rich.logging import RichHandler
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.tree import Tree
from torch import nn
from tqdm import tqdm, trange

logger.remove()
logger.add("run_{time:YYYYMMDD_HHmmss}.log", format="{time:YYYY-MM-DD HH:mm:ss.SSS} | {elapsed} | {level: <8} | {process}:{thread.name} | {name}:{function}:{line} - {message}")
logger.add("records.jsonl", serialize=True)
logger.add(lambda m: tqdm.write(m, end=""), format="<green>{time:HH:mm:ss}</green> | <level>{level}</level> | {message}", colorize=False)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 8, 5, padding=2)
        self.out = nn.Linear(8, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.conv(x)).mean(-1))


def batches(n, seed):
    g = torch.Generator().manual_seed(seed)
    for _ in range(n):
        x = torch.randn(8, 3, 24, generator=g)
        yield x, x.std((1, 2), keepdim=True)[:, :, 0]


def train(model, opt, epoch, progress, task):
    total = 0
    for x, y in batches(10, epoch):
        loss = nn.functional.l1_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
        progress.update(task, advance=1, description=f"epoch {epoch} loss {loss.item():.4f}")
    return total / 10


def main():
    torch.manual_seed(31)
    logging.basicConfig(level="INFO", format="%(message)s", datefmt="[%X]", handlers=[RichHandler(console=Console(width=110), show_path=True)])
    log = logging.getLogger("rich")
    console = Console(record=True, width=100)
    model = Net()
    opt = torch.optim.RMSprop(model.parameters(), 5e-3)
    tree = Tree("config")
    for k, v in {"lr": 5e-3, "pid": os.getpid(), "cwd": os.getcwd(), "began": time.ctime()}.items():
        tree.add(f"{k}: {v}")
    console.print(tree)
    log.info("starting with %d parameters", sum(p.numel() for p in model.parameters()))
    table = Table("epoch", "loss", "val", "time", "it/s", title="results")
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    with open("progress.txt", "w") as f, Progress(*columns, console=Console(file=f, width=100)) as progress:
        for epoch in range(3):
            task = progress.add_task("train", total=10)
            t = time.monotonic()
            loss = train(model, opt, epoch, progress, task)
            dt = time.monotonic() - t
            with torch.no_grad():
                val = sum(nn.functional.l1_loss(model(x), y).item() for x, y in tqdm(batches(5, 99), total=5, desc="val", leave=False)) / 5
            table.add_row(str(epoch), f"{loss:.4f}", f"{val:.4f}", f"{dt:.2f}s", f"{10 / dt:.1f}")
            log.info("epoch %d done", epoch)
            logger.bind(epoch=epoch, seconds=dt).info("loss={:.5f} val={:.5f} in {:.3f}s", loss, val, dt)
            log.info("validation %.4f", val)
    console.print(table)
    console.print(Panel(f"finished at {time.strftime('%H:%M:%S')}, {os.getpid()=}"))
    console.save_text("console.txt")
    for i in trange(20, desc="bootstrap", ncols=80, file=sys.stderr):
        torch.randn(50, 50).svd()
    with logger.catch():
        logger.warning("last loss {}", loss)
    torch.save(model.state_dict(), "net.pt")


if __name__ == "__main__":
    main()
