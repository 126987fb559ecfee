"""A small decoder that reads its keys and values from the cache."""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.head_dim = dim // n_heads
        self.norm1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x, cache, request_id, layer, position):
        q, k, v = self.qkv(self.norm1(x)).reshape(3, self.n_heads, self.head_dim)
        cache.write(request_id, layer, position, k, v)
        keys, values = cache.gather(request_id, layer)
        scores = torch.einsum("hd,thd->ht", q, keys) / self.head_dim ** 0.5
        scores = torch.nan_to_num(scores, nan=0.0, posinf=30.0, neginf=-30.0).clamp(-30.0, 30.0)
        valid = torch.arange(keys.shape[0]) <= position
        weights = torch.softmax(scores - 4.0 * (~valid).float(), dim=-1)
        values = torch.nan_to_num(values, nan=0.0).clamp(-5.0, 5.0)
        mixed = torch.einsum("ht,thd->hd", weights, values).reshape(-1)
        x = x + self.out(mixed)
        return x + self.mlp(self.norm2(x))


class TinyDecoder(nn.Module):
    def __init__(self, vocab, dim=64, n_heads=4, n_layers=3, max_len=256):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.position = nn.Embedding(max_len, dim)
        self.blocks = nn.ModuleList(Block(dim, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, token, cache, request_id, position):
        x = self.embed.weight[token] + self.position.weight[position]
        for layer, block in enumerate(self.blocks):
            x = block(x, cache, request_id, layer, position)
        return self.head(self.norm(x))
