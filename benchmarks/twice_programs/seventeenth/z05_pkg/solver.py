"""Training loop with noisy gradient steps (preconditioned Langevin dynamics)."""
from itertools import chain

import torch


class NoisySteps(torch.optim.Optimizer):
    """RMS-preconditioned gradient steps with Gaussian noise of a given temperature."""

    def __init__(self, params, lr, temperature, alpha=0.97, eps=1e-5):
        super().__init__(params, dict(lr=lr, temperature=temperature, alpha=alpha, eps=eps))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["square"] = torch.zeros_like(p)
                sq = state["square"]
                sq.mul_(group["alpha"]).addcmul_(p.grad, p.grad, value=1.0 - group["alpha"])
                scale = 1.0 / (sq.sqrt() + group["eps"])
                noise = torch.randn(p.shape) * (2.0 * group["lr"] * group["temperature"]) ** 0.5
                p.addcmul_(p.grad, scale, value=-group["lr"]).add_(noise)


class Solver:
    def __init__(self, system, nets, cfg, log):
        self.system, self.nets, self.cfg, self.log = system, nets, cfg, log
        params = set(chain.from_iterable(n.parameters() for n in nets))  # cause
        self.params = list(params)
        self.optimizer = NoisySteps(self.params, lr=cfg["lr"], temperature=cfg["temperature"])
        self.mean = None
        self.n_kept = 0

    @property
    def n_tensors(self):
        return len(self.params)

    def unknowns(self, t):
        return [self.system.enforce(net(t), t, k) for k, net in enumerate(self.nets)]

    def sample_times(self):
        n, t_max = self.cfg["points"], self.cfg["t_max"]
        base = torch.linspace(0.0, t_max, n + 1)[:-1]
        jitter = torch.rand(n) * (t_max / n)
        return (base + jitter)[:, None].requires_grad_(True)

    def residual(self, t):
        x, y = self.unknowns(t)
        rx, ry = self.system.residual(x, y, t)
        return (rx ** 2).mean() + (ry ** 2).mean()

    def _keep(self):
        self.n_kept += 1
        if self.mean is None:
            self.mean = [p.detach().clone() for p in self.params]
            return
        for m, p in zip(self.mean, self.params):
            m += (p.detach() - m) / self.n_kept

    def fit(self):
        history = []
        for epoch in range(self.cfg["epochs"]):
            heat = self.cfg["temperature"] * 0.98 ** epoch
            for group in self.optimizer.param_groups:
                group["temperature"] = heat
            self.optimizer.zero_grad()
            loss = self.residual(self.sample_times())
            loss.backward()
            self.optimizer.step()
            if epoch >= self.cfg["average_from"]:
                self._keep()
            history.append((epoch, loss.item(), heat))
            if epoch % 50 == 0 or epoch == self.cfg["epochs"] - 1:
                self.log.info("epoch %4d residual %.8f", epoch, loss.item())
        with torch.no_grad():
            for p, m in zip(self.params, self.mean):
                p.copy_(m)
        return history

    def predict(self, grid):
        with torch.no_grad():
            return torch.cat(self.unknowns(grid), dim=1)
