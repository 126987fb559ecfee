"""Shared-table team learner."""
import random
from collections import defaultdict

import numpy as np


class TeamLearner:
    def __init__(self, n_actions, alpha=0.15, gamma=0.95, epsilon=0.6, decay=0.99, floor=0.05):
        self.q = defaultdict(lambda: np.zeros(n_actions))
        self.n_actions = n_actions
        self.alpha = alpha
        self.gamma = gamma
        self.epsilon = epsilon
        self.decay = decay
        self.floor = floor

    def act(self, states, explore=True):
        actions = []
        for state in states:
            if state is None:
                actions.append(None)
            elif explore and random.random() < self.epsilon:
                actions.append(random.randrange(self.n_actions))
            else:
                actions.append(int(np.argmax(self.q[state])))
        return actions

    def update(self, states, actions, reward, following, done):
        for state, action, nxt in zip(states, actions, following):
            if state is None:
                continue
            future = 0.0 if done or nxt is None else self.q[nxt].max()
            self.q[state][action] += self.alpha * (reward + self.gamma * future - self.q[state][action])

    def end_episode(self):
        self.epsilon = max(self.floor, self.epsilon * self.decay)
