"""Gymnasium interface of the game."""
import gymnasium as gym
import numpy as np
from gymnasium import spaces

from .game import Game


class DiceBallEnv(gym.Env):
    metadata = {"render_modes": ["ansi"]}

    def __init__(self, length=12, turns=16):
        super().__init__()
        self.length = length
        self.turns = turns
        self.action_space = spaces.Discrete(4)
        self.observation_space = spaces.MultiDiscrete([length, 4, 2, 4])
        self.game = None

    @property
    def n_states(self):
        return int(np.prod(self.observation_space.nvec))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.game = Game(self.length, self.turns)  # cause
        return self._observation(), {}

    def step(self, action):
        reward = self.game.step(int(action))
        info = {"scored": self.game.scored, "turn": self.game.turn}
        return self._observation(), reward, self.game.over, False, info

    def _observation(self):
        g = self.game
        left = min(3, (self.turns - g.turn) // 4)
        return np.array([min(g.position, self.length - 1), g.stamina, int(g.blocked), left])

    def state_index(self, obs):
        return int(np.ravel_multi_index(tuple(obs), tuple(self.observation_space.nvec)))

    def render(self):
        g = self.game
        return "".join("P" if i == g.position else "D" if i in g.defenders else "." for i in range(g.length))
