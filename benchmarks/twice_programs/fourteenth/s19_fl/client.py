import copy
import logging
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset

log = logging.getLogger(__name__)


class ClientTrainer:
    """Trains the sampled clients of a round in a pool of threads."""

    def __init__(self, dataset, parts, lr=0.05, epochs=3, batch=16, threads=3):
        self.dataset = dataset
        self.parts = parts
        self.lr = lr
        self.epochs = epochs
        self.batch = batch
        self.threads = threads

    def train(self, client, model):
        net = copy.deepcopy(model)
        net.train()
        opt = torch.optim.SGD(net.parameters(), self.lr, momentum=0.9)
        loader = DataLoader(Subset(self.dataset, self.parts[client]), self.batch, shuffle=True)  # cause
        total = 0.0
        for _ in range(self.epochs):
            for x, y in loader:
                loss = nn.functional.cross_entropy(net(x), y)
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 5.0)
                opt.step()
                total += loss.item()
        return net.state_dict(), len(self.parts[client]), total

    def local_process(self, clients, model):
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(lambda c: self.train(c, model), clients))  # cause
