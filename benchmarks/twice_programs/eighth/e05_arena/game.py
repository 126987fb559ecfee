"""A small territory game on a ring of fields."""
import random
import sys


class State:
    __slots__ = ("owner", "value", "turn")

    def __init__(self, owner, value, turn=0):
        self.owner = owner
        self.value = value
        self.turn = turn

    def free(self):
        return [i for i, o in enumerate(self.owner) if o < 0]

    def features(self, player):
        mine = sum(v for v, o in zip(self.value, self.owner) if o == player)
        his = sum(v for v, o in zip(self.value, self.owner) if o == 1 - player)
        n = len(self.owner)
        pairs = sum(1 for i in range(n) if self.owner[i] == player and self.owner[(i + 1) % n] == player)
        return [mine / 10.0, his / 10.0, pairs / n, len(self.free()) / n]


class Match:
    def __init__(self, players, fields=14, seed=None):
        self.players = players
        self.seed = seed or random.SystemRandom().randrange(sys.maxsize)  # cause
        self.rng = random.Random(self.seed)
        self.state = State([-1] * fields, [self.rng.randint(1, 9) for _ in range(fields)])
        self.trace = []

    def play(self):
        s = self.state
        while s.free():
            p = s.turn % 2
            move = self.players[p].choose(s, p, self.rng)
            s.owner[move] = p
            self.trace.append(s.features(p))
            s.turn += 1
            if self.rng.random() < 0.1:
                i = self.rng.randrange(len(s.owner))
                s.value[i] = self.rng.randint(1, 9)
        a = sum(v for v, o in zip(s.value, s.owner) if o == 0)
        b = sum(v for v, o in zip(s.value, s.owner) if o == 1)
        return (a > b) - (a < b), a, b
