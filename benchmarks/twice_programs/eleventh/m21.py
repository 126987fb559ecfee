"""Modelled on https://github.com/confident-ai/deepeval/pull/3159
Scores the answers of two assistants with several metrics at once and compares them side by side.
"""
import argparse
import asyncio
import json
import logging
import math
import random
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

log = logging.getLogger("evalrun")

SUBJECTS = ["invoice", "router", "passport", "battery", "flight", "contract", "printer", "garden"]
ACTIONS = ["renew", "reset", "replace", "cancel", "check", "order", "repair", "print"]
DETAILS = "open the settings page then choose your account and confirm with code before you send form".split()


@dataclass
class Config:
    n_cases: int = 60
    max_concurrent: int = 8
    seed: int = 9
    threshold: float = 0.45
    out: str = "comparison.json"


@dataclass
class TestCase:
    case_id: str
    question: str
    expected: str
    answers: dict = field(default_factory=dict)


@dataclass
class TestResult:
    success: bool
    scores: dict


def make_cases(cfg):
    rnd = random.Random(cfg.seed)
    cases = []
    for i in range(cfg.n_cases):
        act, sub = rnd.choice(ACTIONS), rnd.choice(SUBJECTS)
        n_sent = rnd.randint(2, 30)
        expected = []
        for _ in range(n_sent):
            expected += [act, sub] + rnd.choices(DETAILS, k=rnd.randint(6, 12))
        answers = {}
        for name, keep in (("alpha", 0.72), ("beta", 0.64)):
            quality = min(1.0, max(0.2, rnd.gauss(keep, 0.15)))
            answers[name] = " ".join(w if rnd.random() < quality else rnd.choice(DETAILS) for w in expected)
        cases.append(TestCase(f"case-{i:03d}", f"How do I {act} my {sub}?", " ".join(expected), answers))
    return cases


def ngrams(words, n):
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


class OverlapMetric:
    name = "overlap"

    def measure(self, answer, expected):
        a, e = answer.split(), expected.split()
        logs = []
        for n in range(1, 5):
            ga, ge = ngrams(a, n), ngrams(e, n)
            hit = sum((ga & ge).values())
            logs.append(math.log((hit + 1) / (sum(ga.values()) + 1)))
        return math.exp(sum(logs) / len(logs))


class SequenceMetric:
    name = "sequence"

    def measure(self, answer, expected):
        a, e = answer.split(), expected.split()
        prev = [0] * (len(e) + 1)
        for x in a:
            cur = [0]
            for j, y in enumerate(e):
                cur.append(prev[j] + 1 if x == y else max(prev[j + 1], cur[j]))
            prev = cur
        return 2 * prev[-1] / (len(a) + len(e))


class RelevancyMetric:
    name = "relevancy"

    def measure(self, answer, expected):
        va, ve = Counter(answer.split()), Counter(expected.split())
        dot = sum(va[w] * ve[w] for w in va)
        return dot / math.sqrt(sum(v * v for v in va.values()) * sum(v * v for v in ve.values()))


METRICS = [OverlapMetric(), SequenceMetric(), RelevancyMetric()]


class Evaluator:
    def __init__(self, cfg):
        self.cfg = cfg

    async def _execute(self, case, model, semaphore, results):
        async with semaphore:
            scores = {}
            for metric in METRICS:
                value = await asyncio.to_thread(metric.measure, case.answers[model], case.expected)
                scores[metric.name] = round(value, 5)
            mean = sum(scores.values()) / len(scores)
            results.append(TestResult(mean >= self.cfg.threshold, scores))  # cause

    async def _run(self, cases, model):
        semaphore = asyncio.Semaphore(self.cfg.max_concurrent)
        results = []
        tasks = [asyncio.create_task(self._execute(c, model, semaphore, results)) for c in cases]
        await asyncio.gather(*tasks)
        return results

    def evaluate(self, cases, model):
        start = time.perf_counter()
        results = asyncio.run(self._run(cases, model))
        log.info("%s: %d cases in %.2fs", model, len(results), time.perf_counter() - start)
        return results


def mean_score(result):
    return sum(result.scores.values()) / len(result.scores)


def compare(cases, left, right, margin=0.02):
    """Side by side verdicts for each case."""
    rows = []
    for case, a, b in zip(cases, left, right):
        diff = mean_score(a) - mean_score(b)
        verdict = "tie" if abs(diff) < margin else ("alpha" if diff > 0 else "beta")
        rows.append({"case": case.case_id, "diff": round(diff, 5), "verdict": verdict})
    return rows


def by_subject(cases, results):
    sums = {}
    for case, r in zip(cases, results):
        subject = case.question.rstrip("?").split()[-1]
        n, s = sums.get(subject, (0, 0.0))
        sums[subject] = (n + 1, s + mean_score(r))
    return {k: round(s / n, 5) for k, (n, s) in sorted(sums.items())}


def write_results(path, cases, results):
    with open(path, "w") as f:
        for case, r in zip(cases, results):
            f.write(json.dumps({"case": case.case_id, **asdict(r)}) + "\n")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--cases", type=int, default=Config.n_cases)
    ap.add_argument("--max-concurrent", type=int, default=Config.max_concurrent)
    args = ap.parse_args()
    cfg = Config(n_cases=args.cases, max_concurrent=args.max_concurrent)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")

    cases = make_cases(cfg)
    evaluator = Evaluator(cfg)
    results = {m: evaluator.evaluate(cases, m) for m in ("alpha", "beta")}
    for model, res in results.items():
        rate = sum(r.success for r in res) / len(res)
        average = math.fsum(mean_score(r) for r in res) / len(res)
        print(f"{model}: pass rate {rate:.4f} mean {average:.5f}")
        failed = [c.case_id for c, r in zip(cases, res) if not r.success]
        print("  failed:", ", ".join(failed[:8]) or "none")
        print("  by subject:", by_subject(cases, res))
        write_results(f"results_{model}.jsonl", cases, res)

    rows = compare(cases, results["alpha"], results["beta"])
    tally = Counter(r["verdict"] for r in rows)
    print("verdicts:", {k: tally[k] for k in ("alpha", "beta", "tie")})
    worst = sorted(rows, key=lambda r: (r["diff"], r["case"]))[:3]
    for r in worst:
        print(f"  {r['case']} {r['diff']:+.5f}")
    Path(cfg.out).write_text(json.dumps({"tally": dict(sorted(tally.items())), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
