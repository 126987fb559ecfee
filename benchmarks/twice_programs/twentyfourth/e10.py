"""Q-learning with an epsilon-greedy strategy on a slippery grid.

Trains a tabular agent on FrozenLake with a decaying epsilon-greedy exploration
policy, evaluates the greedy policy and writes the learning curve, the table of
values and the policy.

Modelled on: https://github.com/rlworkgroup/garage/issues/2180
"""
import json
import logging
import random

import gymnasium as gym
import numpy as np

logger = logging.getLogger("train")

CONFIG = {
    "env": "FrozenLake-v1",
    "map_name": "4x4",
    "seed": 21,
    "episodes": 2500,
    "alpha": 0.1,
    "gamma": 0.98,
    "eps_start": 1.0,
    "eps_end": 0.05,
    "decay_steps": 15000,
    "eval_episodes": 150,
}


def set_seed(seed):
    """Seed the generators of the process."""
    random.seed(seed)
    np.random.seed(seed)


class QPolicy:
    """Greedy policy of a table of action values."""

    def __init__(self, n_states, n_actions):
        self.q = np.zeros((n_states, n_actions))

    def get_action(self, observation):
        return int(np.argmax(self.q[observation]))

    def update(self, obs, action, reward, next_obs, terminal, alpha, gamma):
        target = reward if terminal else reward + gamma * self.q[next_obs].max()
        self.q[obs, action] += alpha * (target - self.q[obs, action])


class EpsilonGreedyPolicy:
    """Takes a random action with a probability that decays over the steps."""

    def __init__(self, env_spec, policy, max_epsilon, min_epsilon, decay_steps):
        self.action_space = env_spec.action_space
        self.policy = policy
        self.epsilon = max_epsilon
        self.min_epsilon = min_epsilon
        self.decrement = (max_epsilon - min_epsilon) / decay_steps

    def get_action(self, observation):
        action = self.policy.get_action(observation)
        self.decay()
        if np.random.random() < self.epsilon:
            action = int(self.action_space.sample())  # cause
        return action

    def decay(self):
        if self.epsilon > self.min_epsilon:
            self.epsilon = max(self.min_epsilon, self.epsilon - self.decrement)


class Trainer:
    def __init__(self, env, policy, explorer, config):
        self.env = env
        self.policy = policy
        self.explorer = explorer
        self.config = config
        self.curve = []

    def rollout(self, reset_seed=None):
        obs, _ = self.env.reset(seed=reset_seed)
        total, length, done = 0.0, 0, False
        while not done:
            action = self.explorer.get_action(obs)
            next_obs, reward, terminated, truncated, _ = self.env.step(action)
            self.policy.update(obs, action, reward, next_obs, terminated,
                               self.config["alpha"], self.config["gamma"])
            obs = next_obs
            total += reward
            length += 1
            done = terminated or truncated
        return total, length

    def train(self):
        window = []
        for episode in range(self.config["episodes"]):
            seed = self.config["seed"] if episode == 0 else None
            total, length = self.rollout(seed)
            window.append((total, length))
            if len(window) == 250:
                rate = float(np.mean([t for t, _ in window]))
                steps = float(np.mean([n for _, n in window]))
                self.curve.append({"episode": episode + 1, "success": rate, "length": round(steps, 3),
                                   "epsilon": round(self.explorer.epsilon, 4)})
                logger.info("episode %d success %.3f", episode + 1, rate)
                window = []
        return self.curve


def evaluate(policy, config):
    """Success rate of the greedy policy on a fresh environment."""
    env = gym.make(config["env"], map_name=config["map_name"], is_slippery=True)
    wins = 0
    for episode in range(config["eval_episodes"]):
        obs, _ = env.reset(seed=config["seed"] + 1000 + episode)
        done = False
        while not done:
            obs, reward, terminated, truncated, _ = env.step(policy.get_action(obs))
            done = terminated or truncated
        wins += reward > 0
    env.close()
    return wins / config["eval_episodes"]


def render_policy(policy, side):
    arrows = "<v>^"
    rows = []
    for r in range(side):
        rows.append("".join(arrows[policy.get_action(r * side + c)] for c in range(side)))
    return rows


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    set_seed(CONFIG["seed"])
    env = gym.make(CONFIG["env"], map_name=CONFIG["map_name"], is_slippery=True)  # cause
    policy = QPolicy(env.observation_space.n, env.action_space.n)
    explorer = EpsilonGreedyPolicy(env, policy, CONFIG["eps_start"], CONFIG["eps_end"], CONFIG["decay_steps"])
    trainer = Trainer(env, policy, explorer, CONFIG)
    curve = trainer.train()
    env.close()
    success = evaluate(policy, CONFIG)
    np.savetxt("q_table.txt", policy.q, fmt="%.6f")
    with open("curve.json", "w") as handle:
        json.dump({"config": CONFIG, "curve": curve, "success": success}, handle, indent=1)
    for point in curve:
        print("episode %(episode)5d success %(success).3f length %(length).3f" % point)
    print("greedy success rate %.4f" % success)
    print("\n".join(render_policy(policy, int(env.observation_space.n ** 0.5))))


if __name__ == "__main__":
    main()
