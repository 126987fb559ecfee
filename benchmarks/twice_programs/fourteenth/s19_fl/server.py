import random

import torch


class FedAvgServer:
    def __init__(self, model, clients, fraction):
        self.model = model
        self.clients = clients
        self.fraction = fraction

    def sample_clients(self):
        n = max(1, int(self.fraction * self.clients))
        return sorted(random.sample(range(self.clients), n))

    def aggregate(self, updates):
        total = sum(n for _, n, _ in updates)
        state = {}
        for name in updates[0][0]:
            state[name] = sum(s[name] * (n / total) for s, n, _ in updates)
        self.model.load_state_dict(state)

    @torch.no_grad()
    def evaluate(self, dataset):
        x, y = dataset.tensors
        self.model.eval()
        logits = self.model(x)
        loss = torch.nn.functional.cross_entropy(logits, y)
        return float((logits.argmax(1) == y).float().mean()), float(loss)
