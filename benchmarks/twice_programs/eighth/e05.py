"""https://github.com/bcollazo/catanatron/pull/254 : the game takes `seed or random...`, so the seed 0 counts as no seed
and each game is random; fixed by comparing with None."""
import argparse
import json
import random
import time

import numpy as np
import torch
from torch import nn

from e05_arena import GreedyPlayer, Match, RandomPlayer, ValuePlayer


def make_net():
    return nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 1))


def self_play(first_seed, games):
    xs, ys = [], []
    wins = 0
    for g in range(games):
        match = Match([GreedyPlayer(0.3), RandomPlayer()] if g % 2 else [RandomPlayer(), GreedyPlayer(0.3)], seed=first_seed + g)
        result, a, b = match.play()
        wins += result > 0
        for k, feats in enumerate(match.trace):
            xs.append(feats)
            ys.append(float(result if k % 2 == 0 else -result))
    return torch.tensor(xs), torch.tensor(ys)[:, None], wins


def train(net, x, y, epochs, batch=64):
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    losses = []
    for _ in range(epochs):
        order = torch.randperm(len(x))
        total = 0.0
        for i in range(0, len(x), batch):
            rows = order[i:i + batch]
            loss = nn.functional.mse_loss(net(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(rows)
        losses.append(total / len(x))
    return losses


def tournament(net, games):
    margin = []
    for g in range(games):
        match = Match([ValuePlayer(net), GreedyPlayer(0.1)], seed=10_000 + g)
        _, a, b = match.play()
        margin.append(a - b)
    return margin


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--games", type=int, default=120)
    args = ap.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    t = time.time()
    print("started", time.ctime(), vars(args))
    x, y, wins = self_play(args.seed, args.games)
    print("positions", len(x), "first player won", wins)
    net = make_net()
    losses = train(net, x, y, 8)
    margin = tournament(net, 40)
    print("loss", losses[-1], "margin", float(np.mean(margin)), "in %.2fs" % (time.time() - t))
    with open("arena.json", "w") as f:
        json.dump({"wins": wins, "losses": losses, "margin": margin}, f)


if __name__ == "__main__":
    main()
