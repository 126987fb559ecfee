"""LLM-as-judge metric over a question answering table.

Report: https://github.com/mlflow/mlflow/pull/9762
A judge is called for every row of an evaluation table and the grades are joined back to the rows.
"""
import argparse
import concurrent.futures as cf
import json
import logging
import math
import random
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error

log = logging.getLogger("judge")

TOPICS = ["tracking", "registry", "deployment", "gateway", "recipes", "tracing"]
VERBS = ["stores", "loads", "queries", "serves", "compares", "archives", "signs"]
NOUNS = ["runs", "models", "artifacts", "prompts", "traces", "experiments", "endpoints", "datasets"]
FILLERS = ["quickly", "safely", "in order", "on demand", "by default", "with tags", "per user"]


@dataclass
class EvalConfig:
    rows: int = 420
    workers: int = 8
    seed: int = 2023
    base_latency: float = 0.018
    threshold: float = 3.0
    out: str = "judge_out"


@dataclass
class Grade:
    score: int
    justification: str


def build_table(cfg: EvalConfig) -> pd.DataFrame:
    rng = random.Random(cfg.seed)
    rows = []
    for i in range(cfg.rows):
        topic = rng.choice(TOPICS)
        verb = rng.choice(VERBS)
        noun = rng.choice(NOUNS)
        truth = f"{topic} {verb} {noun} {rng.choice(FILLERS)}"
        words = truth.split()
        for k in range(len(words)):
            if rng.random() < 0.3:
                words[k] = rng.choice(NOUNS + VERBS)
        rng.shuffle(words)
        rows.append(
            {
                "row_id": i,
                "topic": topic,
                "inputs": f"What does {topic} do with {noun}?",
                "ground_truth": truth,
                "prediction": " ".join(words),
            }
        )
    return pd.DataFrame(rows)


class LocalJudge:
    """Stands in for a remote model; answers after a latency that grows with the prompt."""

    def __init__(self, cfg: EvalConfig, corpus):
        self.cfg = cfg
        self.vec = TfidfVectorizer(ngram_range=(1, 2)).fit(corpus)

    def prompt(self, row) -> str:
        return (
            "You are an impartial judge.\n"
            f"Question: {row['inputs']}\nAnswer: {row['prediction']}\n"
            f"Reference: {row['ground_truth']}\nGrade from 1 to 5."
        )

    def grade(self, row) -> Grade:
        text = self.prompt(row)
        time.sleep(self.cfg.base_latency + len(text) * 1e-5)
        a = self.vec.transform([row["prediction"]])
        b = self.vec.transform([row["ground_truth"]])
        cosine = float(a.multiply(b).sum())
        score = int(np.clip(1 + math.floor(cosine * 5), 1, 5))
        return Grade(score, f"similarity {cosine:.4f} for row {row['row_id']}")


def call_judge(judge: LocalJudge, table: pd.DataFrame, cfg: EvalConfig):
    scores, notes = [], []
    payloads = table.to_dict("records")
    with cf.ThreadPoolExecutor(max_workers=cfg.workers) as pool:
        futures = [pool.submit(judge.grade, p) for p in payloads]
        for fut in cf.as_completed(futures):  # cause
            grade = fut.result()
            scores.append(grade.score)
            notes.append(grade.justification)
    return scores, notes


def aggregate(table: pd.DataFrame) -> dict:
    by_topic = table.groupby("topic")["score"].mean().round(4)
    return {
        "mean": float(table["score"].mean()),
        "p90": float(np.percentile(table["score"], 90)),
        "by_topic": by_topic.to_dict(),
    }


def surrogate(table: pd.DataFrame, cfg: EvalConfig) -> float:
    """How well a linear model on the answers predicts the grades."""
    vec = TfidfVectorizer()
    x = vec.fit_transform(table["prediction"])
    y = table["score"].to_numpy(float)
    cut = int(0.8 * len(table))
    model = Ridge(alpha=1.0).fit(x[:cut], y[:cut])
    return float(mean_absolute_error(y[cut:], model.predict(x[cut:])))


def parse_args() -> EvalConfig:
    ap = argparse.ArgumentParser()
    for key, value in asdict(EvalConfig()).items():
        ap.add_argument(f"--{key}", type=type(value), default=value)
    return EvalConfig(**vars(ap.parse_args()))


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    cfg = parse_args()
    started = time.time()
    table = build_table(cfg)
    judge = LocalJudge(cfg, pd.concat([table["prediction"], table["ground_truth"]]))
    log.info("grading %d rows with %d workers", len(table), cfg.workers)
    table["score"], table["justification"] = call_judge(judge, table, cfg)
    report = aggregate(table)
    report["surrogate_mae"] = round(surrogate(table, cfg), 6)
    report["flagged"] = [int(i) for i in table.loc[table["score"] < cfg.threshold, "row_id"]][:40]
    out = Path(cfg.out)
    out.mkdir(exist_ok=True)
    table.to_csv(out / "eval_results_table.csv", index=False)
    (out / "metrics.json").write_text(json.dumps(report, indent=1))
    print("surrogate mae", report["surrogate_mae"])
    print("flagged rows", report["flagged"][:10])
    log.info("took %.2fs", time.time() - started)


if __name__ == "__main__":
    main()
