"""A small image-text matching model."""
import torch
import torch.nn as nn


class MatchingModel(nn.Module):
    def __init__(self, vocab, dim, hidden, dropout):
        super().__init__()
        self.embed = nn.Embedding(vocab, hidden)
        self.position = nn.Parameter(torch.randn(5, hidden, hidden) * hidden ** -0.5)
        self.image = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, hidden))
        self.drop = nn.Dropout(dropout)
        self.head = nn.Sequential(nn.Linear(3 * hidden, hidden), nn.GELU(), nn.Linear(hidden, 1))
        self.norm = nn.LayerNorm(hidden)

    def encode_text(self, words):
        e = self.embed(words)
        h = torch.einsum("blh,lhk->bk", e, self.position)
        return self.norm(h)

    def forward(self, image, words):
        v = self.norm(self.image(image))
        t = self.encode_text(words)
        x = self.drop(torch.cat([v, t, v * t], dim=1))  # cause
        return self.head(x).squeeze(1)


def build(cfg, vocab=22):
    return MatchingModel(vocab, cfg["dim"], cfg["hidden"], cfg["dropout"])
