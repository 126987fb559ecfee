"""Fine-tune a tiny randomly initialised BERT on a toy sentiment task with the HF Trainer.

Offline: the tokenizer is a whitespace vocabulary built from the corpus itself.
"""
import json
import logging
import os
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
import torch
from datasets import Dataset
from sklearn.metrics import accuracy_score, f1_score
from transformers import (BertConfig, BertForSequenceClassification, Trainer,
                          TrainerCallback, TrainingArguments, set_seed)

logger = logging.getLogger(__name__)

POSITIVE = "great wonderful charming moving brilliant fresh funny superb warm clever".split()
NEGATIVE = "dull awful boring clumsy stale bland tedious weak cold predictable".split()
NEUTRAL = ("the movie film plot actor scene script was is and a of with some very story "
           "director camera ending music").split()
MAX_LEN = 16
SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
VOCAB = {w: i for i, w in enumerate(SPECIAL + sorted(POSITIVE + NEGATIVE + NEUTRAL))}


def make_corpus(n, seed):
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(n):
        label = int(rng.integers(0, 2))
        length = int(rng.integers(6, MAX_LEN - 2))
        words = list(rng.choice(NEUTRAL, size=length))
        n_cues = int(rng.integers(1, 4))
        for pos in rng.choice(length, size=n_cues, replace=False):
            pool = (POSITIVE if label else NEGATIVE) if rng.random() < 0.9 else \
                   (NEGATIVE if label else POSITIVE)
            words[pos] = pool[int(rng.integers(len(pool)))]
        texts.append(" ".join(words))
        labels.append(label)
    return Dataset.from_dict({"text": texts, "label": labels})


def encode(example):
    ids = [VOCAB["[CLS]"]] + [VOCAB.get(w, VOCAB["[UNK]"]) for w in example["text"].split()]
    ids = ids[: MAX_LEN - 1] + [VOCAB["[SEP]"]]
    pad = MAX_LEN - len(ids)
    return {"input_ids": ids + [VOCAB["[PAD]"]] * pad,
            "attention_mask": [1] * len(ids) + [0] * pad}


def compute_metrics(p):
    preds = p.predictions.argmax(-1)
    return {"accuracy": float(accuracy_score(p.label_ids, preds)),
            "f1": float(f1_score(p.label_ids, preds))}


class SpeedCallback(TrainerCallback):
    def on_epoch_begin(self, args, state, control, **kwargs):
        self.t0 = time.perf_counter()

    def on_epoch_end(self, args, state, control, **kwargs):
        logger.info("epoch %.0f finished in %.2fs (global step %d)",
                    state.epoch, time.perf_counter() - self.t0, state.global_step)


def main():
    logging.basicConfig(format="%(asctime)s - %(levelname)s - %(name)s - %(message)s",
                        datefmt="%m/%d/%Y %H:%M:%S", level=logging.INFO,
                        handlers=[logging.StreamHandler(sys.stdout)])
    set_seed(2024)
    train = make_corpus(480, seed=1).map(encode, remove_columns=["text"])
    valid = make_corpus(160, seed=2).map(encode, remove_columns=["text"])
    test = make_corpus(160, seed=3).map(encode, remove_columns=["text"])
    logger.info("train=%d valid=%d test=%d vocab=%d", len(train), len(valid), len(test), len(VOCAB))

    config = BertConfig(vocab_size=len(VOCAB), hidden_size=32, num_hidden_layers=2,
                        num_attention_heads=2, intermediate_size=64,
                        max_position_embeddings=MAX_LEN, num_labels=2,
                        hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    model = BertForSequenceClassification(config)
    args = TrainingArguments(
        output_dir="output", num_train_epochs=4, learning_rate=2e-3,
        per_device_train_batch_size=32, per_device_eval_batch_size=64,
        warmup_steps=6, weight_decay=0.01, lr_scheduler_type="linear",
        eval_strategy="epoch", save_strategy="epoch", save_total_limit=1,
        load_best_model_at_end=True, metric_for_best_model="accuracy",
        logging_steps=10, seed=2024, data_seed=2024, use_cpu=True, report_to=[],
    )
    trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=valid,
                      compute_metrics=compute_metrics, callbacks=[SpeedCallback()])
    result = trainer.train()
    trainer.save_model("output/final")
    metrics = result.metrics
    metrics["train_samples"] = len(train)
    trainer.log_metrics("train", metrics)
    trainer.save_metrics("train", metrics)
    trainer.save_state()

    eval_metrics = trainer.evaluate()
    trainer.log_metrics("eval", eval_metrics)
    trainer.save_metrics("eval", eval_metrics)

    pred = trainer.predict(test, metric_key_prefix="test")
    trainer.log_metrics("test", pred.metrics)
    trainer.save_metrics("test", pred.metrics)
    probs = torch.softmax(torch.from_numpy(pred.predictions), dim=-1).numpy()
    with open("output/test_predictions.tsv", "w") as f:
        f.write("index\tprediction\tprob_positive\n")
        for i, row in enumerate(probs):
            f.write(f"{i}\t{row.argmax()}\t{row[1]:.6f}\n")
    logger.info("test accuracy %.4f", pred.metrics["test_accuracy"])


if __name__ == "__main__":
    main()
