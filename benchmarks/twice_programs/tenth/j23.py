"""Modelled on https://github.com/EvolvingLMMs-Lab/lmms-eval/issues/243

Evaluates a small retrieval-style answering model through an asynchronous request interface on synthetic question tasks.
"""
import argparse
import asyncio
import json
import logging
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

log = logging.getLogger("eval")

SUBJECTS = {
    "colour": ["red", "blue", "green", "yellow"],
    "count": ["one", "two", "three", "four"],
    "shape": ["circle", "square", "triangle", "star"],
    "place": ["kitchen", "street", "beach", "office"],
    "animal": ["cat", "dog", "horse", "bird"],
}


@dataclass(frozen=True)
class Doc:
    doc_id: int
    task: str
    question: str
    image: np.ndarray
    choices: tuple
    answer: str


@dataclass(frozen=True)
class Instance:
    index: int
    doc: Doc
    prompt: str
    max_new_tokens: int


@dataclass(frozen=True)
class EvalConfig:
    seed: int = 1234
    docs_per_task: int = 40
    image_dim: int = 96
    noise: float = 1.1
    num_processes: int = 4
    num_fewshot: int = 2
    refine_steps: int = 25


def build_tasks(cfg):
    rng = np.random.default_rng(cfg.seed)
    prototypes = {t: rng.normal(size=(len(c), cfg.image_dim)) for t, c in SUBJECTS.items()}
    docs = []
    for task, choices in SUBJECTS.items():
        for _ in range(cfg.docs_per_task):
            k = int(rng.integers(len(choices)))
            image = prototypes[task][k] + cfg.noise * rng.normal(size=cfg.image_dim) * rng.uniform(0.6, 3.4)
            docs.append(Doc(len(docs), task, f"Which {task} is shown in picture {len(docs)}?", image, tuple(choices), choices[k]))
    return docs, prototypes


def build_requests(docs, cfg):
    by_task = defaultdict(list)
    requests = []
    for doc in docs:
        shots = by_task[doc.task][: cfg.num_fewshot]
        context = "".join(f"Q: {d.question} A: {d.answer}\n" for d in shots)
        prompt = f"{context}Q: {doc.question} Options: {', '.join(doc.choices)}. A:"
        by_task[doc.task].append(doc)
        requests.append(Instance(len(requests), doc, prompt, 4 + len(doc.question) % 5))
    return requests


class LocalServer:
    """Stands in for the inference server: a pool of workers over one shared set of weights."""

    def __init__(self, prototypes, cfg):
        self.cfg = cfg
        self.prototypes = prototypes
        self.pool = ThreadPoolExecutor(max_workers=cfg.num_processes, thread_name_prefix="srv")
        rng = np.random.default_rng(cfg.seed + 1)
        self.mixer = np.linalg.qr(rng.normal(size=(cfg.image_dim, cfg.image_dim)))[0]

    def _generate(self, instance):
        x = instance.doc.image
        keys = self.prototypes[instance.doc.task]
        steps = self.cfg.refine_steps + 6 * instance.max_new_tokens
        h = x.copy()
        for _ in range(steps):
            z = self.mixer @ h
            h = 0.9 * (self.mixer.T @ z) + 0.1 * x
        logits = keys @ h
        logits = logits - logits.max()
        p = np.exp(0.1 * logits)
        p = p / p.sum()
        k = int(p.argmax())
        return {"text": f" {instance.doc.choices[k]}.", "confidence": float(p[k]), "prompt_tokens": len(instance.prompt.split())}

    async def complete(self, instance):
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.pool, self._generate, instance)

    def close(self):
        self.pool.shutdown()


class AsyncModel:
    def __init__(self, server, cfg):
        self.server = server
        self.limit = asyncio.Semaphore(2 * cfg.num_processes)

    async def _one(self, instance):
        async with self.limit:
            return await self.server.complete(instance)

    async def generate_until(self, requests):
        res = []
        tasks = [asyncio.create_task(self._one(r)) for r in requests]
        for finished in asyncio.as_completed(tasks):  # cause
            out = await finished  # cause
            res.append(out)
            if len(res) % 50 == 0:
                log.info("%d / %d responses", len(res), len(requests))
        return res


def parse_answer(text):
    return text.strip().rstrip(".").lower()


def score(requests, responses):
    samples = []
    for req, out in zip(requests, responses):
        pred = parse_answer(out["text"])
        samples.append(
            {
                "doc_id": req.doc.doc_id,
                "task": req.doc.task,
                "target": req.doc.answer,
                "prediction": pred,
                "in_options": pred in req.doc.choices,
                "confidence": round(out["confidence"], 6),
                "exact_match": float(pred == req.doc.answer),
            }
        )
    return samples


def aggregate(samples, seed):
    groups = defaultdict(list)
    for s in samples:
        groups[s["task"]].append(s["exact_match"])
    rng = np.random.default_rng(seed)
    table = {}
    for task in sorted(groups):
        v = np.asarray(groups[task])
        boots = rng.choice(v, size=(200, len(v))).mean(axis=1)
        table[task] = {"n": len(v), "exact_match": float(v.mean()), "stderr": float(boots.std())}
    return table


def expected_calibration_error(samples, bins=10):
    conf = np.array([s["confidence"] for s in samples])
    hit = np.array([s["exact_match"] for s in samples])
    idx = np.minimum((conf * bins).astype(int), bins - 1)
    total = 0.0
    for b in range(bins):
        m = idx == b
        if m.any():
            total += m.mean() * abs(conf[m].mean() - hit[m].mean())
    return float(total)


async def evaluate(requests, server, cfg):
    model = AsyncModel(server, cfg)
    return await model.generate_until(requests)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--num-processes", type=int, default=EvalConfig.num_processes)
    ap.add_argument("--limit", type=int, default=None)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    cfg = EvalConfig(num_processes=args.num_processes)
    docs, prototypes = build_tasks(cfg)
    requests = build_requests(docs, cfg)[: args.limit]
    log.info("%d requests over %d tasks", len(requests), len(SUBJECTS))
    server = LocalServer(prototypes, cfg)
    t0 = time.perf_counter()
    try:
        responses = asyncio.run(evaluate(requests, server, cfg))
    finally:
        server.close()
    log.info("generation took %.2fs", time.perf_counter() - t0)

    samples = score(requests, responses)
    table = aggregate(samples, cfg.seed)
    overall = float(np.mean([s["exact_match"] for s in samples]))
    ece = expected_calibration_error(samples)
    with open("samples.jsonl", "w") as fh:
        for s in samples:
            fh.write(json.dumps(s) + "\n")
    with open("results.json", "w") as fh:
        json.dump({"tasks": table, "overall": overall, "ece": ece}, fh, indent=2)
    print("| task | n | exact_match | stderr |")
    print("|---|---|---|---|")
    for task, row in table.items():
        print(f"| {task} | {row['n']} | {row['exact_match']:.4f} | {row['stderr']:.4f} |")
    print(f"overall {overall:.4f}  ece {ece:.4f}")


if __name__ == "__main__":
    main()
