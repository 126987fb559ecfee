import argparse
import json
import os
import time

import numpy as np
import torch
from torch import nn


class LineModel(nn.Module):
    def __init__(self, symbols, hidden=24):
        super().__init__()
        self.rnn = nn.LSTM(8 * 6, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, symbols)

    def forward(self, x):
        return self.out(self.rnn(x)[0])


def read_list(path):
    with open(path) as f:
        return [line.strip() for line in f if line.strip()]


def load(folder, names, symbols):
    lines = []
    for n in names:
        img = np.load(os.path.join(folder, "ground-truth", n + ".npy"))
        with open(os.path.join(folder, "ground-truth", n + ".gt.txt")) as f:
            text = f.read().strip()
        steps = img.reshape(8, len(text), 6).transpose(1, 0, 2).reshape(len(text), 48)
        lines.append((torch.from_numpy(steps.copy()), torch.tensor([symbols.index(c) for c in text])))
    return lines


def error_rate(model, lines):
    wrong = total = 0
    with torch.no_grad():
        for x, y in lines:
            wrong += (model(x[None])[0].argmax(1) != y).sum().item()
            total += len(y)
    return wrong / total


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data")
    ap.add_argument("--epochs", type=int)
    ap.add_argument("--seed", type=int)
    ap.add_argument("--output")
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    start = time.time()
    symbols = read_list(os.path.join(args.data, "unicharset"))
    train = load(args.data, read_list(os.path.join(args.data, "list.train")), symbols)
    ev = load(args.data, read_list(os.path.join(args.data, "list.eval")), symbols)
    model = LineModel(len(symbols))
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    history = []
    for epoch in range(args.epochs):
        total = 0.0
        for x, y in train:
            loss = nn.functional.cross_entropy(model(x[None])[0], y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        history.append({"loss": total / len(train), "cer": error_rate(model, ev)})
        print("epoch %d mean loss %.6f CER %.4f (%.1f s)" % (epoch, history[-1]["loss"], history[-1]["cer"], time.time() - start))
    with open(args.output, "w") as f:
        json.dump(history, f)


if __name__ == "__main__":
    main()
