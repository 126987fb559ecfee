"""Learns values from a stream of rollouts: an actor thread feeds, a learner trains.

Modelled on https://github.com/instadeepai/Mava/pull/1088
A review asks about rollouts in a pipeline of actors and a learner with a bounded queue.
"""
import argparse
import json
import logging
import random
import threading
import time

import numpy as np
import torch
from torch import nn

from f15_stream.pipeline import Pipeline
from f15_stream.world import GridWorld

log = logging.getLogger("stream")


class Actor(threading.Thread):
    """Follows a fixed noisy policy and sends rollouts of equal length."""

    def __init__(self, world, pipe, cfg):
        super().__init__(daemon=True)
        self.world, self.pipe, self.cfg = world, pipe, cfg
        self.rng = np.random.default_rng(cfg.seed + 1)

    def act(self, state):
        if self.rng.random() < self.cfg.noise:
            return int(self.rng.integers(4))
        dx, dy = self.world.goal[0] - state[0], self.world.goal[1] - state[1]
        if abs(dx) > abs(dy):
            return 0 if dx > 0 else 1
        return 2 if dy > 0 else 3

    def run(self):
        state = self.world.reset(self.rng)
        for number in range(self.cfg.rollouts):
            rows = []
            for _ in range(self.cfg.length):
                a = self.act(state)
                nxt, r, done = self.world.step(state, a, self.rng)
                rows.append((state, a, r, nxt, done))
                state = self.world.reset(self.rng) if done else nxt
            self.pipe.send((number, rows))
            time.sleep(self.cfg.pause)
        self.pipe.close()


class Critic(nn.Module):
    def __init__(self, size, width):
        super().__init__()
        self.size = size
        self.net = nn.Sequential(nn.Linear(2 * size, width), nn.Tanh(), nn.Linear(width, width),
                                 nn.Tanh(), nn.Linear(width, 4))

    def forward(self, s):
        x = nn.functional.one_hot(s[:, 0], self.size)
        y = nn.functional.one_hot(s[:, 1], self.size)
        return self.net(torch.cat([x, y], 1).float())


def collate(rows):
    s, a, r, n, d = zip(*rows)
    return (torch.tensor(s), torch.tensor(a), torch.tensor(r, dtype=torch.float32),
            torch.tensor(n), torch.tensor(d, dtype=torch.float32))


def learn(critic, pipe, cfg):
    opt = torch.optim.Adam(critic.parameters(), lr=cfg.lr)
    slow = Critic(critic.size, cfg.width)
    slow.load_state_dict(critic.state_dict())
    history, recent, t0 = [], [], time.time()
    for update, (number, rows) in enumerate(pipe):
        s, a, r, n, d = collate(rows)
        for _ in range(cfg.passes):
            with torch.no_grad():
                y = r + cfg.gamma * (1 - d) * slow(n).max(1).values
            q = critic(s).gather(1, a[:, None]).squeeze(1)
            loss = nn.functional.mse_loss(q, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            for p, o in zip(slow.parameters(), critic.parameters()):
                p.lerp_(o, cfg.tau)
        recent.append(loss.item())
        if (update + 1) % cfg.log_every == 0:
            mean = float(np.mean(recent[-cfg.log_every:]))
            history.append({"update": update + 1, "rollout": number, "loss": mean})
            log.info("update %4d rollout %4d loss %.6f (%.0f updates/s)", update + 1, number,
                     mean, (update + 1) / (time.time() - t0))
    return history, len(recent)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--size", type=int, default=9)
    ap.add_argument("--rollouts", type=int, default=900)
    ap.add_argument("--length", type=int, default=64)
    ap.add_argument("--noise", type=float, default=0.5)
    ap.add_argument("--pause", type=float, default=0.004, help="the plant rests between rollouts")
    ap.add_argument("--queue", type=int, default=8)
    ap.add_argument("--passes", type=int, default=3)
    ap.add_argument("--width", type=int, default=48)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--gamma", type=float, default=0.95)
    ap.add_argument("--tau", type=float, default=0.05)
    ap.add_argument("--log-every", type=int, default=50)
    ap.add_argument("--seed", type=int, default=13)
    cfg = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    torch.set_num_threads(1)

    world = GridWorld(cfg.size, cfg.seed)
    critic = Critic(cfg.size, cfg.width)
    pipe = Pipeline(cfg.queue)
    actor = Actor(world, pipe, cfg)
    actor.start()
    history, updates = learn(critic, pipe, cfg)
    actor.join()

    grid = torch.cartesian_prod(torch.arange(cfg.size), torch.arange(cfg.size))
    with torch.no_grad():
        value = critic(grid).max(1).values
    log.info("%d updates, mean value %.8f", updates, value.mean())
    torch.save(critic.state_dict(), "critic.pt")
    with open("policy.json", "w") as fh:
        json.dump({"history": history, "updates": updates, "value": value.tolist()}, fh, indent=1)


if __name__ == "__main__":
    main()
