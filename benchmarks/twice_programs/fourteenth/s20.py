"""Judge of a programming contest.

Modelled on https://github.com/midudev/adventjs-issues/issues/257
Checks submissions against test cases, scores them and prints the leaderboard.
"""
import argparse
import ast
import json
import logging
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pandas as pd

log = logging.getLogger("judge")


@dataclass
class JudgeConfig:
    seed: int = 2023
    cases: int = 40
    length: int = 400
    repeats: int = 160
    correctness: float = 100.0
    speed: float = 250.0
    simplicity: float = 50.0


@dataclass
class Submission:
    author: str
    source: str
    entry: str = "solve"
    verdict: str = "pending"
    points: dict = field(default_factory=dict)


SOURCES = {
    "ana": """
def solve(gifts):
    seen = {}
    for g in gifts:
        seen[g] = seen.get(g, 0) + 1
    return max(seen, key=lambda g: (seen[g], -g))
""",
    "beto": """
from collections import Counter
def solve(gifts):
    counts = Counter(gifts)
    top = max(counts.values())
    return min(g for g, c in counts.items() if c == top)
""",
    "carla": """
def solve(gifts):
    ordered = sorted(gifts)
    best, best_n, run = ordered[0], 0, 0
    for k, g in enumerate(ordered):
        run = run + 1 if k and ordered[k - 1] == g else 1
        if run > best_n:
            best, best_n = g, run
    return best
""",
    "diego": """
def solve(gifts):
    kinds = sorted(set(gifts))
    return max(kinds, key=lambda g: gifts.count(g))
""",
    "elena": """
def solve(gifts):
    table = [0] * (max(gifts) + 1)
    for g in gifts:
        table[g] += 1
    return table.index(max(table))
""",
    "fabio": """
def solve(gifts):
    return gifts[0]
""",
}


def reference(gifts):
    counts = Counter(gifts)
    return min(counts, key=lambda g: (-counts[g], g))


def make_cases(cfg):
    rng = random.Random(cfg.seed)
    cases = []
    for _ in range(cfg.cases):
        kinds = rng.randint(5, 60)
        gifts = [rng.randint(1, kinds) for _ in range(cfg.length)]
        cases.append((gifts, reference(gifts)))
    return cases


class Complexity(ast.NodeVisitor):
    BRANCHES = (ast.For, ast.While, ast.If, ast.IfExp, ast.comprehension, ast.Lambda)

    def __init__(self):
        self.value = 1

    def generic_visit(self, node):
        if isinstance(node, self.BRANCHES):
            self.value += 1
        super().generic_visit(node)


class Judge:
    def __init__(self, cfg):
        self.cfg = cfg
        self.cases = make_cases(cfg)

    def load(self, sub):
        scope = {}
        exec(compile(sub.source, f"<{sub.author}>", "exec"), scope)
        return scope[sub.entry]

    def check(self, fn):
        passed = sum(fn(list(gifts)) == want for gifts, want in self.cases)
        return passed / len(self.cases)

    def throughput(self, fn):
        begin = time.perf_counter()
        for _ in range(self.cfg.repeats):
            for gifts, _ in self.cases:
                fn(gifts)
        seconds = time.perf_counter() - begin  # cause
        return self.cfg.repeats * len(self.cases) / seconds

    def simplicity(self, sub):
        visitor = Complexity()
        visitor.visit(ast.parse(sub.source))
        return 1.0 / visitor.value ** 0.5

    def grade(self, sub, baseline):
        fn = self.load(sub)
        correct = self.check(fn)
        sub.points["correctness"] = self.cfg.correctness * correct
        if correct < 1:
            sub.verdict = "wrong answer"
            return sub
        sub.verdict = "accepted"
        rate = self.throughput(fn)
        relative = rate / (rate + baseline)
        sub.points["speed"] = self.cfg.speed * relative
        sub.points["simplicity"] = self.cfg.simplicity * self.simplicity(sub)
        return sub


def leaderboard(subs):
    rows = []
    for sub in subs:
        rows.append({"author": sub.author, "verdict": sub.verdict,
                     "score": round(sum(sub.points.values()), 1)})
    table = pd.DataFrame(rows).sort_values(["score", "author"], ascending=[False, True])
    table["rank"] = range(1, len(table) + 1)
    return table


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--repeats", type=int, default=JudgeConfig.repeats)
    ap.add_argument("--cases", type=int, default=JudgeConfig.cases)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO)
    log.info("judging at %s", datetime.now())
    cfg = JudgeConfig(repeats=args.repeats, cases=args.cases)
    judge = Judge(cfg)
    subs = [Submission(a, s) for a, s in sorted(SOURCES.items())]
    graded = [judge.grade(sub, 20000.0) for sub in subs]
    table = leaderboard(graded)
    out = Path("contest")
    out.mkdir(exist_ok=True)
    table.to_csv(out / "leaderboard.csv", index=False)
    (out / "points.json").write_text(
        json.dumps({s.author: {k: round(v, 2) for k, v in s.points.items()} for s in graded}))
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
