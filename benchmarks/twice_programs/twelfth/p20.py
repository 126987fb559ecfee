"""Scores generated answers with several concurrent judges and aggregates the evaluation.

Modelled on https://github.com/mlflow/mlflow/pull/9762
The scores of an evaluation metric were attributed to the wrong rows because futures were read as they completed.
"""
import argparse
import csv
import json
import logging
import re
import statistics
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

log = logging.getLogger("judge")


@dataclass
class Config:
    n_rows: int = 48
    workers: int = 6
    latency_ms: float = 4.0
    seed: int = 77
    out: str = "evaluation"


TOPICS = {
    "refund": ["refund", "money", "return", "days", "receipt", "credit"],
    "delivery": ["parcel", "courier", "address", "late", "track", "depot"],
    "account": ["password", "login", "email", "reset", "profile", "verify"],
}
FILLER = ["please", "the", "we", "will", "your", "soon", "team", "thank", "you"]


def make_rows(cfg):
    """Questions, reference answers and model answers of varying quality."""
    rng = np.random.default_rng(cfg.seed)
    names = list(TOPICS)
    rows = []
    for i in range(cfg.n_rows):
        topic = names[rng.integers(len(names))]
        ref = list(rng.choice(TOPICS[topic], 4, replace=False)) + list(rng.choice(FILLER, 4))
        quality = rng.random()
        ans = [w if rng.random() < quality else str(rng.choice(FILLER)) for w in ref]
        ans += [str(w) for w in rng.choice(FILLER, rng.integers(0, 20))]
        rows.append({
            "row": i,
            "topic": topic,
            "question": f"question {i} about {topic}",
            "reference": " ".join(map(str, ref)),
            "answer": " ".join(ans),
        })
    return rows


# ----------------------------------------------------------------- metrics
def tokens(text):
    return re.findall(r"[a-z]+", text.lower())


def token_f1(answer, reference):
    a, r = Counter(tokens(answer)), Counter(tokens(reference))
    common = sum((a & r).values())
    if not common:
        return 0.0
    p, q = common / sum(a.values()), common / sum(r.values())
    return 2 * p * q / (p + q)


def brevity(answer, reference):
    return min(1.0, len(tokens(reference)) / max(1, len(tokens(answer))))


class Judge:
    """Stands in for a remote grading model: answers take a while to grade."""

    def __init__(self, latency_ms):
        self.latency_ms = latency_ms

    def grade(self, row):
        time.sleep(self.latency_ms / 1000)
        f1 = token_f1(row["answer"], row["reference"])
        short = brevity(row["answer"], row["reference"])
        score = 1 + round(4 * (0.8 * f1 + 0.2 * short), 3)
        reason = "covers the reference" if f1 > 0.6 else "misses key points"
        return {"score": score, "reason": reason}


def score_all(rows, judge, cfg):
    scores, reasons = [], []
    with ThreadPoolExecutor(max_workers=cfg.workers) as pool:
        futures = [pool.submit(judge.grade, row) for row in rows]
        for future in as_completed(futures):  # cause
            verdict = future.result()
            scores.append(verdict["score"])
            reasons.append(verdict["reason"])
    return scores, reasons


def aggregate(scores):
    q = statistics.quantiles(scores, n=10)
    return {
        "mean": round(statistics.fmean(sorted(scores)), 5),
        "p90": round(q[8], 5),
        "variance": round(statistics.pvariance(sorted(scores)), 5),
    }


def by_topic(frame):
    table = frame.groupby("topic")["score"].agg(["mean", "median", "count"])
    return table.round(4)


def agreement(frame):
    """Correlation of the judge with plain token overlap."""
    overlap = [token_f1(a, r) for a, r in zip(frame["answer"], frame["reference"])]
    return float(np.corrcoef(overlap, frame["score"])[0, 1])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--workers", type=int, default=Config.workers)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    cfg = Config(workers=args.workers)
    rows = make_rows(cfg)
    out = Path(cfg.out)
    out.mkdir(exist_ok=True)

    t0 = time.time()
    scores, reasons = score_all(rows, Judge(cfg.latency_ms), cfg)
    log.info("graded %d rows in %.2fs with %d workers", len(rows), time.time() - t0, cfg.workers)

    frame = pd.DataFrame(rows)
    frame["score"] = scores
    frame["reason"] = reasons
    summary = aggregate(scores)
    print("overall", " ".join(f"{k}={v}" for k, v in summary.items()))
    print(by_topic(frame).to_string())
    print(f"correlation with token overlap {agreement(frame):.5f}")
    worst = frame.sort_values(["score", "row"]).head(6)
    print("answers to review:")
    for r in worst.itertuples():
        print(f"  {r.row:3d} {r.topic:<9} {r.score:.3f} {r.reason}")

    frame.to_csv(out / "eval_results_table.csv", index=False, quoting=csv.QUOTE_MINIMAL)
    (out / "metrics.json").write_text(json.dumps(
        {**summary, "by_topic": by_topic(frame)["mean"].to_dict()}, indent=1))


if __name__ == "__main__":
    main()
