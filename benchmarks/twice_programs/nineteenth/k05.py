"""Train a double DQN with prioritized replay on a small key-and-door maze and
evaluate the greedy policy.

Modelled on: https://github.com/xingdi-eric-yuan/GATA-public/pull/23
"""
import csv
import json
import random
import time
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

Transition = namedtuple("Transition", "obs action reward next_obs done")

CONFIG = {
    "seed": 42,
    "episodes": 140,
    "max_steps": 40,
    "gamma": 0.95,
    "lr": 2e-3,
    "batch_size": 32,
    "capacity": 4000,
    "priority_fraction": 0.6,
    "learn_start": 200,
    "update_per_k_steps": 3,
    "target_update": 150,
    "epsilon": (1.0, 0.05, 90),
}


class KeyDoorMaze:
    """A 6x6 room: fetch the key, then leave by the door."""

    size = 6
    moves = [(0, 1), (0, -1), (1, 0), (-1, 0)]

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.walls = {(2, 1), (2, 2), (2, 4), (4, 3), (1, 4)}
        self.key, self.door = (0, 5), (5, 0)

    def reset(self):
        free = [(r, c) for r in range(self.size) for c in range(self.size)
                if (r, c) not in self.walls and (r, c) not in (self.key, self.door)]
        self.pos = self.rng.choice(free)
        self.has_key = False
        return self.observe()

    def observe(self):
        obs = np.zeros(2 * self.size + 1, dtype=np.float32)
        obs[self.pos[0]] = obs[self.size + self.pos[1]] = 1.0
        obs[-1] = float(self.has_key)
        return obs

    def step(self, action):
        dr, dc = self.moves[action]
        target = (self.pos[0] + dr, self.pos[1] + dc)
        if target not in self.walls and 0 <= target[0] < self.size and 0 <= target[1] < self.size:
            self.pos = target
        reward, done = -0.01, False
        if self.pos == self.key and not self.has_key:
            self.has_key, reward = True, 0.5
        elif self.pos == self.door and self.has_key:
            reward, done = 1.0, True
        return self.observe(), reward, done


class PrioritizedReplayMemory:
    """Two rings: transitions of rewarded episodes are drawn more often."""

    def __init__(self, capacity, priority_fraction):
        self.priority_fraction = priority_fraction
        self.alpha = deque(maxlen=int(capacity * priority_fraction))
        self.beta = deque(maxlen=capacity - int(capacity * priority_fraction))
        self.rng = np.random.default_rng()  # cause

    def push(self, is_priority, transition):
        (self.alpha if is_priority else self.beta).append(transition)

    def sample(self, batch_size):
        from_alpha = min(int(self.priority_fraction * batch_size), len(self.alpha))
        from_beta = min(batch_size - from_alpha, len(self.beta))
        picks = [self.alpha[i] for i in self.rng.integers(0, len(self.alpha), from_alpha)] if from_alpha else []
        picks += [self.beta[i] for i in self.rng.integers(0, len(self.beta), from_beta)] if from_beta else []
        self.rng.shuffle(picks)
        return Transition(*zip(*picks))

    def __len__(self):
        return len(self.alpha) + len(self.beta)


class Agent:
    def __init__(self, config, n_inputs, n_actions):
        self.config = config
        self.n_actions = n_actions
        self.online_net = self.make_net(n_inputs, n_actions)
        self.target_net = self.make_net(n_inputs, n_actions)
        self.target_net.load_state_dict(self.online_net.state_dict())
        self.optimizer = torch.optim.Adam(self.online_net.parameters(), lr=config["lr"])
        self.replay_memory = PrioritizedReplayMemory(config["capacity"], config["priority_fraction"])
        self.updates = 0

    @staticmethod
    def make_net(n_inputs, n_actions):
        return nn.Sequential(nn.Linear(n_inputs, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(),
                             nn.Linear(48, n_actions))

    @torch.no_grad()
    def act(self, obs, epsilon):
        if random.random() < epsilon:
            return random.randrange(self.n_actions)
        return int(self.online_net(torch.from_numpy(obs)).argmax())

    def update(self):
        batch = self.replay_memory.sample(self.config["batch_size"])
        obs = torch.from_numpy(np.stack(batch.obs))
        next_obs = torch.from_numpy(np.stack(batch.next_obs))
        action = torch.tensor(batch.action)[:, None]
        reward = torch.tensor(batch.reward, dtype=torch.float32)
        alive = 1.0 - torch.tensor(batch.done, dtype=torch.float32)
        with torch.no_grad():
            best = self.online_net(next_obs).argmax(dim=1, keepdim=True)
            target = reward + self.config["gamma"] * alive * self.target_net(next_obs).gather(1, best)[:, 0]
        loss = F.smooth_l1_loss(self.online_net(obs).gather(1, action)[:, 0], target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.updates % self.config["target_update"] == 0:
            self.target_net.load_state_dict(self.online_net.state_dict())
        return float(loss.detach())


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def run_episode(agent, env, config, epsilon, learn, counter):
    obs, episode, losses, total = env.reset(), [], [], 0.0
    for _ in range(config["max_steps"]):
        action = agent.act(obs, epsilon)
        next_obs, reward, done = env.step(action)
        episode.append(Transition(obs, action, reward, next_obs, done))
        obs, total = next_obs, total + reward
        counter[0] += 1
        memory = agent.replay_memory
        if learn and len(memory) >= config["learn_start"] and counter[0] % config["update_per_k_steps"] == 0:
            losses.append(agent.update())
        if done:
            break
    if learn:
        for transition in episode:
            agent.replay_memory.push(total > 0.2, transition)
    return total, losses


def main():
    config = CONFIG
    seed_all(config["seed"])
    torch.set_num_threads(1)
    env, agent = KeyDoorMaze(config["seed"]), Agent(CONFIG, 13, 4)
    high, low, decay = config["epsilon"]
    started, rows, counter = time.time(), [], [0]
    for number in range(config["episodes"]):
        epsilon = max(low, high - (high - low) * number / decay)
        total, losses = run_episode(agent, env, config, epsilon, True, counter)
        rows.append((number, round(total, 3), round(float(np.mean(losses)), 6) if losses else ""))
        if (number + 1) % 35 == 0:
            recent = np.mean([r[1] for r in rows[-35:]])
            print(f"episode {number + 1:4d} | mean return {recent:+.3f} | updates {agent.updates}")
    with open("training.csv", "w", newline="") as handle:
        csv.writer(handle).writerows([("episode", "return", "loss"), *rows])
    evaluation = KeyDoorMaze(1000)
    returns = [run_episode(agent, evaluation, config, 0.0, False, counter)[0] for _ in range(40)]
    values = agent.online_net(torch.from_numpy(np.stack([evaluation.reset() for _ in range(8)])))
    result = {"eval_return": round(float(np.mean(returns)), 4),
              "solved": int(sum(r > 1.0 for r in returns)),
              "mean_value": round(float(values.max(dim=1).values.mean().detach()), 5)}
    with open("eval.json", "w") as handle:
        json.dump(result, handle, indent=2)
    print(result)
    print(f"took {time.time() - started:.1f} s")


if __name__ == "__main__":
    main()
