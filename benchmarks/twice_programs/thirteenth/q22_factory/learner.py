"""The learner consumes segments and keeps statistics."""
import logging
import multiprocessing as mp
from dataclasses import dataclass

import gymnasium as gym
import numpy as np

from q22_factory.actor import ActorSpec, actor_main
from q22_factory.policy import LinearPolicy

log = logging.getLogger("learner")


@dataclass
class LearnerConfig:
    env_id: str = "CartPole-v1"
    actors: int = 4
    segments: int = 60
    length: int = 128
    features: int = 96
    gamma: float = 0.97
    lr: float = 0.04
    epsilon: float = 0.35
    seed: int = 5


class Learner:
    def __init__(self, cfg: LearnerConfig):
        self.cfg = cfg
        self.policy = LinearPolicy(4, 2, cfg.features, cfg.seed)
        self.losses = []
        self.frames = 0

    def spawn(self):
        ctx = mp.get_context("fork")
        inbox = ctx.Queue(maxsize=16)
        procs = []
        for rank in range(self.cfg.actors):
            c = self.cfg
            spec = ActorSpec(rank, c.env_id, c.seed, c.segments, c.length, c.epsilon)
            procs.append(ctx.Process(target=actor_main, args=(spec, inbox), daemon=True))
        for p in procs:
            p.start()
        return inbox, procs

    def train(self):
        inbox, procs = self.spawn()
        running = len(procs)
        while running:
            message = inbox.get()  # cause
            if message[1] is None:
                running -= 1
                continue
            _rank, _segment, o, a, r, n, d = message
            self.frames += len(a)
            self.losses.append(self.policy.update(o, a, r, n, d.astype(float), self.cfg.gamma, self.cfg.lr))
        for p in procs:
            p.join()
        log.info("%d frames consumed", self.frames)

    def evaluate(self, episodes=10):
        env = gym.make(self.cfg.env_id)
        returns = []
        for e in range(episodes):
            obs, _ = env.reset(seed=1000 + e)
            total, done = 0.0, False
            while not done:
                obs, reward, term, trunc, _ = env.step(self.policy.act(obs))
                total += reward
                done = term or trunc
            returns.append(total)
        env.close()
        return returns
