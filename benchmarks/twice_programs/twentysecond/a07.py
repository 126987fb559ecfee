"""coopnav: multi-agent navigation environment with a random baseline and a small learner.

A parallel environment in which agents steer to landmarks is exercised with random
actions, the transitions fill a replay buffer, and a linear value function is fitted
to it.  Episode returns go to ``returns.csv``, the fitted weights to ``weights.json``.

Modelled on: https://github.com/Farama-Foundation/PettingZoo/issues/558
"""
import csv
import json
import logging
import random
from collections import deque

import numpy as np
import torch
from gymnasium import spaces

log = logging.getLogger("coopnav")

SEED = 111


class ParallelNavigation:
    """Agents choose accelerations; all get a shared and a private reward."""

    def __init__(self, agents=3, landmarks=3, max_cycles=40):
        self.possible_agents = [f"agent_{i}" for i in range(agents)]
        self.max_cycles = max_cycles
        self.n_landmarks = landmarks
        self.np_random = np.random.default_rng(0)
        self._action_spaces = {a: spaces.Box(-1.0, 1.0, (2,), np.float32) for a in self.possible_agents}  # cause
        size = 4 + 2 * landmarks
        self._observation_spaces = {
            a: spaces.Box(-np.inf, np.inf, (size,), np.float32) for a in self.possible_agents}

    def seed(self, seed):
        self.np_random = np.random.default_rng(seed)

    def action_space(self, agent):
        return self._action_spaces[agent]

    def observation_space(self, agent):
        return self._observation_spaces[agent]

    def reset(self):
        self.agents = list(self.possible_agents)
        self.cycle = 0
        self.landmarks = self.np_random.uniform(-1, 1, (self.n_landmarks, 2))
        self.pos = {a: self.np_random.uniform(-1, 1, 2) for a in self.agents}
        self.vel = {a: np.zeros(2) for a in self.agents}
        return {a: self._observe(a) for a in self.agents}

    def _observe(self, agent):
        relative = (self.landmarks - self.pos[agent]).ravel()
        return np.concatenate([self.pos[agent], self.vel[agent], relative]).astype(np.float32)

    def _shared_reward(self):
        total = 0.0
        for mark in self.landmarks:
            total -= min(np.linalg.norm(mark - self.pos[a]) for a in self.agents)
        return total

    def _collisions(self, agent):
        return sum(1 for other in self.agents if other != agent
                   and np.linalg.norm(self.pos[other] - self.pos[agent]) < 0.15)

    def step(self, actions):
        self.cycle += 1
        for agent, action in actions.items():
            self.vel[agent] = 0.75 * self.vel[agent] + 0.1 * np.asarray(action, float)
            self.pos[agent] = np.clip(self.pos[agent] + self.vel[agent], -1.5, 1.5)
        shared = self._shared_reward()
        rewards = {a: shared - self._collisions(a) for a in self.agents}
        observations = {a: self._observe(a) for a in self.agents}
        done = self.cycle >= self.max_cycles
        dones = {a: done for a in self.agents}
        return observations, rewards, dones, {a: {} for a in self.agents}


class ReplayBuffer:
    def __init__(self, capacity):
        self.items = deque(maxlen=capacity)

    def add(self, *transition):
        self.items.append(transition)

    def sample(self, size):
        batch = random.sample(self.items, size)
        obs, act, rew, nxt = zip(*batch)
        as_tensor = lambda v: torch.tensor(np.array(v), dtype=torch.float32)
        return as_tensor(obs), as_tensor(act), as_tensor(rew), as_tensor(nxt)

    def __len__(self):
        return len(self.items)


class ValueFunction:
    def __init__(self, size, gamma=0.9):
        self.net = torch.nn.Sequential(
            torch.nn.Linear(size, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        self.gamma = gamma

    def update(self, batch):
        obs, _, rew, nxt = batch
        with torch.no_grad():
            target = rew + self.gamma * self.net(nxt).squeeze(1)
        loss = torch.nn.functional.mse_loss(self.net(obs).squeeze(1), target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def weights(self):
        return {k: np.round(v.numpy(), 6).tolist() for k, v in self.net.state_dict().items()}


def random_demo_parallel_env(env, buffer, episodes):
    rows = []
    for episode in range(episodes):
        observations = env.reset()
        totals = {agent: 0.0 for agent in env.agents}
        while True:
            actions = {agent: env.action_space(agent).sample() for agent in env.agents}  # cause
            nxt, rewards, dones, _ = env.step(actions)
            for agent in env.agents:
                totals[agent] += rewards[agent]
                buffer.add(observations[agent], actions[agent], rewards[agent], nxt[agent])
            observations = nxt
            if all(dones.values()):
                break
        rows.append([episode] + [round(totals[a], 5) for a in env.possible_agents])
    return rows


def seed_everything(env, seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    env.seed(seed)


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    torch.set_num_threads(1)
    env = ParallelNavigation()
    seed_everything(env, SEED)
    buffer = ReplayBuffer(20000)
    rows = random_demo_parallel_env(env, buffer, episodes=40)
    log.info("collected %d transitions", len(buffer))
    value = ValueFunction(env.observation_space("agent_0").shape[0])
    losses = [value.update(buffer.sample(64)) for _ in range(400)]
    with open("returns.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["episode"] + env.possible_agents)
        writer.writerows(rows)
    with open("weights.json", "w") as fh:
        json.dump(value.weights(), fh)
    for row in rows[:5]:
        print(f"Game {row[0] + 1} finished with result:", row[1:])
    print("mean return: %.5f" % np.mean([r[1:] for r in rows]))
    print("final loss: %.6f" % np.mean(losses[-50:]))


if __name__ == "__main__":
    main()
