"""Transaction pool and block production."""
import numpy as np

from . import config


class Pool:
    def __init__(self):
        self.txs = []

    def add(self, txs):
        self.txs.extend(txs)
        if len(self.txs) > config.POOL_LIMIT:
            self.txs.sort(key=lambda t: (-t.max_fee, t.number))
            del self.txs[config.POOL_LIMIT:]

    def expire(self, block, age=25):
        self.txs = [t for t in self.txs if block - t.born < age]


class FeeRule:
    name = "auction"

    def __init__(self):
        self.history = [config.INITIAL_BASEFEE]

    @property
    def price(self):
        return float(np.mean(self.history[-8:]))

    def select(self, pool):
        ranked = sorted(pool.txs, key=lambda t: (-t.max_fee, t.number))
        return self._fill(ranked, pool)

    def _fill(self, ranked, pool):
        used, block, rest = 0, [], []
        for tx in ranked:
            if used + tx.gas <= config.GAS_LIMIT:
                used += tx.gas
                block.append(tx)
            else:
                rest.append(tx)
        pool.txs = rest
        return used, block

    def update(self, used, block):
        if block:
            self.history.append(float(np.quantile([t.max_fee for t in block], 0.05)))

    def paid(self, tx):
        return tx.max_fee


class BaseFee(FeeRule):
    name = "basefee"

    def __init__(self):
        self.fee = config.INITIAL_BASEFEE

    @property
    def price(self):
        return self.fee

    def select(self, pool):
        valid = [t for t in pool.txs if t.max_fee >= self.fee]
        waiting = [t for t in pool.txs if t.max_fee < self.fee]
        ranked = sorted(valid, key=lambda t: (
            -min(t.tip, t.max_fee - self.fee), t.number))
        used, block = self._fill(ranked, pool)
        pool.txs.extend(waiting)
        return used, block

    def update(self, used, block):
        delta = (used - config.TARGET_GAS) / config.TARGET_GAS / config.MAX_CHANGE
        self.fee = max(config.MIN_BASEFEE, self.fee * (1 + delta))

    def paid(self, tx):
        return self.fee + min(tx.tip, tx.max_fee - self.fee)


RULES = {"auction": FeeRule, "basefee": BaseFee}
