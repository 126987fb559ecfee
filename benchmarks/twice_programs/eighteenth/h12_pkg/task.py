"""Solver, scorer and metrics."""
import math
from collections import defaultdict
from dataclasses import dataclass


@dataclass
class Task:
    name: str
    dataset: object
    fewshot: object

    def prompt(self):
        return "\n\n".join(f"Q: {s.input}\nA: {s.target}" for s in self.fewshot)


@dataclass
class EvalResult:
    samples: list
    metrics: dict


def score(answer, target):
    return float(answer.strip().lower() == target.strip().lower())


def metrics(samples):
    values = [s["score"] for s in samples]
    n = len(values)
    acc = sum(values) / n
    by_kind = defaultdict(list)
    for s in samples:
        by_kind[s["kind"]].append(s["score"])
    ppl = sum(s["perplexity"] for s in samples) / n
    out = {"perplexity": round(ppl, 4)}
    out |= {"accuracy": round(acc, 4), "stderr": round(math.sqrt(acc * (1 - acc) / (n - 1)), 4)}
    for kind in sorted(by_kind):
        out[f"accuracy[{kind}]"] = round(sum(by_kind[kind]) / len(by_kind[kind]), 4)
    return out


def run(task, model):
    prompt = task.prompt()
    samples = []
    for s in task.dataset:
        answer = model.generate(prompt, s.input, s.metadata["level"])
        samples.append({"id": s.id, "kind": s.metadata["kind"], "input": s.input, "target": s.target,
                        "answer": answer, "score": score(answer, s.target),
                        "perplexity": round(model.perplexity(s.input), 4)})
    return EvalResult(samples, metrics(samples))
