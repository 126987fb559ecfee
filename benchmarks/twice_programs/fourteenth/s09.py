"""Agent-based order market on an event loop.

Modelled on https://github.com/python/asyncio/issues/432
Trading agents decide concurrently in every round and their orders go to one book.
"""
import argparse
import asyncio
import json
import logging
import os
import time
from bisect import insort
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

log = logging.getLogger("market")


@dataclass
class MarketConfig:
    seed: int = 8
    agents: int = 60
    rounds: int = 1200
    tick: float = 0.01
    start_price: float = 100.0


@dataclass
class Order:
    agent: int
    side: str
    price: float
    size: int


@dataclass
class Book:
    bids: list = field(default_factory=list)
    asks: list = field(default_factory=list)
    trades: list = field(default_factory=list)
    sequence: int = 0

    def submit(self, order):
        self.sequence += 1
        if order.side == "buy":
            self._match(order, self.asks, lambda best: best <= order.price)
            if order.size:
                insort(self.bids, (-order.price, self.sequence, order))
        else:
            self._match(order, self.bids, lambda best: -best >= order.price)
            if order.size:
                insort(self.asks, (order.price, self.sequence, order))

    def _match(self, order, levels, crosses):
        while order.size and levels and crosses(levels[0][0]):
            _, _, resting = levels[0]
            size = min(order.size, resting.size)
            buyer, seller = ((order.agent, resting.agent) if order.side == "buy"
                             else (resting.agent, order.agent))
            self.trades.append((buyer, seller, resting.price, size))
            order.size -= size
            resting.size -= size
            if not resting.size:
                levels.pop(0)

    def mid(self, fallback):
        if self.bids and self.asks:
            return (self.asks[0][0] - self.bids[0][0]) / 2
        return fallback

    def expire(self, keep=120):
        del self.bids[keep:]
        del self.asks[keep:]


class Agent:
    def __init__(self, number, seed):
        self.number = number
        self.rng = np.random.default_rng([seed, number])
        self.value = 100 + self.rng.normal(0, 2)
        self.patience = self.rng.uniform(0.2, 1.0)
        self.cash = 0.0
        self.stock = 0

    async def decide(self, price, tick):
        await asyncio.sleep(0)
        self.value += self.rng.normal(0, 0.15) + 0.02 * (price - self.value)
        if self.rng.random() > self.patience:
            return None
        edge = self.value - price
        side = "buy" if edge > 0 else "sell"
        limit = price + edge * self.rng.uniform(0.2, 0.9)
        return Order(self.number, side, round(limit / tick) * tick, int(self.rng.integers(1, 6)))


class Market:
    def __init__(self, cfg):
        self.cfg = cfg
        self.book = Book()
        self.agents = [Agent(k, cfg.seed) for k in range(cfg.agents)]
        self.price = cfg.start_price
        self.history = []

    async def round(self, number):
        tasks = [asyncio.create_task(a.decide(self.price, self.cfg.tick)) for a in self.agents]
        done, _ = await asyncio.wait(tasks)
        before = len(self.book.trades)
        for task in done:  # cause
            order = task.result()
            if order is not None:
                self.book.submit(order)
        self.settle(self.book.trades[before:])
        self.price = self.book.mid(self.price)
        self.book.expire()
        volume = sum(t[3] for t in self.book.trades[before:])
        self.history.append((number, self.price, volume))

    def settle(self, trades):
        for buyer, seller, price, size in trades:
            self.agents[buyer].cash -= price * size
            self.agents[buyer].stock += size
            self.agents[seller].cash += price * size
            self.agents[seller].stock -= size

    async def run(self):
        for number in range(self.cfg.rounds):
            await self.round(number)
            if number % 100 == 0:
                log.info("round %d price %.3f", number, self.price)


def wealth_table(market):
    rows = [(a.number, a.cash + a.stock * market.price, a.stock) for a in market.agents]
    return pd.DataFrame(rows, columns=["agent", "wealth", "stock"])


def gini(values):
    v = np.sort(values - values.min())
    n = len(v)
    return float((2 * np.arange(1, n + 1) - n - 1) @ v / (n * v.sum()))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rounds", type=int, default=MarketConfig.rounds)
    ap.add_argument("--agents", type=int, default=MarketConfig.agents)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    log.info("pid %d", os.getpid())
    cfg = MarketConfig(rounds=args.rounds, agents=args.agents)
    t0 = time.monotonic()
    market = Market(cfg)
    asyncio.run(market.run())
    log.info("took %.2f s", time.monotonic() - t0)

    prices = pd.DataFrame(market.history, columns=["round", "price", "volume"])
    table = wealth_table(market)
    out = Path("market")
    out.mkdir(exist_ok=True)
    prices.to_csv(out / "prices.csv", index=False, float_format="%.5f")
    table.to_csv(out / "wealth.csv", index=False, float_format="%.4f")
    summary = {
        "last_price": round(market.price, 5),
        "volume": int(prices.volume.sum()),
        "volatility": round(float(prices.price.diff().std()), 6),
        "gini": round(gini(table.wealth.to_numpy()), 6),
    }
    (out / "summary.json").write_text(json.dumps(summary))
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
