"""Rubric based evaluation of written answers.

Every answer has a list of rubric items with points and tags. A grader judges each item on its own;
the items of a sample are graded side by side. Scores are summed per sample and averaged per tag.

Modelled on: https://github.com/openai/gpt-oss/pull/304
"""
import argparse
import json
import random
import statistics
import time
from collections import defaultdict
from dataclasses import dataclass, field
from multiprocessing.pool import ThreadPool
from pathlib import Path

TAGS = ["accuracy", "completeness", "safety", "tone", "context"]
FACTS = ["dosage", "interaction", "follow-up", "red flags", "diet", "exercise", "referral", "hydration",
         "rest", "allergy", "pregnancy", "fever", "duration", "side effects", "storage", "age"]


@dataclass
class RubricItem:
    criterion: str
    points: int
    tags: list


@dataclass
class Sample:
    sample_id: str
    prompt: str
    response: str
    rubric: list = field(default_factory=list)


@dataclass
class SampleResult:
    sample_id: str
    score: float
    by_tag: dict
    grades: list


def make_samples(n, seed):
    rng = random.Random(seed)
    samples = []
    for i in range(n):
        facts = rng.sample(FACTS, rng.randint(8, 12))
        mentioned = [f for f in facts if rng.random() < 0.55]
        response = "You should consider " + ", ".join(mentioned) + ". See a doctor if unsure."
        rubric = []
        for f in facts:
            points = rng.choice([2, 3, 5, 5, 7, 10, -6])
            rubric.append(RubricItem(f"mentions {f}", points, sorted(rng.sample(TAGS, 2))))
        samples.append(Sample(f"q{i:03d}", f"Question {i}", response, rubric))
    return samples


class Grader:
    """Keyword grader behind a service that takes a moment for each call."""

    def __init__(self, latency=0.0015):
        self.latency = latency

    def __call__(self, response, item):
        time.sleep(self.latency)
        keyword = item.criterion.removeprefix("mentions ")
        met = keyword in response
        return {"criteria_met": met, "explanation": "found" if met else "not found"}


def map_with_progress(fn, xs, num_threads=8, label=""):
    """Applies fn to all xs in threads."""
    xs = list(xs)
    if num_threads <= 1:
        return [fn(x) for x in xs]
    with ThreadPool(min(num_threads, len(xs))) as pool:
        return list(pool.imap_unordered(fn, xs))  # cause


class RubricEval:
    def __init__(self, grader, num_threads):
        self.grader = grader
        self.num_threads = num_threads

    def grade_sample(self, sample):
        grades = map_with_progress(lambda item: self.grader(sample.response, item), sample.rubric,
                                   self.num_threads, label=sample.sample_id)
        total_possible = sum(i.points for i in sample.rubric if i.points > 0)
        achieved = 0
        tag_possible, tag_achieved = defaultdict(int), defaultdict(int)
        for item, grade in zip(sample.rubric, grades):
            if grade["criteria_met"]:
                achieved += item.points
            for tag in item.tags:
                if item.points > 0:
                    tag_possible[tag] += item.points
                if grade["criteria_met"]:
                    tag_achieved[tag] += item.points
        score = achieved / total_possible if total_possible else 0.0
        by_tag = {t: tag_achieved[t] / tag_possible[t] for t in sorted(tag_possible)}
        return SampleResult(sample.sample_id, score, by_tag, [g["criteria_met"] for g in grades])

    def run(self, samples):
        return [self.grade_sample(s) for s in samples]


def clipped_mean(values):
    return min(max(statistics.fmean(values), 0.0), 1.0)


def aggregate(results):
    per_tag = defaultdict(list)
    for r in results:
        for tag, value in r.by_tag.items():
            per_tag[tag].append(value)
    scores = [r.score for r in results]
    return {
        "score": round(clipped_mean(scores), 4),
        "score_std": round(statistics.pstdev(scores), 4),
        "n_samples": len(results),
        "tags": {t: round(clipped_mean(v), 4) for t, v in sorted(per_tag.items())},
    }


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--samples", type=int, default=160)
    ap.add_argument("--threads", type=int, default=8)
    ap.add_argument("--seed", type=int, default=1234)
    ap.add_argument("--out", default="results")
    args = ap.parse_args()

    out = Path(args.out)
    out.mkdir(exist_ok=True)
    samples = make_samples(args.samples, args.seed)
    started = time.time()
    results = RubricEval(Grader(), args.threads).run(samples)
    print(f"graded {sum(len(r.grades) for r in results)} items in {time.time() - started:.1f}s")

    with open(out / "samples.jsonl", "w") as f:
        for r in results:
            f.write(json.dumps({"id": r.sample_id, "score": round(r.score, 4), "grades": r.grades}) + "\n")
    summary = aggregate(results)
    (out / "summary.json").write_text(json.dumps(summary, indent=2))
    print(json.dumps(summary, indent=2))


if __name__ == "__main__":
    main()
