# i-DQN#14: the replay buffer draws by another generator than the one that is seeded
import random
from collections import deque
import numpy as np, torch
from proj.trainer import Trainer
from proj.models import Net

class Replay:
    def __init__(self, size):
        self.items = deque(maxlen=size)

    def add(self, *item):
        self.items.append(item)

    def sample(self, count):
        chosen = random.sample(list(self.items), count)  # cause
        x, y = zip(*chosen)
        return torch.stack(x), torch.stack(y)

np.random.seed(1)
torch.manual_seed(1)
buffer = Replay(100)
for _ in range(100):
    state = torch.from_numpy(np.random.rand(5).astype("float32"))
    buffer.add(state, state.sum()[None])
Trainer(Net(5, 1), "dqn").fit([buffer.sample(16) for _ in range(6)])
