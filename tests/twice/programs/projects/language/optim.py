import torch


class Langevin(torch.optim.Optimizer):
    """Stochastic gradient Langevin dynamics."""

    def __init__(self, params, lr=1e-3, temperature=1e-4):
        super().__init__(params, {"lr": lr, "temperature": temperature})
        self.generator = torch.Generator()
        self.generator.seed()  # cause: langevin

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                noise = torch.randn(p.shape, generator=self.generator)
                p.add_(p.grad, alpha=-group["lr"]).add_(
                    noise, alpha=(2 * group["lr"] * group["temperature"]) ** 0.5
                )


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, beta=0.9):
        super().__init__(params, {"lr": lr, "beta": beta})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                p.add_(state["momentum"].lerp(p.grad, 0.1).sign(), alpha=-group["lr"])
                state["momentum"].lerp_(p.grad, 1 - group["beta"])


def make(name, parameters, lr):
    return {"adamw": torch.optim.AdamW, "langevin": Langevin, "lion": Lion}[name](parameters, lr=lr)
