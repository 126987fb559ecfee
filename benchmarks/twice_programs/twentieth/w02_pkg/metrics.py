"""Evaluators called after each epoch."""
import numpy as np


class EnvironmentEvaluator:
    """Mean return of the greedy policy over a number of episodes."""

    def __init__(self, env, n_trials=10, epsilon=0.0):
        self._env = env
        self._n_trials = n_trials
        self._epsilon = epsilon
        self._rng = np.random.default_rng(0)
        self.returns = []

    def __call__(self, algo):
        episode_returns = []
        for _ in range(self._n_trials):
            observation, _ = self._env.reset()  # cause
            total, done = 0.0, False
            while not done:
                if self._rng.random() < self._epsilon:
                    action = int(self._rng.integers(2))
                else:
                    action = algo.predict(observation)
                observation, reward, terminated, truncated, _ = self._env.step(action)
                # distance from the centre is penalised a little
                total += float(reward) - 0.1 * abs(float(observation[0]))
                done = terminated or truncated
            episode_returns.append(total)
        self.returns.extend(episode_returns)
        return float(np.mean(episode_returns))


class TDErrorEvaluator:
    def __init__(self, dataset, n):
        index = np.linspace(0, len(dataset) - 1, min(n, len(dataset))).astype(int)
        self._batch = dataset.batch(index)

    def __call__(self, algo):
        return algo.td_error(self._batch)
