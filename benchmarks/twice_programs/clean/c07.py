"""The Trainer of transformers with checkpoints, TensorBoard, metrics files, a speed callback, and a model card."""

import json
import os
import time

import numpy as np
import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel, Trainer, TrainerCallback, TrainingArguments, set_seed


class TinyConfig(PretrainedConfig):
    model_type = "tiny"

    def __init__(self, hidden=16, **kw):
        super().__init__(**kw)
        self.hidden = hidden


class Tiny(PreTrainedModel):
    config_class = TinyConfig

    def __init__(self, config):
        super().__init__(config)
        self.emb = nn.Embedding(30, config.hidden)
        self.cls = nn.Linear(config.hidden, 3)
        self.post_init()

    def _init_weights(self, module):
        if hasattr(module, "weight"):
            module.weight.data.normal_(0, 0.1)

    def forward(self, input_ids, labels=None):
        logits = self.cls(self.emb(input_ids).mean(1))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class ThroughputCallback(TrainerCallback):
    """Tokens per second between two steps, and their mean."""

    def __init__(self, tokens):
        self.tokens, self.times = tokens, []

    def on_step_begin(self, args, state, control, **kw):
        self.t0 = time.perf_counter()

    def on_step_end(self, args, state, control, **kw):
        self.times.append(time.perf_counter() - self.t0)
        if state.global_step % 5 == 0:
            print(f"[{time.strftime('%H:%M:%S')}] step {state.global_step}: {self.tokens / self.times[-1]:,.0f} tok/s (mean {self.tokens * len(self.times) / sum(self.times):,.0f})")


def rows(n, seed):
    g = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        y = int(g.integers(0, 3))
        out.append({"input_ids": torch.tensor(g.integers(y * 8, y * 8 + 14, 12)), "labels": y})
    return out


def compute_metrics(p):
    return {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())}


def main():
    set_seed(11)
    args = TrainingArguments(
        output_dir="out",
        num_train_epochs=3,
        per_device_train_batch_size=16,
        learning_rate=2e-2,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=2,
        load_best_model_at_end=True,
        logging_steps=4,
        report_to=["tensorboard"],
        use_cpu=True,
        seed=11,
    )
    trainer = Trainer(
        model=Tiny(TinyConfig()),
        args=args,
        train_dataset=rows(128, 1),
        eval_dataset=rows(64, 2),
        compute_metrics=compute_metrics,
        callbacks=[ThroughputCallback(16 * 12)],
    )
    result = trainer.train()
    trainer.save_model()
    trainer.log_metrics("train", result.metrics)
    trainer.save_metrics("train", result.metrics)
    trainer.save_state()
    metrics = trainer.evaluate()
    trainer.log_metrics("eval", metrics)
    trainer.save_metrics("eval", metrics)
    with open("out/README.md", "w") as f:
        f.write(f"---\nlicense: mit\n---\n# tiny\n\nTrained {time.strftime('%Y-%m-%d %H:%M')} by `{os.uname().nodename}` in {result.metrics['train_runtime']:.1f} s\n\n")
        f.write("| Metric | Value |\n|---|---|\n" + "".join(f"| {k} | {v:.4f} |\n" for k, v in metrics.items()))
    print(json.dumps({k: round(v, 4) for k, v in metrics.items()}))


if __name__ == "__main__":
    main()
