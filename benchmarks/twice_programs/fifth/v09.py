"""After a seeded evaluation the generator is "put back" by torch.seed(), which draws a new seed; of no single report."""

import contextlib

import torch
from torch import nn


@contextlib.contextmanager
def fixed_noise(seed):
    """The same noise for each evaluation."""
    torch.manual_seed(seed)
    try:
        yield
    finally:
        torch.seed()  # cause


class VAE(nn.Module):
    def __init__(self, dim=20, latent=4):
        super().__init__()
        self.encoder = nn.Linear(dim, 2 * latent)
        self.decoder = nn.Linear(latent, dim)

    def forward(self, x):
        mean, log_var = self.encoder(x).chunk(2, dim=1)
        z = mean + torch.randn_like(mean) * (0.5 * log_var).exp()
        kl = -0.5 * (1 + log_var - mean.square() - log_var.exp()).sum(1)
        return self.decoder(z), kl.mean()


def evaluate(model, x):
    with fixed_noise(99), torch.no_grad():
        recon, kl = model(x)
        return (recon - x).square().sum(1).mean().item() + kl.item()


def main():
    torch.manual_seed(7)
    data = torch.randn(256, 20)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(5):
        order = torch.randperm(len(data))
        for at in range(0, len(data), 64):
            batch = data[order[at : at + 64]]
            recon, kl = model(batch)
            loss = (recon - batch).square().sum(1).mean() + kl
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: elbo {evaluate(model, data[:64]):.4f}")
    torch.save(model.state_dict(), "vae.pt")


main()
