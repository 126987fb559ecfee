"""PyTorch-Ignite with setup_logger, timers for each part, handlers, a ModelCheckpoint, time profiler results as CSV."""

import csv
import logging
import os
import time
from datetime import datetime

import torch
from ignite.contrib.handlers import ProgressBar
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import BasicTimeProfiler, Checkpoint, DiskSaver, ModelCheckpoint, Timer
from ignite.metrics import Accuracy, Loss, RunningAverage
from ignite.utils import manual_seed, setup_logger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def data():
    g = torch.Generator().manual_seed(4)
    y = torch.randint(0, 4, (256,), generator=g)
    x = torch.randn(256, 1, 8, 8, generator=g) + y[:, None, None, None]
    return (
        DataLoader(TensorDataset(x[:192], y[:192]), 16, shuffle=True, generator=g),
        DataLoader(TensorDataset(x[192:], y[192:]), 32),
    )


def main():
    manual_seed(21)
    now = datetime.now().strftime("%Y%m%d-%H%M%S")
    output = os.path.join("output", f"cifar_backend-None-1_{now}")
    os.makedirs(output)
    logger = setup_logger("training", filepath=os.path.join(output, "training-info.log"))
    logger.info(f"- PyTorch version: {torch.__version__}")
    logger.info(f"Output path: {output}")
    train, val = data()
    model = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(216, 4))
    opt = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
    loss = nn.CrossEntropyLoss()
    trainer = create_supervised_trainer(model, opt, loss)
    trainer.logger = setup_logger("trainer", level=logging.INFO)
    evaluator = create_supervised_evaluator(model, {"accuracy": Accuracy(), "nll": Loss(loss)})
    RunningAverage(output_transform=lambda x: x).attach(trainer, "loss")
    ProgressBar(persist=True).attach(trainer, ["loss"])
    profiler = BasicTimeProfiler()
    profiler.attach(trainer)
    timer = Timer(average=True)
    timer.attach(trainer, start=Events.EPOCH_STARTED, resume=Events.ITERATION_STARTED, pause=Events.ITERATION_COMPLETED, step=Events.ITERATION_COMPLETED)
    best = ModelCheckpoint(output, "best", n_saved=1, score_function=lambda e: e.state.metrics["accuracy"], score_name="acc", require_empty=False)
    evaluator.add_event_handler(Events.COMPLETED, best, {"model": model})
    full = Checkpoint({"trainer": trainer, "model": model, "optimizer": opt}, DiskSaver(output, require_empty=False), n_saved=2)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, full)
    rows = []

    @trainer.on(Events.EPOCH_COMPLETED)
    def evaluate(engine):
        started = time.perf_counter()
        evaluator.run(val)
        m = evaluator.state.metrics
        took = time.perf_counter() - started
        rows.append([engine.state.epoch, m["accuracy"], m["nll"], timer.value(), took])
        logger.info(
            f"\nEpoch {engine.state.epoch} - Evaluation time (seconds): {took:.2f} - Val metrics:\n "
            + "\n".join(f"\t{k}: {v}" for k, v in m.items())
        )
        logger.info(f"Average time per batch: {timer.value() * 1000:.3f} ms")

    @trainer.on(Events.COMPLETED)
    def finished(engine):
        logger.info(f"Training time {engine.state.times['COMPLETED']:.4f}, last epoch {engine.state.times['EPOCH_COMPLETED']:.4f}")

    trainer.run(train, max_epochs=3)
    with open(os.path.join(output, "results.csv"), "w") as f:
        w = csv.writer(f)
        w.writerow(["epoch", "accuracy", "nll", "batch_time", "eval_time"])
        w.writerows(rows)
    r = profiler.get_results()
    print("processing total", r["processing_stats"]["total"], "mean", r["processing_stats"]["mean"])
    print("dataflow total", r["dataflow_stats"]["total"])


if __name__ == "__main__":
    main()
