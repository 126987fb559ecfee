import torch


class Critic(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(size, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def forward(self, state, action):
        return self.body(torch.cat([state, action], 1)).squeeze(1)
