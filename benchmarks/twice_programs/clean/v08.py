"""Fine-tuning a tiny BERT classifier with the Hugging Face Trainer (its own output).

Output follows https://github.com/huggingface/transformers (examples/pytorch/text-classification/run_classification.py):
log dictionaries, "***** train metrics *****" with train_runtime and samples per second, trainer_state.json.
"""
import logging
import os
import sys
import time
from datetime import datetime
import socket

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["WANDB_DISABLED"] = "true"

import numpy as np
import torch
import transformers
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

logger = logging.getLogger(__name__)
VOCAB, LEN = 120, 24


class Reviews(torch.utils.data.Dataset):
    """Token sequences whose label is the sign of the summed word weights."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        weight = np.random.default_rng(0).normal(size=VOCAB)
        self.rows = []
        for _ in range(n):
            k = int(rng.integers(8, LEN - 2))
            ids = rng.integers(5, VOCAB, k)
            pad = LEN - k - 2
            self.rows.append({
                "input_ids": torch.tensor([2, *ids.tolist(), 3] + [0] * pad),
                "attention_mask": torch.tensor([1] * (k + 2) + [0] * pad),
                "labels": int(weight[ids].sum() > 0)})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def compute_metrics(p):
    preds = np.argmax(p.predictions, axis=1)
    tp = int(((preds == 1) & (p.label_ids == 1)).sum())
    fp = int(((preds == 1) & (p.label_ids == 0)).sum())
    fn = int(((preds == 0) & (p.label_ids == 1)).sum())
    return {"accuracy": float((preds == p.label_ids).mean()), "f1": 2 * tp / max(1, 2 * tp + fp + fn)}


def main():
    run_name = datetime.now().strftime("%b%d_%H-%M-%S") + "_" + socket.gethostname()
    out = "output"
    args = TrainingArguments(
        output_dir=out, num_train_epochs=3, per_device_train_batch_size=16, per_device_eval_batch_size=32,
        learning_rate=2e-3, weight_decay=0.01, logging_steps=10, eval_strategy="epoch", save_strategy="epoch",
        seed=42, data_seed=42, report_to=[], use_cpu=True, run_name=run_name,
        dataloader_num_workers=0, load_best_model_at_end=True, metric_for_best_model="accuracy")
    logging.basicConfig(format="%(asctime)s - %(levelname)s - %(name)s - %(message)s", datefmt="%m/%d/%Y %H:%M:%S",
                        handlers=[logging.StreamHandler(sys.stdout)], level=logging.INFO)
    transformers.utils.logging.set_verbosity_info()
    transformers.utils.logging.enable_default_handler()
    transformers.utils.logging.enable_explicit_format()
    logger.warning("Process rank: %d, device: %s, n_gpu: %d, distributed training: False, 16-bits training: False",
                   args.local_rank, args.device, 0)
    logger.info("Training/evaluation parameters: output_dir=%s, run_name=%s, seed=%d", out, run_name, args.seed)
    set_seed(args.seed)
    torch.set_num_threads(1)
    train, dev, test = Reviews(320, 1), Reviews(96, 2), Reviews(96, 3)
    cfg = BertConfig(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                     intermediate_size=64, max_position_embeddings=LEN, num_labels=2)
    model = BertForSequenceClassification(cfg)
    logger.info("Model has %d parameters", sum(p.numel() for p in model.parameters()))
    trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=dev, compute_metrics=compute_metrics)
    result = trainer.train()
    metrics = result.metrics
    metrics["train_samples"] = len(train)
    trainer.save_model()
    trainer.log_metrics("train", metrics)
    trainer.save_metrics("train", metrics)
    trainer.save_state()
    logger.info("*** Evaluate ***")
    metrics = trainer.evaluate()
    metrics["eval_samples"] = len(dev)
    trainer.log_metrics("eval", metrics)
    trainer.save_metrics("eval", metrics)
    logger.info("*** Predict ***")
    t = time.perf_counter()
    pred = trainer.predict(test, metric_key_prefix="predict")
    logger.info("predicted %d examples in %.3f s", len(test), time.perf_counter() - t)
    with open(os.path.join(out, "predict_results.txt"), "w") as f:
        f.write("index\tprediction\tscore\n")
        for i, row in enumerate(pred.predictions):
            f.write(f"{i}\t{int(row.argmax())}\t{float(row[1] - row[0]):.6f}\n")
    print("test accuracy %.4f, f1 %.4f" % (pred.metrics["predict_accuracy"], pred.metrics["predict_f1"]))


if __name__ == "__main__":
    main()
