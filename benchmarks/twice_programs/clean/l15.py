"""Evaluate a (tiny, briefly pre-trained) causal LM on multiple-choice tasks; output layout after lm-eval-harness."""
import argparse
import hashlib
import json
import logging
import os
import platform
import time
from datetime import datetime
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import numpy as np
import torch
import transformers
from tqdm import tqdm
from transformers import GPT2Config, GPT2LMHeadModel

logging.basicConfig(format="%(asctime)s,%(msecs)03d %(levelname)-8s [%(filename)s:%(lineno)d] %(message)s",
                    datefmt="%Y-%m-%d:%H:%M:%S", level=logging.INFO)
eval_logger = logging.getLogger("lm-eval")

CHARS = "0123456789+=abcdefghijklmnopqrstuvwxyz ?.\n"
STOI = {c: i for i, c in enumerate(CHARS)}


def encode(s):
    return [STOI[c] for c in s]


def addition_doc(rng):
    a, b = (int(v) for v in rng.integers(0, 10, 2))
    wrong = [w for w in range(0, 19) if w != a + b]
    choices = [str(a + b)] + [str(w) for w in rng.choice(wrong, 3, replace=False)]
    order = rng.permutation(4)
    return {"query": f"{a}+{b}=", "choices": [choices[i] + "\n" for i in order], "gold": int(np.where(order == 0)[0][0])}


def succession_doc(rng):
    i = int(rng.integers(0, 20))
    letters = "abcdefghijklmnopqrstuvwxyz"
    gold = letters[i + 4]
    wrong = [c for c in letters if c != gold]
    choices = [gold] + [str(c) for c in rng.choice(list(wrong), 3, replace=False)]
    order = rng.permutation(4)
    return {"query": " ".join(letters[i:i + 4]) + " ", "choices": [choices[k] + "\n" for k in order],
            "gold": int(np.where(order == 0)[0][0])}


def copy_doc(rng):
    word = "".join(rng.choice(list("abcdefgh"), int(rng.integers(2, 4))))
    cands = [word]
    while len(cands) < 4:
        w = "".join(rng.permutation(list(word + "xyz"))[: len(word)])
        if w not in cands:
            cands.append(w)
    order = rng.permutation(4)
    return {"query": f"{word} is {word[0]}", "choices": [cands[k][1:] + ".\n" for k in order],
            "gold": int(np.where(order == 0)[0][0])}


TASKS = {"addition": addition_doc, "succession": succession_doc, "copy": copy_doc}


def pretrain(model, steps, seed):
    rng = np.random.default_rng(seed)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for step in range(steps):
        rows = []
        for _ in range(32):
            text = ""
            while len(text) < 40:
                d = list(TASKS.values())[int(rng.integers(3))](rng)
                text += d["query"] + d["choices"][d["gold"]]
            rows.append(encode(text[:40]))
        ids = torch.tensor(rows)
        loss = model(input_ids=ids, labels=ids).loss
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    return loss.item()


@torch.no_grad()
def loglikelihoods(model, requests, batch_size):
    """requests: list of (context, continuation). Returns (sum of log-probabilities, is_greedy) of each."""
    order = sorted(range(len(requests)), key=lambda i: -len(requests[i][0] + requests[i][1]))
    out = [None] * len(requests)
    pbar = tqdm(total=len(requests), desc="Running loglikelihood requests")
    for s in range(0, len(order), batch_size):
        idx = order[s:s + batch_size]
        toks = [encode(requests[i][0] + requests[i][1]) for i in idx]
        width = max(map(len, toks))
        ids = torch.tensor([t + [0] * (width - len(t)) for t in toks])
        mask = torch.tensor([[1] * len(t) + [0] * (width - len(t)) for t in toks])
        logp = torch.log_softmax(model(input_ids=ids, attention_mask=mask).logits.double(), -1)
        for row, i in enumerate(idx):
            n_ctx, n = len(requests[i][0]), len(toks[row])
            tgt = ids[row, n_ctx:n]
            lp = logp[row, n_ctx - 1:n - 1]
            out[i] = (float(lp.gather(1, tgt[:, None]).sum()), bool((lp.argmax(1) == tgt).all()))
        pbar.update(len(idx))
    pbar.close()
    return out


def bootstrap_stderr(xs, iters=500, seed=1234):
    rng = np.random.default_rng(seed)
    xs = np.asarray(xs, float)
    return float(np.std([xs[rng.integers(0, len(xs), len(xs))].mean() for _ in range(iters)], ddof=1))


def make_table(results):
    lines = ["|  Tasks   |Version| n-shot | Metric |Value |   |Stderr|", "|----------|------:|-------:|--------|-----:|---|-----:|"]
    for t, r in results.items():
        for m in ("acc", "acc_norm", "greedy"):
            lines.append(f"|{t:<10}|      1|       0|{m:<8}|{r[m]:.4f}|±  |{r[m + '_stderr']:.4f}|")
    return "\n".join(lines)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--tasks", default="addition,succession,copy")
    ap.add_argument("--limit", type=int, default=120)
    ap.add_argument("--batch_size", type=int, default=32)
    ap.add_argument("--pretrain_steps", type=int, default=60)
    ap.add_argument("--seed", type=int, default=1234)
    ap.add_argument("--output_path", type=Path, default=Path("results"))
    args = ap.parse_args()
    start = time.perf_counter()
    start_date = time.time()
    eval_logger.info(f"Setting torch manual seed to {args.seed}")
    torch.manual_seed(args.seed)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(CHARS), n_positions=64, n_embd=48, n_layer=2, n_head=4,
                                       bos_token_id=0, eos_token_id=0))
    loss = pretrain(model, args.pretrain_steps, args.seed)
    sha = hashlib.sha1(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()
    eval_logger.info(f"Model ready: {sum(p.numel() for p in model.parameters())} parameters, loss {loss:.5f}, sha {sha[:12]}")

    results, samples = {}, {}
    for name in args.tasks.split(","):
        rng = np.random.default_rng([args.seed, sorted(TASKS).index(name)])
        docs = [TASKS[name](rng) for _ in range(args.limit)]
        eval_logger.info(f"Building contexts for {name}...")
        lls = loglikelihoods(model, [(d["query"], c) for d in docs for c in d["choices"]], args.batch_size)
        rows = []
        for i, d in enumerate(docs):
            part = lls[4 * i:4 * i + 4]
            ll = np.array([p[0] for p in part])
            norm = ll / np.array([len(c) for c in d["choices"]])
            rows.append({"doc_id": i, "doc": d, "resps": [round(v, 10) for v in ll.tolist()],
                         "acc": int(ll.argmax() == d["gold"]), "acc_norm": int(norm.argmax() == d["gold"]),
                         "greedy": int(part[d["gold"]][1])})
        samples[name] = rows
        results[name] = {"alias": name}
        for m in ("acc", "acc_norm", "greedy"):
            vals = [r[m] for r in rows]
            results[name].update({m: float(np.mean(vals)), f"{m}_stderr": bootstrap_stderr(vals)})

    end = time.perf_counter()
    stamp = datetime.now().isoformat().replace(":", "-")
    out = args.output_path / "gpt2-tiny"
    out.mkdir(parents=True, exist_ok=True)
    blob = {"results": results, "config": {"model": "hf", "model_num_parameters": sum(p.numel() for p in model.parameters()),
                                           "model_sha": sha, "batch_size": args.batch_size, "limit": args.limit,
                                           "random_seed": args.seed},
            "date": start_date, "transformers_version": transformers.__version__,
            "pretty_env_info": f"PyTorch version: {torch.__version__}\nOS: {platform.platform()}\nPython: {platform.python_version()}",
            "start_time": start, "end_time": end, "total_evaluation_time_seconds": str(end - start)}
    (out / f"results_{stamp}.json").write_text(json.dumps(blob, indent=2))
    for name, rows in samples.items():
        with open(out / f"samples_{name}_{stamp}.jsonl", "w") as f:
            for r in rows:
                f.write(json.dumps(r) + "\n")
    eval_logger.info(f"Saved results to {out}")
    print(f"hf (pretrained=gpt2-tiny), limit: {args.limit}, num_fewshot: None, batch_size: {args.batch_size}")
    print(make_table(results))


if __name__ == "__main__":
    main()
