"""A plain residual CNN and its training step."""
import torch
from torch import nn


class DnCNN(nn.Module):
    def __init__(self, in_nc, nc, nb):
        super().__init__()
        layers = [nn.Conv2d(in_nc, nc, 3, padding=1), nn.ReLU()]
        for _ in range(nb):
            layers += [nn.Conv2d(nc, nc, 3, padding=1), nn.ReLU()]
        layers.append(nn.Conv2d(nc, in_nc, 3, padding=1))
        self.body = nn.Sequential(*layers)

    def forward(self, x):
        return x - self.body(x)


class ModelPlain:
    def __init__(self, opt):
        self.netG = DnCNN(**opt["netG"])
        for m in self.netG.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.orthogonal_(m.weight, gain=0.6)
                nn.init.zeros_(m.bias)
        self.criterion = nn.L1Loss()
        self.optimizer = torch.optim.Adam(self.netG.parameters(), lr=opt["train"]["G_optimizer_lr"])
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(
            self.optimizer, gamma=opt["train"]["G_scheduler_gamma"])

    def optimize_parameters(self, low, high):
        self.netG.train()
        self.optimizer.zero_grad()
        loss = self.criterion(self.netG(low), high)
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def update_learning_rate(self):
        self.scheduler.step()

    @torch.no_grad()
    def test(self, low):
        self.netG.eval()
        return self.netG(low).clamp(0, 1)

    def save(self, path):
        torch.save(self.netG.state_dict(), path)
