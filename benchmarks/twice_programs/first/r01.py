# pystk2-gymnasium#3: environments reset without a seed
import gymnasium, numpy as np, torch
from proj.trainer import Trainer, seed_everything
from proj.models import Net
from proj.data import batches

class Collector:
    def __init__(self, name, episodes):
        self.env, self.episodes = gymnasium.make(name), episodes
        self.env.action_space.seed(3)

    def collect(self):
        seen, rewards = [], []
        for _ in range(self.episodes):
            observation, _ = self.env.reset()  # cause
            for _ in range(12):
                observation, reward, done, *_ = self.env.step(self.env.action_space.sample())
                seen.append(observation)
                rewards.append([reward - abs(float(observation[2]))])
                if done:
                    break
        return np.stack(seen), np.array(rewards)

seed_everything(0)
x, y = Collector("CartPole-v1", 6).collect()
Trainer(Net(4, 1), "value").fit(batches(x, y))
