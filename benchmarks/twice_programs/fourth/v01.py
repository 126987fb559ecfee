"""https://github.com/pranz24/pytorch-soft-actor-critic/issues/32: the replay memory draws from Python's generator, which nobody seeds."""

import numpy as np
import torch
from sac.memory import ReplayMemory
from sac.model import Critic

SEED = 123456


class Env:
    def __init__(self):
        self.rng = np.random.default_rng(SEED)
        self.state = np.zeros(3)

    def reset(self):
        self.state = self.rng.normal(size=3)
        return self.state

    def step(self, action):
        self.state = 0.9 * self.state + 0.1 * action + 0.01 * self.rng.normal(size=3)
        return self.state, -float(np.square(self.state).sum())


def main():
    torch.manual_seed(SEED)
    np.random.seed(SEED)
    env = Env()
    memory = ReplayMemory(500)
    critic = Critic(6)
    optimizer = torch.optim.Adam(critic.parameters(), lr=3e-3)
    state = env.reset()
    for step in range(120):
        action = np.random.uniform(-1, 1, size=3)
        after, reward = env.step(action)
        memory.push(state, action, reward, after)
        state = after
        if len(memory) >= 32:
            states, actions, rewards, afters = memory.sample(16)
            q = critic(torch.as_tensor(states, dtype=torch.float32), torch.as_tensor(actions, dtype=torch.float32))
            loss = torch.nn.functional.mse_loss(q, torch.as_tensor(rewards, dtype=torch.float32))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 20 == 0:
                print(f"step {step} loss {loss.item():.6f}")
    torch.save(critic.state_dict(), "critic.pt")


main()
