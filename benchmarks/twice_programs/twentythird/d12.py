"""A property fuzzer for a small token contract.

Random sequences of calls are made against a model of a token with a vesting
schedule. Coverage guides the choice of the sequences that are kept in the
corpus. At the end the state of each property, the coverage and the corpus are
reported.

Modelled on: https://github.com/crytic/echidna/issues/1630
"""
import hashlib
import json
import logging
import random
import time
from dataclasses import dataclass

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("fuzz")

ACCOUNTS = ["0x10", "0x20", "0x30", "0x40"]
METHODS = ["transfer", "approve", "transfer_from", "vest", "release", "burn", "warp"]


class Revert(Exception):
    """The call was refused and has no effect."""


class Token:
    """The contract under test; `seen` collects the branches taken."""

    def __init__(self, supply, seen):
        self.balance = {a: 0 for a in ACCOUNTS}
        self.balance[ACCOUNTS[0]] = supply
        self.supply = supply
        self.allowance = {}
        self.vesting = {}
        self.now = 0
        self.seen = seen

    def require(self, condition, label):
        self.seen.add((label, bool(condition)))
        if not condition:
            raise Revert(label)

    def transfer(self, sender, to, amount):
        self.require(self.balance[sender] >= amount, "transfer.balance")
        self.balance[sender] -= amount
        self.balance[to] += amount
        self.seen.add(("transfer.size", amount.bit_length()))

    def approve(self, sender, to, amount):
        self.allowance[sender, to] = amount
        self.seen.add(("approve.size", amount.bit_length()))

    def transfer_from(self, sender, to, amount):
        owner = ACCOUNTS[(ACCOUNTS.index(sender) + 1) % len(ACCOUNTS)]
        self.require(self.allowance.get((owner, sender), 0) >= amount, "from.allowance")
        self.require(self.balance[owner] >= amount, "from.balance")
        self.allowance[owner, sender] = self.allowance.get((owner, sender), 0) - amount
        self.balance[owner] -= amount
        self.balance[to] += amount
        self.seen.add(("from.size", amount.bit_length()))

    def vest(self, sender, to, amount):
        self.require(self.balance[sender] >= amount, "vest.balance")
        self.require(amount > 100, "vest.small")
        self.balance[sender] -= amount
        locked, _ = self.vesting.get(to, (0, 0))
        self.vesting[to] = (locked + amount, self.now + 10_000)

    def release(self, sender, to, amount):
        locked, until = self.vesting.get(sender, (0, 0))
        self.require(locked > 0, "release.locked")
        self.require(self.now >= until, "release.time")
        del self.vesting[sender]
        self.balance[sender] += locked
        self.seen.add(("release.size", locked.bit_length()))

    def burn(self, sender, to, amount):
        self.require(self.balance[sender] >= amount, "burn.balance")
        self.balance[sender] -= amount
        self.supply -= amount

    def warp(self, sender, to, amount):
        self.now += amount
        self.seen.add(("warp", self.now.bit_length()))


@dataclass(frozen=True)
class Call:
    method: str
    sender: str
    to: str
    amount: int


PROPERTIES = {
    "supply_is_conserved":
        lambda t: sum(t.balance.values()) + sum(v for v, _ in t.vesting.values()) == t.supply,
    "no_negative_balance": lambda t: min(t.balance.values()) >= 0,
    "nobody_owns_all_after_release":
        lambda t: not (t.now > 200_000 and t.supply > 0 and t.balance[ACCOUNTS[3]] == t.supply),
    "supply_stays_large": lambda t: t.supply > 25,
}


class Campaign:
    def __init__(self, seed, length, timeout, supply=10_000):
        self.rng = random.Random(seed)
        self.length = length
        self.timeout = timeout
        self.supply = supply
        self.seen = set()
        self.corpus = []
        self.calls = 0
        self.reverts = 0
        self.falsified = {}

    def random_call(self):
        rng = self.rng
        return Call(rng.choice(METHODS), rng.choice(ACCOUNTS), rng.choice(ACCOUNTS),
                    rng.randrange(1 << rng.randint(0, 16)))

    def next_sequence(self):
        rng = self.rng
        if self.corpus and rng.random() < 0.7:
            base = list(rng.choice(self.corpus))
            for _ in range(rng.randint(1, 4)):
                base[rng.randrange(len(base))] = self.random_call()
            return base
        return [self.random_call() for _ in range(self.length)]

    def execute(self, sequence):
        before = len(self.seen)
        token = Token(self.supply, self.seen)
        for k, call in enumerate(sequence):
            self.calls += 1
            try:
                getattr(token, call.method)(call.sender, call.to, call.amount)
            except Revert:
                self.reverts += 1
                continue
            for name, holds in PROPERTIES.items():
                if name not in self.falsified and not holds(token):
                    self.falsified[name] = (self.calls, k + 1)
                    log.info("%s falsified after %d calls", name, self.calls)
        if len(self.seen) > before:
            self.corpus.append(tuple(sequence))

    def run(self):
        start = time.monotonic()
        sequences = 0
        while time.monotonic() - start < self.timeout:  # cause
            self.execute(self.next_sequence())
            sequences += 1
            if sequences % 5000 == 0:
                log.info("%d sequences, coverage %d, corpus %d",
                         sequences, len(self.seen), len(self.corpus))
        return sequences


def corpus_digest(corpus):
    digest = hashlib.sha256()
    for sequence in corpus:
        digest.update(repr(sequence).encode())
    return digest.hexdigest()[:16]


def main():
    campaign = Campaign(seed=1234, length=30, timeout=4.0)
    sequences = campaign.run()
    print("sequences:", sequences, "calls:", campaign.calls, "reverted:", campaign.reverts)
    for name in PROPERTIES:
        if name in campaign.falsified:
            at, length = campaign.falsified[name]
            print(f"  {name}: falsified at call {at} by a sequence of {length}")
        else:
            print(f"  {name}: passing")
    print("coverage:", len(campaign.seen), "corpus:", len(campaign.corpus), corpus_digest(campaign.corpus))
    with open("coverage.txt", "w") as fh:
        for label, value in sorted(campaign.seen, key=repr):
            fh.write(f"{label}\t{value}\n")
    with open("corpus.json", "w") as fh:
        json.dump([[[c.method, c.sender, c.to, c.amount] for c in s] for s in campaign.corpus], fh)
    with open("summary.json", "w") as fh:
        json.dump({"sequences": sequences, "calls": campaign.calls, "reverts": campaign.reverts,
                   "falsified": campaign.falsified}, fh, indent=2)


if __name__ == "__main__":
    main()
