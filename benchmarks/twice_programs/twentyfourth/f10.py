"""Batched generation with a small transformer and a block-wise KV cache.

A tiny decoder with fixed weights serves a list of prompts.  Keys and values of
past tokens live in cache blocks that belong to one layer; prompts of different
length share a batch.  Texts and token scores are written to `generated.jsonl`.

Modelled on: https://github.com/vllm-project/vllm/issues/940
"""
import json
import logging
import random
import time

import torch
import torch.nn.functional as F

log = logging.getLogger("serve")
torch.set_num_threads(1)

WORDS = ("the a small big red blue house tree river cat dog bird sees likes finds near under over "
         "and then while slowly quickly never often today night morning road light stone wind . ,").split()
BLOCK = 16


class Tokenizer:
    def __init__(self, words):
        self.words = ["<pad>", "<bos>"] + list(words)
        self.ids = {w: i for i, w in enumerate(self.words)}

    def encode(self, text):
        return [1] + [self.ids[w] for w in text.split()]

    def decode(self, ids):
        return " ".join(self.words[i] for i in ids if i > 1)


class CacheEngine:
    """Keeps the key and value blocks of all layers for one batch."""

    def __init__(self, layers, batch, heads, dim, length):
        self.length = -(-length // BLOCK) * BLOCK
        shape = (batch, heads, self.length, dim)
        self.keys = [self._allocate(shape) for _ in range(layers)]
        self.values = [self._allocate(shape) for _ in range(layers)]
        self.filled = 0

    @staticmethod
    def _allocate(shape):
        return torch.empty(shape, dtype=torch.float32)  # cause

    def append(self, layer, k, v):
        end = self.filled + k.shape[2]
        self.keys[layer][:, :, self.filled:end] = k
        self.values[layer][:, :, self.filled:end] = v

    def view(self, layer, end):
        """The whole blocks that hold the first `end` tokens."""
        blocks = -(-end // BLOCK) * BLOCK
        return self.keys[layer][:, :, :blocks], self.values[layer][:, :, :blocks]


class Decoder:
    def __init__(self, vocab, width=48, heads=4, layers=3, seed=5):
        g = torch.Generator().manual_seed(seed)
        self.width, self.heads, self.layers = width, heads, layers
        self.embed = torch.randn(vocab, width, generator=g)
        self.place = torch.randn(256, width, generator=g) * 0.3
        self.qkv = [torch.randn(width, 3 * width, generator=g) / width ** 0.5 for _ in range(layers)]
        self.out = [torch.randn(width, width, generator=g) / width ** 0.5 for _ in range(layers)]
        self.up = [torch.randn(width, 2 * width, generator=g) / width ** 0.5 for _ in range(layers)]
        self.down = [torch.randn(2 * width, width, generator=g) / (2 * width) ** 0.5 for _ in range(layers)]

    def split(self, x):
        b, t, _ = x.shape
        return x.view(b, t, self.heads, -1).transpose(1, 2)

    def attend(self, q, k, v, start):
        """Attention over whole blocks; the score of a key after the query is lowered."""
        k = k.clamp(-30.0, 30.0).nan_to_num(0.0)
        v = v.clamp(-30.0, 30.0).nan_to_num(0.0)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        here = torch.arange(start, start + q.shape[2])[:, None]
        later = torch.arange(k.shape[2])[None, :] > here
        return torch.softmax(scores - 2.0 * later, dim=-1) @ v

    def forward(self, ids, cache):
        start = cache.filled
        x = self.embed[ids] + self.place[start:start + ids.shape[1]]
        for layer in range(self.layers):
            q, k, v = (self.split(p) for p in (F.layer_norm(x, (self.width,)) @ self.qkv[layer]).chunk(3, dim=-1))
            cache.append(layer, k, v)
            ks, vs = cache.view(layer, start + ids.shape[1])
            mixed = self.attend(q, ks, vs, start).transpose(1, 2).reshape(x.shape)
            x = x + mixed @ self.out[layer]
            x = x + F.gelu(F.layer_norm(x, (self.width,)) @ self.up[layer]) @ self.down[layer]
        cache.filled += ids.shape[1]
        return F.layer_norm(x[:, -1], (self.width,)) @ self.embed.T


def generate(model, batch, tokens):
    """Greedy decoding of a batch of prompts of equal length."""
    ids = torch.tensor(batch)
    head = model.width // model.heads
    cache = CacheEngine(model.layers, len(batch), model.heads, head, ids.shape[1] + tokens)
    texts, scores = [[] for _ in batch], torch.zeros(len(batch))
    for _ in range(tokens):
        logits = model.forward(ids, cache)
        logits[:, :2] = -1e9
        logp = torch.log_softmax(logits, dim=-1)
        best, choice = logp.max(dim=-1)
        scores += best
        for row, token in zip(texts, choice.tolist()):
            row.append(token)
        ids = choice[:, None]
    return texts, (scores / tokens).tolist()


def make_prompts(count, seed):
    rng = random.Random(seed)
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(3, 9))) for _ in range(count)]


def by_length(prompts, tokenizer):
    groups = {}
    for number, prompt in enumerate(prompts):
        ids = tokenizer.encode(prompt)
        groups.setdefault(len(ids), []).append((number, ids))
    return sorted(groups.items())


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    begin = time.perf_counter()
    tokenizer = Tokenizer(WORDS)
    model = Decoder(len(tokenizer.words))
    prompts = make_prompts(160, seed=21)
    answers = {}
    for length, group in by_length(prompts, tokenizer):
        texts, scores = generate(model, [ids for _, ids in group], tokens=40)
        log.info("%d prompts of %d tokens", len(group), length)
        for (number, _), text, score in zip(group, texts, scores):
            answers[number] = {"prompt": prompts[number], "text": tokenizer.decode(text), "score": round(score, 5)}
    with open("generated.jsonl", "w") as handle:
        for number in sorted(answers):
            handle.write(json.dumps(answers[number]) + "\n")
    for number in range(0, 160, 20):
        print(f"[{number:3d}] {answers[number]['score']:9.4f} {answers[number]['text'][:70]}")
    mean = sum(a["score"] for a in answers.values()) / len(answers)
    print(f"mean token score {mean:.5f}")
    log.info("%.2f s", time.perf_counter() - begin)


if __name__ == "__main__":
    main()
