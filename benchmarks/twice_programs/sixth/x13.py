"""https://github.com/google-deepmind/open_spiel/pull/1584 - the bot is seeded, but its default resampler is built without a seed and then takes one from the wall clock."""
import json
import os
import random
import time

import numpy as np

SEED = 404
RANKS = 9


class UniformProbabilitySampler:
    """Numbers in [0, 1) for choosing hidden states."""

    def __init__(self, seed=None):
        if seed is None:
            seed = time.time_ns() % (2 ** 32)  # cause
        self.gen = np.random.Generator(np.random.PCG64(seed))

    def __call__(self):
        return self.gen.random()


class HighCard:
    """Each player holds one hidden card; both may raise, call or fold once."""

    def __init__(self, cards, history=()):
        self.cards, self.history = cards, tuple(history)

    def player(self):
        return len(self.history) % 2

    def legal(self):
        return (0, 1, 2) if self.history and self.history[-1] == 2 else (1, 2)

    def child(self, a):
        return HighCard(self.cards, self.history + (a,))

    def terminal(self):
        h = self.history
        return bool(h) and (h[-1] == 0 or len(h) >= 4 or (len(h) >= 2 and h[-1] == 1))

    def payoff(self):
        h = self.history
        stake = 1 + sum(1 for a in h if a == 2)
        if h[-1] == 0:
            loser = (len(h) - 1) % 2
            return -stake + 1 if loser == 0 else stake - 1
        if self.cards[0] == self.cards[1]:
            return 0
        return stake if self.cards[0] > self.cards[1] else -stake

    def infostate(self):
        return self.cards[self.player()], self.history


class Node:
    __slots__ = ("n", "value")

    def __init__(self):
        self.n = {}
        self.value = {}


class ISMCTSBot:
    def __init__(self, simulations, random_state, uct_c=1.6, resampler=None):
        self.sims = simulations
        self.rng = random_state
        self.c = uct_c
        self.draw = resampler or UniformProbabilitySampler()  # cause
        self.tree = {}

    def resample(self, state):
        me = state.player()
        other = int(self.draw() * RANKS)
        cards = [0, 0]
        cards[me], cards[1 - me] = state.cards[me], other
        return HighCard(tuple(cards), state.history)

    def select(self, node, legal):
        fresh = [a for a in legal if a not in node.n]
        if fresh:
            return fresh[self.rng.randint(len(fresh))]
        total = sum(node.n[a] for a in legal)
        return max(legal, key=lambda a: node.value[a] / node.n[a] + self.c * np.sqrt(np.log(total) / node.n[a]))

    def simulate(self, state):
        path = []
        while not state.terminal():
            node = self.tree.setdefault(state.infostate(), Node())
            a = self.select(node, state.legal())
            path.append((node, state.player(), a))
            state = state.child(a)
        z = state.payoff()
        for node, player, a in path:
            node.n[a] = node.n.get(a, 0) + 1
            node.value[a] = node.value.get(a, 0.0) + (z if player == 0 else -z)

    def step(self, state):
        self.tree = {}
        for _ in range(self.sims):
            self.simulate(self.resample(state))
        root = self.tree[state.infostate()]
        return max(state.legal(), key=lambda a: root.n.get(a, 0)), dict(root.n)


def play(bots, deal_rng, games):
    profit, visits = 0, []
    for g in range(games):
        state = HighCard((int(deal_rng.randint(RANKS)), int(deal_rng.randint(RANKS))))
        while not state.terminal():
            action, counts = bots[state.player()].step(state)
            visits.append(sorted(counts.items()))
            state = state.child(action)
        profit += state.payoff()
    return profit, visits


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    print("match", time.ctime(), "pid", os.getpid())
    bots = [ISMCTSBot(120, np.random.RandomState(SEED)), ISMCTSBot(60, np.random.RandomState(SEED + 1))]
    t0 = time.time()
    profit, visits = play(bots, np.random.RandomState(SEED), games=240)
    print(f"player 0 won {profit} chips in {len(visits)} decisions, {time.time() - t0:.1f}s")
    json.dump({"profit": profit, "decisions": len(visits), "visits": visits[:40], "elapsed": time.time() - t0},
              open("match.json", "w"))


if __name__ == "__main__":
    main()
