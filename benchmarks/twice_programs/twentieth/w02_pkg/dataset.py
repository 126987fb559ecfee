"""Logged transitions from a noisy hand-written controller."""
import numpy as np


class TransitionDataset:
    def __init__(self, obs, actions, rewards, next_obs, terminals, returns):
        self.obs = np.asarray(obs, dtype=np.float32)
        self.actions = np.asarray(actions, dtype=np.int64)
        self.rewards = np.asarray(rewards, dtype=np.float32)
        self.next_obs = np.asarray(next_obs, dtype=np.float32)
        self.terminals = np.asarray(terminals, dtype=np.float32)
        self.n_episodes = len(returns)
        self.mean_return = float(np.mean(returns))

    def __len__(self):
        return len(self.actions)

    def batch(self, index):
        return (self.obs[index], self.actions[index], self.rewards[index],
                self.next_obs[index], self.terminals[index])


def controller(obs, rng, epsilon):
    if rng.random() < epsilon:
        return int(rng.integers(2))
    return int(obs[2] + 0.35 * obs[3] + 0.02 * obs[0] > 0)


def collect_dataset(env, n_episodes, seed, epsilon=0.3):
    rng = np.random.default_rng(seed)
    columns = [[] for _ in range(5)]
    returns = []
    for episode in range(n_episodes):
        obs, _ = env.reset(seed=seed + episode)
        total, done = 0.0, False
        while not done:
            action = controller(obs, rng, epsilon)
            nxt, reward, terminated, truncated, _ = env.step(action)
            for column, value in zip(columns, (obs, action, reward, nxt, terminated)):
                column.append(value)
            obs, total, done = nxt, total + reward, terminated or truncated
        returns.append(total)
    env.close()
    return TransitionDataset(*columns, returns)
