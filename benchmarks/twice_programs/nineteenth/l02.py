"""Simple-QA benchmark for a small local language model.

Fits a tiny character-level GPT-2 on sums, saves it the way a published chat
model is saved (weights + generation_config.json), loads it again and scores
its answers on a fixed list of questions.

Modelled on: https://github.com/kubeedge/ianvs/pull/990
"""
import csv
import json
import logging
import os
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from transformers import GPT2Config, GPT2LMHeadModel

logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
log = logging.getLogger("simple_qa")

SEED = 20
WORKDIR = Path("workspace")


class CharTokenizer:
    """Character vocabulary with padding on the left."""

    def __init__(self, alphabet="0123456789+=?QA: "):
        self.itos = ["<pad>", "<eos>"] + list(alphabet)
        self.stoi = {c: i for i, c in enumerate(self.itos)}
        self.pad_id, self.eos_id = 0, 1

    def __len__(self):
        return len(self.itos)

    def encode(self, text):
        return [self.stoi[c] for c in text]

    def decode(self, ids):
        chars = []
        for i in ids:
            if i == self.eos_id:
                break
            if i != self.pad_id:
                chars.append(self.itos[i])
        return "".join(chars)

    def batch(self, texts):
        rows = [self.encode(t) for t in texts]
        width = max(len(r) for r in rows)
        ids = torch.tensor([[self.pad_id] * (width - len(r)) + r for r in rows])
        mask = (ids != self.pad_id).long()
        return ids, mask


def questions():
    return [(a, b) for a in range(2, 10) for b in range(2, 10)]


def prompt_of(a, b):
    return f"Q:{a}+{b}=?A:"


def publish_model(tok, folder):
    """Train the stand-in model and save it with its chat defaults."""
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        config = GPT2Config(
            vocab_size=len(tok), n_positions=24, n_embd=48, n_layer=2, n_head=4,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
            bos_token_id=tok.eos_id, eos_token_id=tok.eos_id, pad_token_id=tok.pad_id,
        )
        model = GPT2LMHeadModel(config)
        rows = [tok.encode(f"{prompt_of(a, b)}{a + b}") + [tok.eos_id] for a, b in questions()]
        width = max(map(len, rows))
        ids = torch.tensor([r + [tok.pad_id] * (width - len(r)) for r in rows])
        labels = ids.masked_fill(ids == tok.pad_id, -100)
        labels[:, : len(prompt_of(2, 2))] = -100
        opt = torch.optim.AdamW(model.parameters(), lr=4e-3)
        model.train()
        for step in range(45):
            loss = model(input_ids=ids, labels=labels).loss
            opt.zero_grad()
            loss.backward()
            opt.step()
    log.info("model trained, loss %.4f", loss.item())

    gen = model.generation_config
    gen.do_sample = True
    gen.temperature = 0.7
    gen.top_p = 0.8
    gen.top_k = 20
    model.save_pretrained(folder)


class BaseModel:
    def __init__(self, folder, tok, batch_size=32):
        self.tok = tok
        self.batch_size = batch_size
        self.model = GPT2LMHeadModel.from_pretrained(folder)
        self.model.eval()

    @torch.no_grad()
    def predict(self, prompts):
        answers = []
        for start in range(0, len(prompts), self.batch_size):
            ids, mask = self.tok.batch(prompts[start:start + self.batch_size])
            generated = self.model.generate(ids, attention_mask=mask, max_new_tokens=4)  # cause
            for row in generated[:, ids.shape[1]:].tolist():
                answers.append(self.tok.decode(row))
        return answers


def accuracy(pred, gold):
    return sum(p == g for p, g in zip(pred, gold)) / len(gold)


def mean_abs_error(pred, gold):
    errs = [abs(int(p) - int(g)) if p.isdigit() else 20 for p, g in zip(pred, gold)]
    return sum(errs) / len(errs)


def write_rank(path, row):
    with open(path, "w", newline="") as fh:
        writer = csv.DictWriter(fh, fieldnames=list(row))
        writer.writeheader()
        writer.writerow(row)


def main():
    torch.set_num_threads(1)
    WORKDIR.mkdir(exist_ok=True)
    tok = CharTokenizer()
    publish_model(tok, WORKDIR / "model")

    bench = questions()
    prompts = [prompt_of(a, b) for a, b in bench]
    gold = [str(a + b) for a, b in bench]
    pred = BaseModel(WORKDIR / "model", tok).predict(prompts)

    with open(WORKDIR / "predictions.jsonl", "w") as fh:
        for p, g, q in zip(pred, gold, prompts):
            fh.write(json.dumps({"question": q, "gold": g, "answer": p}) + "\n")
    row = {
        "algorithm": "simple_qa_singletask",
        "acc": round(accuracy(pred, gold), 4),
        "mae": round(mean_abs_error(pred, gold), 4),
        "n": len(gold),
    }
    write_rank(WORKDIR / "all_rank.csv", row)
    log.info("benchmark finished")
    print("rank:", row)


if __name__ == "__main__":
    main()
