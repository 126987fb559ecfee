"""Users with a private value and a cost of waiting."""
from dataclasses import dataclass

from . import config


@dataclass
class Transaction:
    number: int
    born: int
    gas: int
    max_fee: float
    tip: float


class User:
    """Strategic user: posts a transaction when it has a positive payoff."""

    def __init__(self, number, block):
        self.number = number
        self.born = block
        self.value = float(config.rng.lognormal(3.0, 0.55))
        self.delay_cost = float(config.rng.uniform(0.02, 0.25))
        kinds = list(config.GAS_CLASSES.values())
        self.gas = int(config.rng.choice(kinds, p=config.GAS_SHARES))

    def transact(self, rule, price):
        wait = 4
        payoff = self.value - price - self.delay_cost * wait
        if payoff <= 0:
            return None
        if rule == "basefee":
            tip = float(config.rng.uniform(0.5, 2.0))
            return Transaction(self.number, self.born, self.gas,
                               self.value - self.delay_cost * wait, tip)
        shade = float(config.rng.uniform(0.6, 0.95))
        bid = price + shade * payoff * 0.5
        return Transaction(self.number, self.born, self.gas, bid, bid)


def spawn(expected, start, block):
    n = int(config.rng.poisson(expected))
    return [User(start + k, block) for k in range(n)]
