"""Event-driven backtest of a cross-sectional mean reversion strategy on eight instruments.

Bars, signals and orders go through one event queue; fills are recorded in a
small SQLite ledger, and a summary with the final equity is printed.

Modelled on: https://github.com/nautechsystems/nautilus_trader/pull/4480
"""
import heapq
import sqlite3
import time
import uuid
from dataclasses import dataclass

import numpy as np

SYMBOLS = ["AUDUSD", "EURUSD", "GBPUSD", "NZDUSD", "USDCAD", "USDCHF", "USDJPY", "XAUUSD"]
DAYS = 900
START_CASH = 250_000.0
LOT = 60_000.0
FEE = 0.00004
MAX_OPEN = 4


@dataclass
class Event:
    kind: str
    symbol: str
    price: float = 0.0
    side: int = 0


class EventQueue:
    """Time ordered queue of simulation events."""

    def __init__(self):
        self._heap = []
        self.pushed = 0

    def push(self, ts, event):
        heapq.heappush(self._heap, (ts, uuid.uuid4().hex, event))  # cause
        self.pushed += 1

    def pop(self):
        ts, _, event = heapq.heappop(self._heap)
        return ts, event

    def __len__(self):
        return len(self._heap)


class Strategy:
    """Buys what fell most below its moving average, sells when it is back."""

    def __init__(self, window=20, entry=1.3, leave=0.1):
        self.window = window
        self.entry = entry
        self.leave = leave
        self.history = {s: [] for s in SYMBOLS}

    def on_bar(self, symbol, price, position):
        hist = self.history[symbol]
        hist.append(price)
        if len(hist) < self.window:
            return 0
        tail = np.array(hist[-self.window:])
        z = (price - tail.mean()) / (tail.std() + 1e-12)
        if position == 0 and z < -self.entry:
            return 1
        if position > 0 and z > self.leave:
            return -1
        return 0


class Account:
    def __init__(self, db):
        self.cash = START_CASH
        self.units = {s: 0.0 for s in SYMBOLS}
        self.last = {s: None for s in SYMBOLS}
        self.rejected = 0
        self.db = db
        db.execute("CREATE TABLE fills (seq INTEGER PRIMARY KEY, day INTEGER, symbol TEXT,"
                   " side INTEGER, price REAL, units REAL, cash REAL)")

    def open_count(self):
        return sum(1 for u in self.units.values() if u > 0)

    def execute(self, day, symbol, side):
        price = self.last[symbol]
        if side > 0:
            if self.cash < LOT or self.open_count() >= MAX_OPEN:
                self.rejected += 1
                return
            units = LOT / price
            self.cash -= LOT * (1 + FEE)
            self.units[symbol] += units
        else:
            units = self.units[symbol]
            self.cash += units * price * (1 - FEE)
            self.units[symbol] = 0.0
        self.db.execute("INSERT INTO fills (day, symbol, side, price, units, cash)"
                        " VALUES (?, ?, ?, ?, ?, ?)", (day, symbol, side, price, units, self.cash))

    def equity(self):
        return self.cash + sum(u * self.last[s] for s, u in self.units.items() if u > 0)


def make_prices(seed=11):
    rng = np.random.default_rng(seed)
    common = rng.normal(0, 0.006, DAYS)
    prices = {}
    for k, symbol in enumerate(SYMBOLS):
        own = rng.normal(0, 0.005 + 0.001 * k, DAYS)
        level = np.cumsum(0.8 * common + own)
        level -= 0.6 * np.convolve(level, np.ones(15) / 15, mode="same")
        prices[symbol] = 100.0 * np.exp(level)
    return prices


def run_backtest(prices, params, db):
    queue = EventQueue()
    strategy = Strategy(**params)
    account = Account(db)
    for day in range(DAYS):
        for symbol in SYMBOLS:
            queue.push(day * 10, Event("bar", symbol, price=float(prices[symbol][day])))
    curve = []
    while len(queue):
        ts, event = queue.pop()
        day = ts // 10
        if event.kind == "bar":
            account.last[event.symbol] = event.price
            side = strategy.on_bar(event.symbol, event.price, account.units[event.symbol])
            if side:
                queue.push(ts + 1, Event("order", event.symbol, side=side))
        else:
            account.execute(day, event.symbol, event.side)
        if all(v is not None for v in account.last.values()):
            if not curve or curve[-1][0] != day:
                curve.append([day, 0.0])
            curve[-1][1] = account.equity()
    db.commit()
    return account, np.array([v for _, v in curve]), queue.pushed


def main():
    began = time.time()
    prices = make_prices()
    grid = [dict(window=w, entry=e, leave=0.1) for w in (10, 20, 40) for e in (0.9, 1.2, 1.5)]
    for params in grid:
        with sqlite3.connect(":memory:") as db:
            account, curve, pushed = run_backtest(prices, params, db)
            trades = db.execute("SELECT COUNT(*) FROM fills").fetchone()[0]
            turnover = db.execute("SELECT SUM(units * price) FROM fills").fetchone()[0] or 0.0
        returns = np.diff(curve) / curve[:-1]
        sharpe = returns.mean() / (returns.std() + 1e-12) * np.sqrt(252)
        drawdown = (curve / np.maximum.accumulate(curve) - 1).min()
        print(f"window {params['window']:2d} entry {params['entry']:.1f}  equity {account.equity():12.2f}"
              f"  sharpe {sharpe:7.4f}  drawdown {drawdown:8.4%}  fills {trades:4d}"
              f"  rejected {account.rejected:4d}  turnover {turnover:14.2f}")
    print(f"{len(grid)} runs, {pushed} events in the last one, {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
