"""Multiple-choice benchmark on rendered chart images.

Modelled on https://github.com/open-compass/VLMEvalKit/pull/852
Builds prompts with shuffled choices for every question and scores a toy reader.
"""
import argparse
import base64
import json
import logging
import random
import string
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

log = logging.getLogger("moat")

COLORS = ["red", "green", "blue", "orange", "purple", "grey"]
TASKS = ["largest bar", "smallest bar", "count above half", "second largest bar"]


@dataclass
class BenchConfig:
    seed: int = 0
    questions: int = 160
    workers: int = 8
    image_scale: int = 4
    reader_noise: float = 0.9
    position_bias: float = 0.25
    out_dir: str = "moat_eval"


def make_questions(cfg):
    rng = np.random.default_rng(cfg.seed + 77)
    rows = []
    for i in range(cfg.questions):
        heights = rng.permutation(np.linspace(0.15, 0.95, len(COLORS))) + rng.normal(0, 0.02, len(COLORS))
        task = TASKS[i % len(TASKS)]
        ranked = np.argsort(-heights)
        if task == "count above half":
            answer = str(int((heights > 0.5).sum()))
            choices = sorted({answer} | {str(v) for v in range(1, 6)})[:5]
            if answer not in choices:
                choices[-1] = answer
        else:
            pick = {"largest bar": 0, "smallest bar": -1, "second largest bar": 1}[task]
            answer = COLORS[ranked[pick]]
            others = [c for c in COLORS if c != answer]
            choices = [answer] + others[:3]
        rows.append({
            "index": i,
            "task": task,
            "heights": heights,
            "width": int(rng.integers(60, 260)),
            "choices": choices,
            "answer": answer,
        })
    return rows


def render_chart(heights, width, scale):
    size = (120 * scale, width * scale)
    canvas = np.full(size, 255, dtype=np.uint8)
    edges = np.linspace(0, size[1], len(heights) + 1).astype(int)
    for k, h in enumerate(heights):
        top = size[0] - int(np.clip(h, 0, 1) * size[0])
        canvas[top:, edges[k] + 2: edges[k + 1] - 2] = 30 + 35 * k
    ramp = (np.add.outer(np.arange(size[0]), np.arange(size[1])) % 7).astype(np.uint8)
    return canvas - ramp


def encode_image(canvas):
    return base64.b64encode(zlib.compress(canvas.tobytes(), 6)).decode()


class ChartBenchmark:
    def __init__(self, cfg):
        self.cfg = cfg
        self.rng = random.Random(cfg.seed)
        self.questions = make_questions(cfg)

    def __len__(self):
        return len(self.questions)

    def build_prompt(self, question):
        image = encode_image(render_chart(question["heights"], question["width"], self.cfg.image_scale))
        choices = list(question["choices"])
        self.rng.shuffle(choices)  # cause
        letters = string.ascii_uppercase[: len(choices)]
        text = [f"Chart task: {question['task']}."]
        text += [f"{letter}. {choice}" for letter, choice in zip(letters, choices)]
        text.append("Answer with the letter only.")
        return {
            "index": question["index"],
            "task": question["task"],
            "image_bytes": len(image),
            "prompt": "\n".join(text),
            "choices": choices,
            "answer": letters[choices.index(question["answer"])],
            "heights": question["heights"],
        }

    def build_prompts(self):
        started = time.perf_counter()
        with ThreadPoolExecutor(max_workers=self.cfg.workers) as pool:
            prompts = list(pool.map(self.build_prompt, self.questions))  # cause
        log.info("built %d prompts in %.2fs", len(prompts), time.perf_counter() - started)
        return prompts


class ToyReader:
    """Scores each choice from a noisy reading of the bars and prefers early letters."""

    def __init__(self, cfg):
        self.cfg = cfg

    def answer(self, prompt):
        rng = np.random.default_rng(1000 + prompt["index"])
        seen = prompt["heights"] + rng.normal(0, 0.12 * self.cfg.reader_noise, size=len(COLORS))
        ranked = list(np.argsort(-seen))
        scores = []
        for position, choice in enumerate(prompt["choices"]):
            if choice in COLORS:
                rank = ranked.index(COLORS.index(choice))
                target = {"largest bar": 0, "smallest bar": len(COLORS) - 1}.get(prompt["task"], 1)
                score = -abs(rank - target)
            else:
                score = -abs(int(choice) - int((seen > 0.5).sum()))
            scores.append(score - self.cfg.position_bias * position + rng.normal(0, 0.3))
        return string.ascii_uppercase[int(np.argmax(scores))]


def evaluate(prompts, reader):
    records = []
    for prompt in prompts:
        predicted = reader.answer(prompt)
        records.append({
            "index": prompt["index"],
            "task": prompt["task"],
            "image_bytes": prompt["image_bytes"],
            "choices": "|".join(prompt["choices"]),
            "answer": prompt["answer"],
            "predicted": predicted,
            "hit": int(predicted == prompt["answer"]),
        })
    return pd.DataFrame(records)


def summarise(table):
    by_task = table.groupby("task")["hit"].mean().round(5)
    letters = table["predicted"].value_counts().sort_index()
    return {
        "overall": round(float(table["hit"].mean()), 5),
        "by_task": by_task.to_dict(),
        "answer_letters": table["answer"].value_counts().sort_index().to_dict(),
        "predicted_letters": letters.to_dict(),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=BenchConfig.seed)
    parser.add_argument("--workers", type=int, default=BenchConfig.workers)
    parser.add_argument("--questions", type=int, default=BenchConfig.questions)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    cfg = BenchConfig(seed=args.seed, workers=args.workers, questions=args.questions)

    benchmark = ChartBenchmark(cfg)
    log.info("%d questions", len(benchmark))
    prompts = benchmark.build_prompts()
    table = evaluate(prompts, ToyReader(cfg))
    summary = summarise(table)

    out = Path(cfg.out_dir)
    out.mkdir(exist_ok=True)
    table.to_csv(out / "predictions.csv", index=False)
    (out / "summary.json").write_text(json.dumps(summary, indent=2))
    with open(out / "prompts.jsonl", "w") as fh:
        for prompt in prompts:
            fh.write(json.dumps({"index": prompt["index"], "prompt": prompt["prompt"]}) + "\n")

    print(f"overall accuracy {summary['overall']:.4f}")
    for task, value in summary["by_task"].items():
        print(f"  {task:<20s} {value:.4f}")
    print("correct letters  ", summary["answer_letters"])
    print("predicted letters", summary["predicted_letters"])


if __name__ == "__main__":
    main()
