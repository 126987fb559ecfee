import csv
import datetime
import os
import time

import data
import engine
import model as models
import options as command_line
import schedules
import torch
from torch import nn


def main():
    options = command_line.parse()
    torch.manual_seed(options.seed)
    folder = os.path.join(options.out, datetime.datetime.now(tz=datetime.UTC).strftime("%Y%m%d-%H%M%S"))
    os.makedirs(folder)
    train, held_out = data.loaders(options)
    model = models.Classifier()
    called = torch.compile(model, backend="aot_eager") if options.compile else model
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scheduler = schedules.make(options, optimizer)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024)
    with open(os.path.join(folder, "log.csv"), "w") as file:
        log = csv.DictWriter(file, ["epoch", "loss", "accuracy"])
        log.writeheader()
        for epoch in range(options.epochs):
            started = time.perf_counter()
            loss = engine.train_epoch(called, train, criterion, optimizer, scheduler, scaler)
            accuracy = engine.evaluate(called, held_out)
            log.writerow({"epoch": epoch, "loss": loss, "accuracy": accuracy})
            took = time.perf_counter() - started
            now = datetime.datetime.now(tz=datetime.UTC)
            print(f"[{now:%H:%M:%S}] epoch {epoch} loss={loss:.6f} acc={accuracy:.3f} ({took:.2f}s)")
    torch.save({"model": model.state_dict(), "scaler": scaler.state_dict()}, os.path.join(folder, "last.pt"))


if __name__ == "__main__":
    main()
