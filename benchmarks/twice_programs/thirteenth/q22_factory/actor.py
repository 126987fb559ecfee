"""Actor processes with a fixed exploration policy."""
from dataclasses import dataclass

import gymnasium as gym
import numpy as np


@dataclass
class ActorSpec:
    rank: int
    env_id: str
    seed: int
    segments: int
    length: int
    epsilon: float


def behave(obs, rng, epsilon):
    if rng.random() < epsilon:
        return int(rng.integers(2))
    return int(obs[2] + 0.5 * obs[3] > 0)


def actor_main(spec: ActorSpec, outbox):
    rng = np.random.default_rng([spec.seed, spec.rank])
    env = gym.make(spec.env_id)
    obs, _ = env.reset(seed=spec.seed + spec.rank)
    for segment in range(spec.segments):
        rows = []
        for _ in range(spec.length):
            action = behave(obs, rng, spec.epsilon)
            nxt, reward, terminated, truncated, _ = env.step(action)
            rows.append((obs, action, reward, nxt, terminated))
            obs = nxt
            if terminated or truncated:
                obs, _ = env.reset(seed=int(rng.integers(2**31)))
        o, a, r, n, d = (np.array(c) for c in zip(*rows))
        outbox.put((spec.rank, segment, o, a, r, n, d))
    outbox.put((spec.rank, None))
    env.close()
