"""Masked-token training of the encoder."""
import pathlib
import time

import torch
from transformers import BertConfig, BertForMaskedLM, set_seed
from transformers.utils import logging

from corpus import Vocabulary, sentences

OUT = pathlib.Path("encoder")


def mask_tokens(ids, vocabulary, generator):
    labels = ids.clone()
    chosen = (torch.rand(ids.shape, generator=generator) < 0.2) & (ids > 4)
    labels[~chosen] = -100
    masked = ids.masked_fill(chosen, vocabulary.index["[MASK]"])
    return masked, labels


def main():
    logging.disable_progress_bar()
    set_seed(13)
    lines = sentences(400, seed=1)
    vocabulary = Vocabulary.build(lines)
    encoded = [vocabulary.encode(line) for line in lines]
    ids = torch.tensor([e[0] for e in encoded])
    attention = torch.tensor([e[1] for e in encoded])
    config = BertConfig(
        vocab_size=len(vocabulary.words),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=16,
    )
    model = BertForMaskedLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(13)
    model.train()
    for epoch in range(4):
        order = torch.randperm(len(ids), generator=generator)
        total = 0.0
        for start in range(0, len(ids), 50):
            rows = order[start : start + 50]
            masked, labels = mask_tokens(ids[rows], vocabulary, generator)
            loss = model(input_ids=masked, attention_mask=attention[rows], labels=labels).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"{time.strftime('%H:%M:%S')} epoch {epoch} loss {total / 8:.4f}")
    OUT.mkdir(exist_ok=True)
    model.bert.save_pretrained(OUT)
    vocabulary.save(OUT / "vocabulary.json")


if __name__ == "__main__":
    main()
