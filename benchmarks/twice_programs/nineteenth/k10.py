"""Build a preference dataset: several (local) generators answer a set of
instructions, a judge rates the answers, the pairs are exported for DPO.

Modelled on: https://github.com/argilla-io/distilabel/pull/173
"""
import csv
import json
import logging
import sys
from collections import Counter
from pathlib import Path

from k10_pkg.llm import LocalLLM, LLMPool
from k10_pkg.judge import UltraJudge
from k10_pkg.pipeline import Pipeline
from k10_pkg.prompts import make_instructions

logging.basicConfig(level=logging.INFO, stream=sys.stderr,
                    format="[%(asctime)s] %(levelname)s %(message)s")
logger = logging.getLogger("preferences")


def to_pairs(rows):
    """Best answer against worst answer, where they differ clearly."""
    for row in rows:
        order = sorted(range(len(row["ratings"])), key=lambda k: (-row["ratings"][k], k))
        best, worst = order[0], order[-1]
        if row["ratings"][best] - row["ratings"][worst] < 0.15:
            continue
        yield {
            "prompt": row["input"],
            "chosen": row["generations"][best],
            "chosen_model": row["models"][best],
            "rejected": row["generations"][worst],
            "rejected_model": row["models"][worst],
        }


def main():
    out = Path("dataset")
    out.mkdir(exist_ok=True)
    instructions = make_instructions(48, seed=21)
    pool = LLMPool([
        LocalLLM("small", order=1, seed=1),
        LocalLLM("medium", order=2, seed=2),
        LocalLLM("large", order=3, seed=3),
    ])
    pipeline = Pipeline(generator=pool, labeller=UltraJudge())
    logger.info("generating for %d instructions", len(instructions))
    rows = pipeline.generate(instructions, num_generations=3, batch_size=12)

    with open(out / "ratings.csv", "w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["id", "model", "rating"])
        for number, row in enumerate(rows):
            for model, rating in zip(row["models"], row["ratings"]):
                writer.writerow([number, model, f"{rating:.4f}"])
    pairs = list(to_pairs(rows))
    with open(out / "pairs.jsonl", "w") as handle:
        for pair in pairs:
            handle.write(json.dumps(pair) + "\n")

    wins = Counter(p["chosen_model"] for p in pairs)
    logger.info("wrote %d pairs", len(pairs))
    print("pairs:", len(pairs))
    for model in ("small", "medium", "large"):
        ratings = [r for row in rows for m, r in zip(row["models"], row["ratings"]) if m == model]
        print(f"{model:7s} mean rating {sum(ratings) / len(ratings):.4f}  chosen {wins[model]:3d}")


if __name__ == "__main__":
    main()
