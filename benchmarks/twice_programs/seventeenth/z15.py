"""Outcome-sampling regret minimisation for a small two-player betting game.

Modelled on https://github.com/numpy/numpy/issues/29804

Cards 0..12 are dealt one to each player, there is one private draw round and
one betting round (check, bet, raise / fold, call).  Action values are kept as
importance-weighted sums and weights per information set and feed a
regret-matching policy.  A best-response style check is run at intervals and
tables are written to disk.
"""
import csv
import json
import logging
import sys
import time
import warnings
from pathlib import Path

import numpy as np

warnings.simplefilter("ignore")
log = logging.getLogger("betting")

CARDS = 13
ACTIONS = ("pass", "small", "big")
NODES = ("", "p", "s", "b", "ps", "pb", "sb", "psb")
N_ACT = len(ACTIONS)
N_INFO = CARDS * len(NODES)
FOLLOW = {"": "first to act", "p": "after a pass", "s": "facing small", "b": "facing big",
          "ps": "passed, facing small", "pb": "passed, facing big",
          "sb": "raised to big", "psb": "passed, small, big"}


def info_index(card, history):
    return NODES.index(history) * CARDS + card


def player_of(history):
    return len(history) % 2


def legal(history):
    if history == "" or history == "p":
        return (0, 1, 2)
    if history.endswith("s"):
        return (0, 1, 2)
    return (0, 1)


def next_state(history, action):
    """Return (history, None) or (None, kind) when the hand is over."""
    letter = "psb"[action]
    if history == "":
        return letter, None
    if history == "p":
        return (None, "showdown:1") if action == 0 else ("p" + letter, None)
    if history.endswith("s"):
        if action == 0:
            return None, "fold:1"
        if action == 1:
            return None, "showdown:2"
        return history + "b", None
    if action == 0:
        return None, "fold:2" if history in ("sb", "psb") else "fold:1"
    return None, "showdown:4"


def payoff(kind, cards, actor):
    name, stake = kind.split(":")
    stake = float(stake)
    if name == "fold":
        return -stake if actor == 0 else stake
    return stake if cards[0] > cards[1] else -stake


class Tables:
    """Running sums per information set and action."""

    def __init__(self):
        self.num = np.zeros((N_INFO, N_ACT), dtype=np.float32)
        self.den = np.zeros((N_INFO, N_ACT), dtype=np.float32)
        self.regret = np.zeros((N_INFO, N_ACT), dtype=np.float32)
        self.average = np.zeros((N_INFO, N_ACT), dtype=np.float32)

    def decay(self, rate):
        self.num *= rate
        self.den *= rate

    def add(self, row, action, value, weight):
        self.num[row, action] += value * weight
        self.den[row, action] += weight

    def expected(self, row):
        num, den = self.num[row], self.den[row]
        values = np.divide(num, den, where=den != 0)  # cause
        return np.clip(values, -4.0, 4.0, out=values)


def regret_matching(regret, mask):
    pos = np.maximum(regret, 0.0) * mask
    total = pos.sum(axis=1, keepdims=True)
    uniform = mask / mask.sum(axis=1, keepdims=True)
    return np.where(total > 0, pos / np.maximum(total, 1e-12), uniform)


def legal_mask():
    mask = np.zeros((N_INFO, N_ACT), dtype=np.float32)
    for k, history in enumerate(NODES):
        for a in legal(history):
            mask[k * CARDS:(k + 1) * CARDS, a] = 1.0
    return mask


class Trainer:
    def __init__(self, seed, explore=0.3, batch=24):
        self.rng = np.random.default_rng(seed)
        self.tables = Tables()
        self.mask = legal_mask()
        self.explore = explore
        self.batch = batch
        self.values = {}
        self.policy = regret_matching(self.tables.regret, self.mask)

    def play(self):
        cards = self.rng.permutation(CARDS)[:2]
        history, path = "", []
        while True:
            who = player_of(history)
            row = info_index(cards[who], history)
            probs = self.policy[row].astype(np.float64)
            behave = (1 - self.explore) * probs + self.explore * self.mask[row] / self.mask[row].sum()
            behave /= behave.sum()
            action = int(self.rng.choice(N_ACT, p=behave))
            path.append((who, row, action, probs[action] / behave[action]))
            history_next, kind = next_state(history, action)
            if kind is not None:
                return path, payoff(kind, cards, who)
            history = history_next

    def step(self):
        seen = np.zeros(N_INFO, dtype=bool)
        for _ in range(self.batch):
            path, value = self.play()
            tail = 1.0
            for who, row, action, ratio in reversed(path):
                signed = value if who == 0 else -value
                self.tables.add(row, action, signed, min(tail, 4.0))
                tail *= ratio
                seen[row] = True
        self.values = {row: self.tables.expected(row) for row in range(N_INFO)}
        q = np.stack([self.values[row] for row in range(N_INFO)])
        base = (q * self.policy * self.mask).sum(axis=1, keepdims=True)
        gain = (q - base) * self.mask
        self.tables.regret[seen] = np.maximum(self.tables.regret[seen] * 0.995 + gain[seen], 0.0)
        self.policy = regret_matching(self.tables.regret, self.mask)
        self.tables.average[seen] += self.policy[seen]
        self.tables.decay(0.999)

    def average_policy(self):
        total = self.tables.average.sum(axis=1, keepdims=True)
        uniform = self.mask / self.mask.sum(axis=1, keepdims=True)
        return np.where(total > 0, self.tables.average / np.maximum(total, 1e-12), uniform)


def game_value(policy):
    """Exact expected payoff of the first player."""
    def walk(cards, history):
        who = player_of(history)
        probs = policy[info_index(cards[who], history)]
        out = 0.0
        for a in legal(history):
            nxt, kind = next_state(history, a)
            sub = payoff(kind, cards, who) if kind is not None else walk(cards, nxt)
            out += float(probs[a]) * sub
        return out

    deals = [(i, j) for i in range(CARDS) for j in range(CARDS) if i != j]
    return sum(walk(d, "") for d in deals) / len(deals)


def exploit(policy, hero):
    """Value for `hero` of a best response against `policy`."""
    def walk(card, history, weights):
        who = player_of(history)
        if who == hero:
            best = -np.inf
            for a in legal(history):
                nxt, kind = next_state(history, a)
                if kind is None:
                    val = walk(card, nxt, weights)
                else:
                    val = settle(card, weights, kind, who)
                best = max(best, val)
            return best
        total = 0.0
        for a in legal(history):
            nxt, kind = next_state(history, a)
            w = weights * np.array([policy[info_index(c, history), a] for c in range(CARDS)])
            total += settle(card, w, kind, who) if kind is not None else walk(card, nxt, w)
        return total

    def settle(card, weights, kind, actor):
        out = 0.0
        for other in range(CARDS):
            if other == card:
                continue
            deal = (card, other) if hero == 0 else (other, card)
            val = payoff(kind, deal, actor)
            out += weights[other] * (val if hero == 0 else -val)
        return out

    total = 0.0
    for card in range(CARDS):
        weights = np.full(CARDS, 1.0 / (CARDS * (CARDS - 1)))
        weights[card] = 0.0
        total += walk(card, "", weights)
    return total


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stdout,
                        format="%(asctime)s [%(levelname)s] %(message)s")
    out = Path("runs")
    out.mkdir(exist_ok=True)
    np.random.seed(7)
    trainer = Trainer(seed=7)
    began = time.time()
    curve = []
    rounds = 600
    for i in range(1, rounds + 1):
        trainer.step()
        if i % 100 == 0 or i == 1:
            avg = trainer.average_policy()
            gap = exploit(avg, 0) + exploit(avg, 1)
            curve.append({"round": i, "value": game_value(avg), "exploitability": gap})
            log.info("round %4d/%d  value %+.6f  exploitability %.6f  elapsed %.1f s",
                     i, rounds, curve[-1]["value"], gap, time.time() - began)
    avg = trainer.average_policy()
    with open(out / "policy.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["node", "card", *ACTIONS])
        for k, history in enumerate(NODES):
            for card in range(CARDS):
                row = avg[k * CARDS + card]
                writer.writerow([FOLLOW[history], card, *(f"{p:.6f}" for p in row)])
    (out / "curve.json").write_text(json.dumps(curve, indent=1))
    print("first player's value %.6f" % curve[-1]["value"])
    print("tables in", out.resolve())


if __name__ == "__main__":
    main()
