"""Text classification with the Hugging Face Trainer on a synthetic review corpus.

A small BERT from scratch, a WordLevel tokenizer trained on the fly, and the usual
all_results.json / trainer_state.json files.
"""
import logging
import os
import random
import sys
import time
from datetime import datetime

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.trainers import WordLevelTrainer
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

logger = logging.getLogger("run_classification")

POS = "great lovely superb bright charming solid clever moving".split()
NEG = "dull awful weak boring clumsy flat tired noisy".split()
NEUTRAL = "the a film book plot music actor scene was felt with and very rather of it".split()


class ReviewDataset(Dataset):
    def __init__(self, texts, labels, tokenizer, max_length):
        t0 = time.time()
        enc = tokenizer(texts, truncation=True, max_length=max_length)
        self.ids, self.mask, self.labels = enc["input_ids"], enc["attention_mask"], labels
        logger.info("Tokenized %d examples in %.3f s (%.0f examples/s)", len(texts), time.time() - t0,
                    len(texts) / (time.time() - t0))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": self.mask[i], "labels": self.labels[i]}


def make_reviews(n, seed):
    rng = random.Random(seed)
    texts, labels = [], []
    for _ in range(n):
        y = rng.randint(0, 1)
        good, bad = (POS, NEG) if y else (NEG, POS)
        words = [rng.choice(NEUTRAL) for _ in range(rng.randint(6, 14))]
        for _ in range(rng.randint(1, 3)):
            words.insert(rng.randint(0, len(words)), rng.choice(good))
        if rng.random() < 0.35:
            words.insert(rng.randint(0, len(words)), rng.choice(bad))
        texts.append(" ".join(words))
        labels.append(y)
    return texts, labels


def build_tokenizer(texts, out):
    tok = Tokenizer(WordLevel(unk_token="[UNK]"))
    tok.pre_tokenizer = Whitespace()
    tok.train_from_iterator(texts, WordLevelTrainer(
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], show_progress=False))
    fast = PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="[PAD]", unk_token="[UNK]",
                                   cls_token="[CLS]", sep_token="[SEP]", model_max_length=32)
    fast.save_pretrained(out)
    return fast


class ThroughputCallback(TrainerCallback):
    """Keep our own samples/second line next to the Trainer's logs."""

    def __init__(self, path):
        self.path, self.t0, self.last = path, None, None

    def on_train_begin(self, args, state, control, **kw):
        self.t0 = self.last = time.perf_counter()
        with open(self.path, "w") as f:
            f.write("step,epoch,loss,samples_per_sec,elapsed\n")

    def on_log(self, args, state, control, logs=None, **kw):
        if "loss" not in logs:
            return
        now = time.perf_counter()
        sps = args.logging_steps * args.train_batch_size / (now - self.last)
        with open(self.path, "a") as f:
            f.write(f"{state.global_step},{state.epoch:.3f},{float(logs['loss']):.6f},{sps:.2f},{now - self.t0:.3f}\n")
        self.last = now


def compute_metrics(p):
    pred = np.argmax(p.predictions, axis=1)
    acc = float((pred == p.label_ids).mean())
    tp = int(((pred == 1) & (p.label_ids == 1)).sum())
    prec = tp / max(int((pred == 1).sum()), 1)
    rec = tp / max(int((p.label_ids == 1).sum()), 1)
    return {"accuracy": acc, "f1": 2 * prec * rec / max(prec + rec, 1e-9)}


def main():
    logging.basicConfig(
        format="%(asctime)s - %(levelname)s - %(name)s - %(message)s",
        datefmt="%m/%d/%Y %H:%M:%S",
        level=logging.INFO,
        handlers=[logging.StreamHandler(sys.stdout)],
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)
    transformers.utils.logging.set_verbosity_warning()
    torch.set_num_threads(1)
    output_dir = os.path.join("runs", "bert-tiny-reviews")
    args = TrainingArguments(
        output_dir=output_dir,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=64,
        num_train_epochs=2,
        learning_rate=2e-3,
        weight_decay=0.01,
        lr_scheduler_type="linear",
        warmup_steps=6,
        logging_steps=10,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,
        load_best_model_at_end=True,
        metric_for_best_model="eval_loss",
        greater_is_better=False,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=11,
        dataloader_num_workers=0,
    )
    logger.warning("Process rank: %s, device: %s, n_gpu: %s, 16-bits training: %s", args.local_rank, args.device, args.n_gpu, args.fp16)
    logger.info("Job started at %s on pid %d", datetime.now().strftime("%b%d_%H-%M-%S"), os.getpid())
    set_seed(args.seed)

    train_texts, train_labels = make_reviews(480, seed=1)
    eval_texts, eval_labels = make_reviews(160, seed=2)
    test_texts, test_labels = make_reviews(120, seed=3)
    tokenizer = build_tokenizer(train_texts, output_dir)
    train_ds = ReviewDataset(train_texts, train_labels, tokenizer, 24)
    eval_ds = ReviewDataset(eval_texts, eval_labels, tokenizer, 24)
    test_ds = ReviewDataset(test_texts, test_labels, tokenizer, 24)
    for i in random.Random(0).sample(range(len(train_ds)), 2):
        logger.info("Sample %d of the training set: %s.", i, train_ds[i])

    cfg = BertConfig(vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                     intermediate_size=64, max_position_embeddings=32, num_labels=2, pad_token_id=tokenizer.pad_token_id)
    model = BertForSequenceClassification(cfg)
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=train_ds,
        eval_dataset=eval_ds,
        data_collator=DataCollatorWithPadding(tokenizer),
        compute_metrics=compute_metrics,
        callbacks=[ThroughputCallback(os.path.join(output_dir, "throughput.csv"))],
    )
    result = trainer.train()
    metrics = dict(result.metrics, train_samples=len(train_ds))
    trainer.save_model()
    trainer.log_metrics("train", metrics)
    trainer.save_metrics("train", metrics)
    trainer.save_state()

    logger.info("*** Evaluate ***")
    metrics = trainer.evaluate()
    metrics["eval_samples"] = len(eval_ds)
    trainer.log_metrics("eval", metrics)
    trainer.save_metrics("eval", metrics)

    logger.info("*** Predict ***")
    out = trainer.predict(test_ds)
    probs = torch.tensor(out.predictions).softmax(-1)[:, 1]
    with open(os.path.join(output_dir, "predict_results.txt"), "w") as w:
        w.write("index\tprediction\tprob\tlabel\n")
        for i, p in enumerate(probs):
            w.write(f"{i}\t{int(p > 0.5)}\t{float(p):.6f}\t{test_labels[i]}\n")
    logger.info("test: accuracy=%.4f f1=%.4f (%.1f samples/s)", out.metrics["test_accuracy"], out.metrics["test_f1"],
                out.metrics["test_samples_per_second"])


if __name__ == "__main__":
    main()
