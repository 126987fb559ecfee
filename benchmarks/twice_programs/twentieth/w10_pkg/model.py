"""A small causal transformer over timeline tokens."""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, dropout=dropout, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim),
                                 nn.Dropout(dropout))

    def forward(self, x, mask):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class TimelineModel(nn.Module):
    def __init__(self, vocab, context, dim=32, heads=2, layers=2, dropout=0.3):
        super().__init__()
        self.config = dict(vocab=vocab, context=context, dim=dim, heads=heads, layers=layers,
                           dropout=dropout)
        self.tokens = nn.Embedding(vocab, dim)
        self.positions = nn.Embedding(context, dim)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(dim, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        length = ids.shape[1]
        mask = torch.triu(torch.full((length, length), float("-inf")), diagonal=1)
        x = self.drop(self.tokens(ids) + self.positions(torch.arange(length)))
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))
