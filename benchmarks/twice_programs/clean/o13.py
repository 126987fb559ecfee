"""Few-task language-model evaluation harness on a small GPT-2 built from its config, in the style of EleutherAI/lm-evaluation-harness."""
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import argparse
import hashlib
import json
import logging
import math
import platform
import random
import time
from datetime import datetime
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict
from rich.console import Console
from rich.table import Table
from tqdm import tqdm
from transformers import GPT2Config, GPT2LMHeadModel

logging.basicConfig(level=logging.INFO, datefmt="%Y-%m-%d:%H:%M:%S",
                    format="%(asctime)s,%(msecs)03d %(levelname)-8s [%(filename)s:%(lineno)d] %(message)s")
eval_logger = logging.getLogger("lm-eval")


class TaskConfig(BaseModel):
    model_config = ConfigDict(frozen=True)
    task: str
    output_type: Literal["multiple_choice", "loglikelihood_rolling"]
    num_fewshot: int = 0
    n_docs: int = 60
    version: float = 1.0
    seed: int = 0


class Instance(BaseModel):
    task: str
    doc_id: int
    idx: int
    context: str
    target: str


TASKS = [
    TaskConfig(task="toy_arith", output_type="multiple_choice", num_fewshot=2, seed=1),
    TaskConfig(task="toy_copy", output_type="multiple_choice", seed=2),
    TaskConfig(task="toy_order", output_type="multiple_choice", num_fewshot=1, seed=3, n_docs=50),
    TaskConfig(task="toy_text", output_type="loglikelihood_rolling", seed=4, n_docs=24, version=2.0),
]


def make_docs(cfg):
    rng = random.Random(cfg.seed)
    letters = "abcdefghij"
    docs = []
    for i in range(cfg.n_docs):
        if cfg.task == "toy_arith":
            a, b = rng.randint(1, 40), rng.randint(1, 40)
            choices = [str(a + b + d) for d in rng.sample([-3, -1, 0, 2], 4)]
            docs.append(dict(query=f"{a} + {b} =", choices=choices, gold=choices.index(str(a + b))))
        elif cfg.task == "toy_copy":
            w = "".join(rng.choices(letters, k=5))
            choices = [w] + ["".join(rng.sample(w, 5)) for _ in range(2)]
            rng.shuffle(choices)
            docs.append(dict(query=f"repeat {w}:", choices=choices, gold=choices.index(w)))
        elif cfg.task == "toy_order":
            s = rng.randint(0, 5)
            seq = letters[s:s + 4]
            choices = [letters[s + 4], rng.choice(letters)]
            docs.append(dict(query=" ".join(seq), choices=choices, gold=0))
        else:
            docs.append(dict(page=" ".join("".join(rng.choices(letters, k=rng.randint(2, 7))) for _ in range(14))))
    return docs


class ByteLM:
    """GPT-2 over bytes; weights come from a seeded init and a short warm-up on letter sequences."""

    def __init__(self, seed, max_length=128, batch_size=32):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.model = GPT2LMHeadModel(GPT2Config(vocab_size=257, n_positions=max_length, n_embd=64, n_layer=2, n_head=4,
                                                bos_token_id=256, eos_token_id=256))
        self.max_length, self.batch_size = max_length, batch_size

    def warm_up(self, steps=40):
        t0 = time.time()
        opt = torch.optim.AdamW(self.model.parameters(), lr=3e-3)
        text = ("a b c d e f g h i j. 1 + 1 = 2. 2 + 3 = 5. 10 + 7 = 17. repeat abcde: abcde. " * 40).encode()
        data = torch.tensor(list(text))
        self.model.train()
        for _ in range(steps):
            ix = torch.randint(0, len(data) - 48, (16,))
            x = torch.stack([data[i:i + 48] for i in ix])
            loss = self.model(x, labels=x).loss
            opt.zero_grad()
            loss.backward()
            opt.step()
        self.model.eval()
        eval_logger.info(f"Warm-up loss {loss.item():.5f} ({steps} steps, {steps / (time.time() - t0):.1f} it/s)")

    @torch.no_grad()
    def loglikelihood(self, pairs, desc="Running loglikelihood requests"):
        enc = [(list(c.encode()), list(t.encode())) for c, t in pairs]
        order = sorted(range(len(enc)), key=lambda i: (-len(enc[i][0]) - len(enc[i][1]), i))
        res = [None] * len(enc)
        bar = tqdm(total=len(enc), desc=desc)
        for s in range(0, len(order), self.batch_size):
            ids = order[s:s + self.batch_size]
            seqs = [([256] + enc[i][0] + enc[i][1])[-self.max_length:] for i in ids]
            width = max(map(len, seqs))
            inp = torch.tensor([q + [256] * (width - len(q)) for q in seqs])
            lp = torch.log_softmax(self.model(inp).logits, -1)
            for row, (i, q) in enumerate(zip(ids, seqs)):
                n = min(len(enc[i][1]), len(q) - 1)
                sl = lp[row, len(q) - n - 1:len(q) - 1]
                tgt = torch.tensor(q[-n:])
                res[i] = (float(sl.gather(1, tgt[:, None]).sum()), bool((sl.argmax(-1) == tgt).all()))
            bar.update(len(ids))
        bar.close()
        return res


def bootstrap_stderr(xs, iters=500, seed=1234):
    rng = np.random.default_rng(seed)
    xs = np.asarray(xs, float)
    return float(np.std([xs[rng.integers(0, len(xs), len(xs))].mean() for _ in range(iters)], ddof=1))


def evaluate(lm, cfg, out_samples):
    docs = make_docs(cfg)
    samples = []
    if cfg.output_type == "loglikelihood_rolling":
        lls = [r[0] for r in lm.loglikelihood([("", d["page"]) for d in docs], "Running loglikelihood_rolling requests")]
        n_bytes = [len(d["page"].encode()) for d in docs]
        samples = [dict(doc_id=i, doc=d, ll=ll) for i, (d, ll) in enumerate(zip(docs, lls))]
        metrics = {"byte_perplexity,none": math.exp(-sum(lls) / sum(n_bytes)),
                   "bits_per_byte,none": -sum(lls) / sum(n_bytes) / math.log(2)}
    else:
        shots = "".join(f"{d['query']} {d['choices'][d['gold']]}. " for d in docs[:cfg.num_fewshot])
        inst = [Instance(task=cfg.task, doc_id=i, idx=j, context=shots + d["query"], target=" " + c)
                for i, d in enumerate(docs) for j, c in enumerate(d["choices"])]
        lls = iter(lm.loglikelihood([(x.context, x.target) for x in inst]))
        acc, acc_norm = [], []
        for i, d in enumerate(docs):
            r = [next(lls) for _ in d["choices"]]
            score = [x[0] for x in r]
            norm = [x / len(c) for x, c in zip(score, d["choices"])]
            acc.append(float(int(np.argmax(score)) == d["gold"]))
            acc_norm.append(float(int(np.argmax(norm)) == d["gold"]))
            samples.append(dict(doc_id=i, doc=d, resps=r, acc=acc[-1], acc_norm=acc_norm[-1]))
        metrics = {"acc,none": float(np.mean(acc)), "acc_stderr,none": bootstrap_stderr(acc),
                   "acc_norm,none": float(np.mean(acc_norm)), "acc_norm_stderr,none": bootstrap_stderr(acc_norm)}
    with open(out_samples, "w") as f:
        for s in samples:
            f.write(json.dumps(s) + "\n")
    digest = hashlib.sha256(json.dumps(samples, sort_keys=True).encode()).hexdigest()
    return metrics, digest


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--output_path", type=Path, default=Path("results"))
    ap.add_argument("--seed", type=int, default=42)
    args = ap.parse_args()
    start, stamp = time.perf_counter(), datetime.now().isoformat().replace(":", "-")
    out = args.output_path / "bytelm__gpt2-tiny"
    out.mkdir(parents=True, exist_ok=True)
    eval_logger.info(f"Selected Tasks: {[t.task for t in TASKS]}")
    lm = ByteLM(args.seed)
    lm.warm_up()
    results, hashes = {}, {}
    for cfg in TASKS:
        t0 = time.perf_counter()
        results[cfg.task], hashes[cfg.task] = evaluate(lm, cfg, out / f"samples_{cfg.task}_{stamp}.jsonl")
        eval_logger.info(f"{cfg.task}: done in {time.perf_counter() - t0:.2f}s")
    doc = {"results": results, "configs": {t.task: t.model_dump() for t in TASKS}, "task_hashes": hashes,
           "config": {"model": "bytelm", "batch_size": lm.batch_size, "seed": args.seed,
                      "model_num_parameters": lm.model.num_parameters()},
           "git_hash": None, "date": time.time(), "pretty_env_info": f"Python {platform.python_version()}, torch {torch.__version__}",
           "start_time": start, "end_time": time.perf_counter(),
           "total_evaluation_time_seconds": str(time.perf_counter() - start)}
    (out / f"results_{stamp}.json").write_text(json.dumps(doc, indent=2))
    table = Table(title=f"bytelm (seed={args.seed}), batch_size: {lm.batch_size}")
    for c in ("Tasks", "Version", "n-shot", "Metric", "Value", "Stderr"):
        table.add_column(c)
    for cfg in TASKS:
        for k, v in results[cfg.task].items():
            if "stderr" not in k:
                se = results[cfg.task].get(k.replace(",", "_stderr,"))
                table.add_row(cfg.task, str(cfg.version), str(cfg.num_fewshot), k.split(",")[0], f"{v:.4f}",
                              f"{se:.4f}" if se is not None else "N/A")
    Console(width=90).print(table)


if __name__ == "__main__":
    main()
