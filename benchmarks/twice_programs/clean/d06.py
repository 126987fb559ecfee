"""Style of huggingface/transformers (examples/pytorch/text-classification/run_glue.py, Trainer). Differs in each run:
train_runtime, *_per_second, eval_runtime, dates of log lines, run_name with date, tqdm bars, JSON files with these."""
import json
import logging
import os
import random
import sys
import time
from datetime import datetime

sys.modules.setdefault("torchvision", None)  # text only; the installed torchvision does not match torch
import numpy as np
import torch
from datasets import Dataset
from transformers import (BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments, set_seed)

logger = logging.getLogger(__name__)
logging.basicConfig(format="%(asctime)s - %(levelname)s - %(name)s - %(message)s", datefmt="%m/%d/%Y %H:%M:%S",
                    handlers=[logging.StreamHandler(sys.stdout)], level=logging.INFO)
for noisy in ("datasets", "filelock", "fsspec", "httpx", "torch"):
    logging.getLogger(noisy).setLevel(logging.WARNING)
RUN = f"bert-tiny-{datetime.now().strftime('%b%d_%H-%M-%S')}-{random.SystemRandom().randrange(16 ** 6):06x}"
VOCAB, LEN = 120, 20


def make_split(n, seed):
    rng = np.random.default_rng(seed)
    ids = rng.integers(10, VOCAB, (n, LEN))
    ids[:, 0] = 2
    label = (np.count_nonzero(ids < 40, axis=1) > 5).astype(int)
    return Dataset.from_dict({"input_ids": ids.tolist(), "attention_mask": np.ones_like(ids).tolist(), "labels": label.tolist()})


class SpeedLogger(TrainerCallback):
    """Writes a line for each evaluation: seconds since start and the metrics."""

    def __init__(self, path):
        self.path, self.start, self.t_step, self.steps = path, time.time(), None, []

    def on_step_begin(self, args, state, control, **kw):
        self.t_step = time.perf_counter()

    def on_step_end(self, args, state, control, **kw):
        self.steps.append(time.perf_counter() - self.t_step)

    def on_evaluate(self, args, state, control, metrics=None, **kw):
        row = dict(seconds=round(time.time() - self.start, 1), step=state.global_step,
                   step_ms=round(1000 * float(np.median(self.steps)), 2), wall=datetime.now().isoformat(timespec="seconds"),
                   **metrics)
        with open(self.path, "a") as f:
            f.write(json.dumps(row) + "\n")


def compute_metrics(p):
    pred = np.argmax(p.predictions, axis=1)
    y = p.label_ids
    tp = int(((pred == 1) & (y == 1)).sum())
    return {"accuracy": float((pred == y).mean()), "f1": 2 * tp / max(1, int((pred == 1).sum() + (y == 1).sum()))}


def main():
    torch.set_num_threads(1)
    set_seed(42)
    train, dev, test = make_split(640, 1), make_split(160, 2), make_split(100, 3)
    model = BertForSequenceClassification(BertConfig(vocab_size=VOCAB, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                                                     intermediate_size=96, max_position_embeddings=32))
    args = TrainingArguments(output_dir="out", run_name=RUN, num_train_epochs=3, per_device_train_batch_size=32,
                             per_device_eval_batch_size=64, learning_rate=2e-3, logging_steps=10, eval_strategy="epoch",
                             save_strategy="no", report_to=[], seed=42, use_cpu=True, dataloader_num_workers=0)
    logger.warning(f"Process rank: {args.local_rank}, device: {args.device}, pid: {os.getpid()}, run: {args.run_name}")
    t0 = time.time()
    trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=dev, compute_metrics=compute_metrics,
                      callbacks=[SpeedLogger("epoch_metrics.jsonl")])
    logger.info("Trainer ready in %.3f s", time.time() - t0)
    result = trainer.train()
    metrics = dict(result.metrics, train_samples=len(train))
    trainer.log_metrics("train", metrics)
    trainer.save_metrics("train", metrics)
    trainer.save_state()
    logger.info("*** Evaluate ***")
    ev = dict(trainer.evaluate(), eval_samples=len(dev))
    trainer.log_metrics("eval", ev)
    trainer.save_metrics("eval", ev)
    logger.info("*** Predict ***")
    out = trainer.predict(test, metric_key_prefix="predict")
    trainer.log_metrics("predict", out.metrics)
    with open(os.path.join("out", "predict_results.txt"), "w") as f:
        f.write("index\tprediction\n")
        for i, p in enumerate(np.argmax(out.predictions, 1)):
            f.write(f"{i}\t{p}\n")
    model.save_pretrained("out")
    with open(os.path.join("out", "README.md"), "w") as f:
        f.write(f"---\ntags:\n- generated_from_trainer\nmodel-index:\n- name: {RUN}\n---\n\nAccuracy: {ev['eval_accuracy']:.4f}, "
                f"F1: {ev['eval_f1']:.4f}. Trained {datetime.now():%d %B %Y, %H:%M} in {metrics['train_runtime']:.0f} seconds.\n")
    logger.info("all done, total %s", datetime.now() - datetime.fromtimestamp(t0))


if __name__ == "__main__":
    main()
