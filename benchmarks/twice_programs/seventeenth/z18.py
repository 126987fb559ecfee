"""Score contributors of a validator round from their merged pull requests.

Modelled on https://github.com/entrius/gittensor/pull/1442

A mirror of pull-request records is generated, every miner's records are
scored by size, language and repository weight with a sigmoid time decay, the
open-issue discovery part is added, and the rewards are normalised into the
weights the round would submit.
"""
import json
import logging
import math
import random
import sqlite3
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np

log = logging.getLogger("validator")

LANGUAGES = {"rust": 1.5, "go": 1.2, "python": 1.0, "typescript": 0.9, "markdown": 0.15}
REPOSITORIES = {"core/engine": 0.32, "core/net": 0.21, "apps/wallet": 0.17,
                "apps/indexer": 0.14, "docs/site": 0.06, "tools/lint": 0.10}
DECAY_MIDPOINT_DAYS = 90.0
DECAY_SCALE_DAYS = 60.0
LINE_CAP = 800
EPOCH = datetime(2026, 3, 1, tzinfo=timezone.utc)


@dataclass
class PullRequest:
    number: int
    repo: str
    miner: int
    merged_at: datetime
    additions: int
    deletions: int
    language: str
    reviews: int
    closes: int


class Mirror:
    """SQLite-backed copy of the upstream records."""

    def __init__(self, path):
        path.unlink(missing_ok=True)
        self.db = sqlite3.connect(path)
        self.db.execute(
            "CREATE TABLE pulls (number INTEGER, repo TEXT, miner INTEGER, merged_at TEXT,"
            " additions INTEGER, deletions INTEGER, language TEXT, reviews INTEGER,"
            " closes INTEGER, PRIMARY KEY (repo, number))")
        self.db.execute(
            "CREATE TABLE issues (repo TEXT, number INTEGER, miner INTEGER, opened_at TEXT,"
            " solved INTEGER, PRIMARY KEY (repo, number))")

    def populate(self, miners, seed):
        rng = random.Random(seed)
        numbers = dict.fromkeys(REPOSITORIES, 100)
        repos, weights = zip(*REPOSITORIES.items())
        for miner in range(miners):
            skill = rng.lognormvariate(0.0, 0.7)
            for _ in range(int(rng.gammavariate(2.0, 6.0 * skill)) + 1):
                repo = rng.choices(repos, weights)[0]
                numbers[repo] += 1
                merged = EPOCH + timedelta(minutes=rng.randrange(0, 60 * 24 * 150))
                self.db.execute(
                    "INSERT INTO pulls VALUES (?,?,?,?,?,?,?,?,?)",
                    (numbers[repo], repo, miner, merged.isoformat(),
                     int(rng.lognormvariate(4.2, 1.1)), int(rng.lognormvariate(3.0, 1.2)),
                     rng.choice(list(LANGUAGES)), rng.randrange(0, 6),
                     int(rng.random() < 0.3)))
            for _ in range(rng.randrange(0, 5)):
                repo = rng.choices(repos, weights)[0]
                numbers[repo] += 1
                opened = EPOCH + timedelta(minutes=rng.randrange(0, 60 * 24 * 150))
                self.db.execute("INSERT INTO issues VALUES (?,?,?,?,?)",
                                (repo, numbers[repo], miner, opened.isoformat(),
                                 int(rng.random() < 0.45)))
        self.db.commit()

    def pulls(self, miner):
        rows = self.db.execute("SELECT * FROM pulls WHERE miner = ? ORDER BY repo, number",
                               (miner,)).fetchall()
        return [PullRequest(r[0], r[1], r[2], datetime.fromisoformat(r[3]), *r[4:])
                for r in rows]

    def issues(self, miner):
        return self.db.execute(
            "SELECT repo, number, solved FROM issues WHERE miner = ? ORDER BY repo, number",
            (miner,)).fetchall()

    def counts(self):
        return tuple(self.db.execute(f"SELECT count(*) FROM {t}").fetchone()[0]
                     for t in ("pulls", "issues"))


def calculate_time_decay(merged_at):
    age = datetime.now(timezone.utc) - merged_at  # cause
    days = age.total_seconds() / 86400.0
    return 1.0 / (1.0 + math.exp((days - DECAY_MIDPOINT_DAYS) / DECAY_SCALE_DAYS))


def size_score(pr):
    lines = min(pr.additions, LINE_CAP) + 0.4 * min(pr.deletions, LINE_CAP)
    return math.log1p(lines) * LANGUAGES[pr.language]


class Scorer:
    def __init__(self, mirror):
        self.mirror = mirror
        self.detail = []

    def score_pull(self, pr):
        base = size_score(pr) * (1.0 + 3.0 * REPOSITORIES[pr.repo])
        review = 1.0 + 0.08 * min(pr.reviews, 4)
        linked = 1.25 if pr.closes else 1.0
        decay = calculate_time_decay(pr.merged_at)
        return base * review * linked * decay, decay

    def score_miner(self, miner):
        total, per_repo = 0.0, {}
        for pr in self.mirror.pulls(miner):
            value, decay = self.score_pull(pr)
            per_repo[pr.repo] = per_repo.get(pr.repo, 0) + 1
            value /= math.sqrt(per_repo[pr.repo])
            self.detail.append((miner, pr.repo, pr.number, decay, value))
            total += value
        return total

    def discovery(self, miner):
        solved = [(repo, n) for repo, n, ok in self.mirror.issues(miner) if ok]
        return sum(0.8 * (1.0 + REPOSITORIES[repo]) for repo, _ in solved)


def normalise(raw, share_top=0.25):
    raw = np.asarray(raw, dtype=np.float64)
    order = np.argsort(-raw, kind="stable")
    bonus = np.ones_like(raw)
    bonus[order[: max(1, int(len(raw) * share_top))]] = 1.2
    curved = (raw * bonus) ** 1.5
    return curved / curved.sum()


def to_u16(weights):
    scaled = weights / weights.max()
    return np.floor(scaled * 65535).astype(int)


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stdout,
                        format="%(asctime)s | %(levelname)s | %(message)s")
    random.seed(1442)
    np.random.seed(1442)
    out = Path("round")
    out.mkdir(exist_ok=True)
    mirror = Mirror(out / "mirror.sqlite")
    mirror.populate(miners=400, seed=1442)
    log.info("mirror at %s: %d pulls, %d issues", out.resolve(), *mirror.counts())

    scorer = Scorer(mirror)
    raw = []
    for miner in range(400):
        value = scorer.score_miner(miner) + scorer.discovery(miner)
        raw.append(value)
        if miner % 100 == 99:
            log.info("scored %d miners", miner + 1)
    weights = normalise(raw)
    ranking = np.argsort(-weights, kind="stable")

    with open(out / "detail.csv", "w") as fh:
        fh.write("miner,repo,number,decay,value\n")
        for miner, repo, number, decay, value in scorer.detail:
            fh.write(f"{miner},{repo},{number},{decay:.10f},{value:.8f}\n")
    payload = {"weights": [round(float(w), 12) for w in weights],
               "u16": to_u16(weights).tolist(),
               "top": ranking[:20].tolist()}
    (out / "weights.json").write_text(json.dumps(payload, indent=1))
    gini = np.abs(weights[:, None] - weights[None, :]).mean() / (2 * weights.mean())
    print("top five:")
    for uid in ranking[:5]:
        print(f"  uid {uid:4d}  raw {raw[uid]:.8f}  weight {weights[uid]:.10f}")
    print(f"total raw score {sum(raw):.7f}, gini {gini:.9f}")


if __name__ == "__main__":
    main()
