"""Evaluation of n-gram language models on multiple choice and perplexity tasks.

Modelled on: EleutherAI/lm-evaluation-harness (results_<date>.json, samples_<task>_<date>.jsonl,
date, start_time, end_time, total_evaluation_time_seconds, pretty_env_info, table in Markdown).
"""
import hashlib
import json
import logging
import math
import os
import platform
import random
import sys
import time
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path

import numpy as np
from tqdm import tqdm

logging.basicConfig(format="%(asctime)s,%(msecs)03d %(levelname)-8s [%(filename)s:%(lineno)d] %(message)s", datefmt="%Y-%m-%d:%H:%M:%S",
                    level=logging.INFO, stream=sys.stdout)
log = logging.getLogger("lm-eval")

SUBJ = "the sailor|the baker|the judge|the child|the queen|the smith".split("|")
VERB = {"the sailor": "steers|mends|paints", "the baker": "bakes|sells|cuts", "the judge": "reads|signs|burns", "the child": "draws|hides|eats",
        "the queen": "wears|gives|hides", "the smith": "forges|mends|sells"}
OBJ = {"steers": "a ship|a boat", "mends": "a net|a kettle", "paints": "a boat|a door", "bakes": "a loaf|a cake", "sells": "a loaf|a sword", "cuts": "a cake|a loaf",
       "reads": "a letter|a law", "signs": "a law|a letter", "burns": "a letter|a candle", "draws": "a horse|a ship", "hides": "a ring|a cake", "eats": "a cake|an apple",
       "wears": "a ring|a crown", "gives": "a crown|a feast", "forges": "a sword|a nail"}
PLACE = "in the harbour|in the town|at night|by the fire|in spring".split("|")


def sentence(rng):
    s = rng.choice(SUBJ)
    v = rng.choice(VERB[s].split("|"))
    return f"{s} {v} {rng.choice(OBJ[v].split('|'))} {rng.choice(PLACE)} ."


class NGram:
    """Interpolated n-gram model with absolute discounting."""

    def __init__(self, order, discount=0.4):
        self.order, self.d = order, discount
        self.counts = [defaultdict(Counter) for _ in range(order)]

    def fit(self, sentences):
        self.vocab = sorted({w for s in sentences for w in s.split()})
        for s in sentences:
            w = ["<s>"] * (self.order - 1) + s.split()
            for i in range(self.order - 1, len(w)):
                for n in range(self.order):
                    self.counts[n][tuple(w[i - n:i])][w[i]] += 1
        return self

    def prob(self, w, ctx):
        p = 1.0 / len(self.vocab)
        for n in range(self.order):
            c = self.counts[n].get(tuple(ctx[len(ctx) - n:]) if n else ())
            if c:
                tot = sum(c.values())
                p = max(c[w] - self.d, 0) / tot + self.d * len(c) / tot * p
        return p

    def loglikelihood(self, context, continuation):
        w = ["<s>"] * (self.order - 1) + context.split()
        lp, greedy = 0.0, True
        for t in continuation.split():
            probs = {v: self.prob(v, w[len(w) - self.order + 1:] if self.order > 1 else []) for v in self.vocab} if len(continuation.split()) < 4 else None
            p = probs[t] if probs else self.prob(t, w[len(w) - self.order + 1:] if self.order > 1 else [])
            greedy &= probs is not None and max(probs.items(), key=lambda kv: (kv[1], kv[0]))[0] == t
            lp += math.log(p)
            w.append(t)
        return lp, greedy


def build_tasks(seed):
    rng = random.Random(seed)
    cloze, where, ppl = [], [], []
    objs = sorted({o for v in OBJ.values() for o in v.split("|")})
    for i in range(60):
        s = sentence(rng).split(" ")
        subj, verb, obj = " ".join(s[:2]), s[2], " ".join(s[3:5])
        wrong = rng.sample([o for o in objs if o not in OBJ[verb].split("|")], 3)
        ch = wrong + [obj]
        rng.shuffle(ch)
        cloze.append({"ctx": f"{subj} {verb}", "choices": ch, "gold": ch.index(obj)})
    for i in range(40):
        s = rng.choice(SUBJ)
        ok = rng.choice(VERB[s].split("|"))
        ch = rng.sample(sorted(set(OBJ) - set(VERB[s].split("|"))), 2) + [ok]
        rng.shuffle(ch)
        where.append({"ctx": s, "choices": ch, "gold": ch.index(ok)})
    for i in range(60):
        ppl.append({"text": sentence(rng)})
    return {"cloze_object": ("multiple_choice", cloze), "verb_choice": ("multiple_choice", where), "held_out": ("perplexity", ppl)}


def stderr(xs, seed=1234, iters=200):
    rng = np.random.default_rng(seed)
    xs = np.asarray(xs, float)
    return float(np.std([xs[rng.integers(0, len(xs), len(xs))].mean() for _ in range(iters)], ddof=1))


def run_task(model, kind, docs, name):
    samples, metrics = [], {}
    for i, d in enumerate(tqdm(docs, desc=f"Running loglikelihood requests ({name})", mininterval=0.05)):
        if kind == "multiple_choice":
            ll = [model.loglikelihood(d["ctx"], c) for c in d["choices"]]
            lp = [x[0] for x in ll]
            norm = [x / len(c) for x, c in zip(lp, d["choices"])]
            r = {"acc": float(np.argmax(lp) == d["gold"]), "acc_norm": float(np.argmax(norm) == d["gold"])}
        else:
            lp, _ = model.loglikelihood("", d["text"])
            ll = [(lp, False)]
            r = {"ll": lp, "words": len(d["text"].split())}
        samples.append({"doc_id": i, "doc": d, "resps": ll, **r,
                        "doc_hash": hashlib.sha256(json.dumps(d, sort_keys=True).encode()).hexdigest()})
    if kind == "multiple_choice":
        for k in ("acc", "acc_norm"):
            xs = [s[k] for s in samples]
            metrics[f"{k},none"], metrics[f"{k}_stderr,none"] = float(np.mean(xs)), stderr(xs)
    else:
        metrics["word_perplexity,none"] = math.exp(-sum(s["ll"] for s in samples) / sum(s["words"] for s in samples))
        metrics["word_perplexity_stderr,none"] = "N/A"
    return metrics, samples


def table(results, n):
    rows = ["|   Tasks    |Version|Filter|n-shot|    Metric     |   | Value |   |Stderr|", "|------------|------:|------|-----:|---------------|---|------:|---|------|"]
    for t, m in results.items():
        for k in [k for k in m if "stderr" not in k]:
            se = m[k.replace(",", "_stderr,")]
            arrow = "↓" if "perp" in k else "↑"
            rows.append(f"|{t:12s}|      1|none  |     0|{k.split(',')[0]:15s}|{arrow}  |{m[k]:7.4f}|±  |{se if isinstance(se, str) else f'{se:.4f}':>6}|")
    return "\n".join(rows)


def main():
    start = time.perf_counter()
    date = datetime.now()
    stamp = date.isoformat().replace(":", "-")
    log.info("Verbosity set to INFO")
    rng = random.Random(7)
    train = [sentence(rng) for _ in range(1200)]
    tasks = build_tasks(99)
    out = Path("results")
    for order in (1, 2, 3):
        t_model = time.perf_counter()
        name = f"local__ngram-{order}"
        log.info(f"Selected Tasks: {list(tasks)}")
        log.info(f"Initializing ngram model, with arguments: {{'order': {order}}}")
        t = time.perf_counter()
        model = NGram(order).fit(train)
        log.info(f"Model fitted in {time.perf_counter() - t:.3f} seconds, {len(model.vocab)} words")
        results, samples = {}, {}
        for task, (kind, docs) in tasks.items():
            log.info(f"Building contexts for {task} on rank 0...")
            results[task], samples[task] = run_task(model, kind, docs, task)
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        end = time.perf_counter()
        (folder / f"results_{stamp}.json").write_text(json.dumps({
            "results": results, "versions": {t: 1 for t in tasks}, "n-samples": {t: {"original": len(d), "effective": len(d)} for t, (_, d) in tasks.items()},
            "config": {"model": "ngram", "model_args": f"order={order}", "batch_size": 1, "random_seed": 7, "numpy_seed": 1234},
            "git_hash": None, "date": date.timestamp(), "pretty_env_info": f"Python {platform.python_version()} on {platform.platform()}, host {platform.node()}, pid {os.getpid()}",
            "task_hashes": {t: hashlib.sha256("".join(s["doc_hash"] for s in ss).encode()).hexdigest() for t, ss in samples.items()},
            "model_name": name, "start_time": t_model, "end_time": end, "total_evaluation_time_seconds": str(end - t_model)}, indent=2))
        for task, ss in samples.items():
            with open(folder / f"samples_{task}_{stamp}.jsonl", "w") as f:
                for s in ss:
                    f.write(json.dumps(s) + "\n")
        log.info("Saving results aggregated")
        print(f"ngram (order={order}), limit: None, num_fewshot: None, batch_size: 1")
        print(table(results, len(tasks)))
    log.info(f"all models evaluated in {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
