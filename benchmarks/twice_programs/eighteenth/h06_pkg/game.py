"""Rules: carry the ball to the end of the lane, past the defenders, within a number of turns."""
import numpy as np

MOVE, SPRINT, BLOCK, REST = range(4)


class Game:
    def __init__(self, length=12, turns=16, n_defenders=4, seed=None):
        self.length = length
        self.turns = turns
        self.rnd = np.random.RandomState(seed)
        self.position = 0
        self.stamina = 3
        self.turn = 0
        self.over = False
        self.scored = False
        cells = np.arange(2, length - 1)
        self.defenders = set(self.rnd.choice(cells, n_defenders, replace=False).tolist())

    def d6(self):
        return int(self.rnd.randint(1, 7))

    @property
    def blocked(self):
        return self.position + 1 in self.defenders

    def step(self, action):
        reward = -0.02
        if action == REST:
            self.stamina = min(3, self.stamina + 1)
        elif action == BLOCK:
            if self.blocked and self.d6() + self.stamina >= 5:
                self.defenders.discard(self.position + 1)
                reward += 0.1
            else:
                self.stamina = max(0, self.stamina - 1)
        else:
            reward += self._move(2 if action == SPRINT else 1)
        self.turn += 1
        if self.position >= self.length - 1:
            self.scored = self.over = True
            reward += 1.0
        elif self.turn >= self.turns:
            self.over = True
        return reward

    def _move(self, steps):
        gain = 0.0
        if steps == 2:
            self.stamina -= 1
            if self.stamina < 0:
                self.stamina = 0
                self.over = True
                return -0.3
        for _ in range(steps):
            if self.blocked and self.d6() < 5:
                return gain - 0.05
            self.position += 1
            gain += 0.04
        if steps == 2 and self.d6() == 1:
            self.over = True
            gain -= 0.3
        return gain
