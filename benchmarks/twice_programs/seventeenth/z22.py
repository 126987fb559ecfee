"""Leaderboard from pairwise judge verdicts: Bradley-Terry scores with intervals.

Modelled on https://github.com/lmarena/arena-hard-auto/issues/8

Reads (here: generates) one judgement file per model against a fixed baseline,
turns verdicts of two games per question into battles, fits Bradley-Terry
ratings by logistic regression, adds percentile intervals over resampled
battles and writes the leaderboard.
"""
import argparse
import json
import logging
import math
import random
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

log = logging.getLogger("show_result")

BASELINE = "baseline-0314"
MODELS = {"alder-70b": 0.9, "birch-34b": 0.25, "cedar-13b": -0.5, "date-8x7b": 0.05,
          "elm-7b": -1.2, "fir-72b": 0.7, "ginkgo-9b": -0.7, "hazel-2b": -2.1}
VERDICTS = ["A>>B", "A>B", "A=B", "B>A", "B>>A"]


def write_judgements(folder, questions, seed):
    """One JSONL per model; two games per question with swapped positions."""
    rng = random.Random(seed)
    hardness = [rng.gauss(0.0, 0.8) for _ in range(questions)]
    for model, strength in MODELS.items():
        with open(folder / f"{model}.jsonl", "w") as fh:
            for q in range(questions):
                games = []
                for swap in (False, True):
                    edge = strength + 0.5 * hardness[q] + rng.gauss(0.0, 0.9)
                    edge += 0.15 if swap else -0.15
                    level = sum(edge > cut for cut in (-1.4, -0.35, 0.35, 1.4))
                    label = VERDICTS[level] if not swap else VERDICTS[4 - level]
                    if rng.random() < 0.01:
                        label = None
                    games.append({"score": label})
                fh.write(json.dumps({"question_id": f"q{q:04d}", "model": model,
                                     "judge": "judge-1106", "games": games,
                                     "tokens": int(rng.lognormvariate(6.0, 0.4))}) + "\n")
    return len(MODELS) * questions


def outcome(label, swapped):
    """(winner, weight) from the point of view of the baseline being model_a."""
    level = VERDICTS.index(label)
    if swapped:
        level = 4 - level
    winner = {0: "model_a", 1: "model_a", 2: "tie", 3: "model_b", 4: "model_b"}[level]
    return winner, (3 if level in (0, 4) else 1)


def load_battles(folder):
    rows, tokens, dropped = [], defaultdict(list), 0
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            item = json.loads(line)
            tokens[item["model"]].append(item["tokens"])
            for k, game in enumerate(item["games"]):
                if game["score"] is None:
                    dropped += 1
                    continue
                winner, weight = outcome(game["score"], swapped=(k == 1))
                row = {"question_id": item["question_id"], "model_a": BASELINE,
                       "model_b": item["model"], "winner": winner}
                rows.extend([row] * weight)
    if dropped:
        log.warning("%d games without a verdict were dropped", dropped)
    return pd.DataFrame(rows), {m: float(np.mean(t)) for m, t in tokens.items()}


def mle_elo(df, scale=400, base=10, init=1000):
    models = pd.concat([df["model_a"], df["model_b"]]).unique()
    models = pd.Series(np.arange(len(models)), index=models)
    df = pd.concat([df, df], ignore_index=True)
    n, p = len(df), len(models)
    x = np.zeros((n, p))
    x[np.arange(n), models[df["model_a"]]] = math.log(base)
    x[np.arange(n), models[df["model_b"]]] = -math.log(base)
    y = np.zeros(n)
    y[df["winner"] == "model_a"] = 1.0
    tie = (df["winner"] == "tie").to_numpy(copy=True)
    tie[: n // 2] = False
    y[tie] = 1.0
    lr = LogisticRegression(fit_intercept=False, C=1e6, tol=1e-8, max_iter=200)
    lr.fit(x, y)
    ratings = scale * lr.coef_[0] + init
    if BASELINE in models.index:
        ratings += init - ratings[models[BASELINE]]
    return pd.Series(ratings, index=models.index).sort_values(ascending=False)


def bootstrap(battles, fit, rounds):
    rows = []
    for i in range(rounds):
        sample = battles.sample(frac=1.0, replace=True)  # cause
        rows.append(fit(sample))
        if (i + 1) % 10 == 0:
            log.info("resampling round %d/%d", i + 1, rounds)
    frame = pd.DataFrame(rows)
    return frame[frame.median().sort_values(ascending=False).index]


def win_rate(elo, baseline=BASELINE, scale=400, base=10):
    rate = 1.0 / (1.0 + base ** ((elo[baseline] - elo) / scale))
    return (100.0 * rate).round(4)


def leaderboard(battles, tokens, rounds):
    point = mle_elo(battles)
    boot = bootstrap(battles, mle_elo, rounds)
    rates = boot.apply(win_rate, axis=1)
    board = pd.DataFrame({"model": point.index, "rating": point.to_numpy(),
                          "score": win_rate(point).to_numpy()})
    board["lower"] = [np.percentile(rates[m], 2.5) for m in board["model"]]
    board["upper"] = [np.percentile(rates[m], 97.5) for m in board["model"]]
    board["ci_low"] = board["lower"] - board["score"]
    board["ci_high"] = board["upper"] - board["score"]
    board["avg_tokens"] = [round(tokens.get(m, 0.0)) for m in board["model"]]
    return board, boot


def overlap_groups(board):
    """Consecutive models whose intervals overlap share a rank."""
    ranks, rank, low = [], 0, math.inf
    for row in board.itertuples():
        if row.upper < low:
            rank += 1
            low = row.lower
        ranks.append(rank)
    return ranks


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-rounds", type=int, default=40)
    parser.add_argument("--questions", type=int, default=250)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--output", type=Path, default=Path("arena"))
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, stream=sys.stdout,
                        format="%(asctime)s - %(levelname)s - %(message)s")
    random.seed(args.seed)
    folder = args.output / "judgement"
    folder.mkdir(parents=True, exist_ok=True)

    began = time.time()
    total = write_judgements(folder, args.questions, args.seed)
    log.info("%d judgements in %s", total, folder.resolve())
    battles, tokens = load_battles(folder)
    log.info("%d weighted battles", len(battles))
    board, boot = leaderboard(battles, tokens, args.num_rounds)
    board["rank"] = overlap_groups(board)

    board.to_csv(args.output / "leaderboard.csv", index=False, float_format="%.5f")
    boot.describe().to_json(args.output / "resampled.json", indent=1, double_precision=6)
    for row in board.itertuples():
        print(f"{row.rank:2d} {row.model:16s} | score: {row.score:7.3f} | "
              f"95% CI: ({row.ci_low:+.3f}, {row.ci_high:+.3f}) | tokens: {row.avg_tokens}")
    log.info("done in %.1f s", time.time() - began)


if __name__ == "__main__":
    main()
