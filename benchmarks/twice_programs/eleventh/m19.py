"""Modelled on https://github.com/ReaLLMASIC/ReaLLM-Forge/pull/799
Fine-tunes a tiny sequence classifier on short product reviews with the Trainer and reports evaluation metrics.
"""
import argparse
import json
import logging
import os
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
import torch
from datasets import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from transformers.utils import logging as hf_logging

logger = logging.getLogger("finetune")

POSITIVE = "great excellent sturdy lovely quick perfect solid bright comfortable helpful".split()
NEGATIVE = "broken poor flimsy ugly slow useless cracked dim painful rude".split()
NEUTRAL = "box delivery lamp chair table phone cable colour size price week order store shelf".split()
GLUE = "the a is was and with very this for it my on came".split()


@dataclass
class ModelArgs:
    vocab_limit: int = 200
    hidden: int = 32
    layers: int = 2
    heads: int = 2
    max_len: int = 24


def parse_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--num_reviews", type=int, default=480)
    ap.add_argument("--data_seed", type=int, default=3)
    ap.add_argument("--seed", type=int, default=42)
    ap.add_argument("--epochs", type=int, default=10)
    ap.add_argument("--lr", type=float, default=5e-3)
    ap.add_argument("--output_dir", default="finetuned")
    return ap.parse_args()


def write_reviews(path, n, seed):
    """Reviews with a noisy sentiment label, one JSON object a line."""
    rnd = random.Random(seed)
    with open(path, "w") as f:
        for i in range(n):
            label = i % 2
            main, other = (POSITIVE, NEGATIVE) if label else (NEGATIVE, POSITIVE)
            words = rnd.choices(main, k=rnd.randint(1, 3)) + rnd.choices(other, k=rnd.randint(0, 2))
            words += rnd.choices(NEUTRAL, k=rnd.randint(2, 5)) + rnd.choices(GLUE, k=rnd.randint(3, 8))
            rnd.shuffle(words)
            if rnd.random() < 0.06:
                label = 1 - label
            f.write(json.dumps({"id": i, "text": " ".join(words), "label": label}) + "\n")


def load_reviews(path):
    rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
    return Dataset.from_dict({k: [r[k] for r in rows] for k in rows[0]})


class WordTokenizer:
    """Whitespace tokenizer with a vocabulary built from the most frequent words."""

    def __init__(self, texts, limit):
        counts = Counter(w for t in texts for w in t.split())
        words = sorted(counts, key=lambda w: (-counts[w], w))[:limit]
        self.vocab = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]"] + words)}

    def __call__(self, text, max_len):
        ids = [2] + [self.vocab.get(w, 1) for w in text.split()]
        ids = ids[:max_len]
        pad = max_len - len(ids)
        return {"input_ids": ids + [0] * pad, "attention_mask": [1] * len(ids) + [0] * pad}

    def __len__(self):
        return len(self.vocab)


def encode(split, tok, max_len):
    out = [tok(t, max_len) for t in split["text"]]
    return Dataset.from_dict(
        {
            "input_ids": [o["input_ids"] for o in out],
            "attention_mask": [o["attention_mask"] for o in out],
            "labels": list(split["label"]),
        }
    )


def build_model(tok, m, seed):
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(tok),
        hidden_size=m.hidden,
        num_hidden_layers=m.layers,
        num_attention_heads=m.heads,
        intermediate_size=2 * m.hidden,
        max_position_embeddings=m.max_len,
        num_labels=2,
    )
    return BertForSequenceClassification(config)


def compute_metrics(pred):
    guess = pred.predictions.argmax(-1)
    tp = int(((guess == 1) & (pred.label_ids == 1)).sum())
    fp = int(((guess == 1) & (pred.label_ids == 0)).sum())
    fn = int(((guess == 0) & (pred.label_ids == 1)).sum())
    return {
        "accuracy": float((guess == pred.label_ids).mean()),
        "f1": 2 * tp / max(1, 2 * tp + fp + fn),
    }


def worst_reviews(trainer, enc, raw, k=5):
    logits = trainer.predict(enc).predictions
    logp = torch.log_softmax(torch.tensor(logits), -1)
    labels = torch.tensor(list(raw["label"]))
    nll = -logp.gather(1, labels[:, None]).squeeze(1).numpy()
    order = np.argsort(-nll, kind="stable")[:k]
    return [(raw["id"][int(i)], round(float(nll[i]), 4)) for i in order]


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    hf_logging.set_verbosity_error()
    m = ModelArgs()
    random.seed(args.data_seed)

    logger.info("loading the dataset")
    write_reviews("reviews.jsonl", args.num_reviews, args.data_seed)
    dataset = load_reviews("reviews.jsonl")
    tok = WordTokenizer(dataset["text"], m.vocab_limit)
    splits = dataset.train_test_split(test_size=0.2)  # cause
    train, test = splits["train"], splits["test"]
    print(f"train {len(train)} test {len(test)} vocab {len(tok)}")

    train_enc, test_enc = encode(train, tok, m.max_len), encode(test, tok, m.max_len)
    model = build_model(tok, m, args.seed)
    targs = TrainingArguments(
        output_dir=args.output_dir,
        num_train_epochs=args.epochs,
        learning_rate=args.lr,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=64,
        seed=args.seed,
        data_seed=args.seed,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=model,
        args=targs,
        train_dataset=train_enc,
        eval_dataset=test_enc,
        compute_metrics=compute_metrics,
    )
    before = trainer.evaluate()
    trainer.train()
    after = trainer.evaluate()
    for name in ("eval_loss", "eval_accuracy", "eval_f1"):
        print(f"{name}: before {before[name]:.5f} after {after[name]:.5f}")
    hard = worst_reviews(trainer, test_enc, test)
    print("hardest reviews:", hard)
    keep = {k: round(v, 6) for k, v in after.items() if k in ("eval_loss", "eval_accuracy", "eval_f1")}
    Path("eval.json").write_text(json.dumps({"metrics": keep, "hardest": hard}, indent=1))
    logger.info("done")


if __name__ == "__main__":
    main()
