"""Relevance learning in a note store from access feedback.

Modelled on https://github.com/dat999zx/knowl/pull/9
Replays a usage log into a database and derives note ranks from the recorded accesses.
"""
import argparse
import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sqlalchemy import Column, Float, ForeignKey, Integer, String, create_engine, func, select, text
from sqlalchemy.orm import Session, declarative_base

log = logging.getLogger("notes")
Base = declarative_base()


@dataclass
class StoreConfig:
    seed: int = 64
    notes: int = 120
    sessions: int = 900
    results: int = 6
    decay: float = 0.97
    url: str = "sqlite:///notes.db"


class Note(Base):
    __tablename__ = "note"
    id = Column(Integer, primary_key=True)
    title = Column(String)
    score = Column(Float, default=0.0)


class Access(Base):
    __tablename__ = "access"
    id = Column(String, primary_key=True, server_default=text("(lower(hex(randomblob(8))))"))  # cause
    note_id = Column(Integer, ForeignKey("note.id"))
    session = Column(Integer)
    retrieved_at = Column(Integer, index=True)
    useful = Column(Integer)


class Clock:
    """Simulated clock with millisecond resolution."""

    def __init__(self, rng, start=1_700_000_000_000):
        self.rng = rng
        self.now = start

    def advance(self):
        self.now += int(self.rng.exponential(400.0)) + 1
        return self.now


class Store:
    def __init__(self, cfg):
        Path("notes.db").unlink(missing_ok=True)
        self.cfg = cfg
        self.engine = create_engine(cfg.url)
        Base.metadata.create_all(self.engine)
        self.session = Session(self.engine)

    def add_notes(self, rng):
        topics = ["graph", "audio", "query", "cache", "parser", "model"]
        for k in range(self.cfg.notes):
            self.session.add(Note(title=f"{topics[int(rng.integers(6))]} note {k}"))
        self.session.commit()

    def record(self, session, note_ids, useful, at):
        rows = [{"note_id": int(n), "session": session, "retrieved_at": at, "useful": int(u)}
                for n, u in zip(note_ids, useful)]
        self.session.execute(Access.__table__.insert(), rows)

    def feed(self):
        stmt = select(Access.session, Access.note_id, Access.useful).order_by(
            Access.retrieved_at, Access.id)  # cause
        return self.session.execute(stmt).all()

    def save_scores(self, scores):
        for note_id, value in scores.items():
            self.session.get(Note, note_id).score = value
        self.session.commit()


def replay(store, cfg):
    rng = np.random.default_rng(cfg.seed)
    store.add_notes(rng)
    quality = rng.beta(2, 3, cfg.notes)
    popularity = rng.dirichlet(np.full(cfg.notes, 0.4)) + 1e-4
    popularity /= popularity.sum()
    clock = Clock(rng)
    for session in range(cfg.sessions):
        picks = rng.choice(cfg.notes, size=cfg.results, replace=False, p=popularity)
        useful = rng.random(cfg.results) < quality[picks]
        store.record(session, picks + 1, useful, clock.advance())
    store.session.commit()
    return quality


class FeedbackRanker:
    """Elo-like updates between consecutive accesses of one session."""

    def __init__(self, cfg, k=24.0):
        self.cfg = cfg
        self.k = k
        self.rating = {n: 1000.0 for n in range(1, cfg.notes + 1)}
        self.recency = dict.fromkeys(self.rating, 0.0)

    def duel(self, first, second, outcome):
        expected = 1 / (1 + 10 ** ((self.rating[second] - self.rating[first]) / 400))
        delta = self.k * (outcome - expected)
        self.rating[first] += delta
        self.rating[second] -= delta

    def consume(self, rows):
        previous = None
        for session, note, useful in rows:
            for key in (note,):
                self.recency[key] = self.recency[key] * self.cfg.decay + useful
            if previous is not None and previous[0] == session:
                outcome = 0.5 + 0.5 * (previous[2] - useful)
                self.duel(previous[1], note, outcome)
            previous = (session, note, useful)
        return self

    def scores(self):
        return {n: self.rating[n] / 1000 + 0.1 * self.recency[n] for n in self.rating}


def report(store, scores, quality):
    table = pd.DataFrame({"note": list(scores), "score": list(scores.values())})
    table["quality"] = quality
    rho = table[["score", "quality"]].corr(method="spearman").iloc[0, 1]
    accesses = store.session.scalar(select(func.count()).select_from(Access))
    return table.sort_values(["score", "note"], ascending=[False, True]), float(rho), accesses


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--sessions", type=int, default=6000)
    ap.add_argument("--seed", type=int, default=StoreConfig.seed)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    cfg = StoreConfig(sessions=args.sessions, seed=args.seed)
    store = Store(cfg)
    t0 = time.perf_counter()
    quality = replay(store, cfg)
    log.info("replayed %d sessions in %.2f s", cfg.sessions, time.perf_counter() - t0)
    ranker = FeedbackRanker(cfg).consume(store.feed())
    scores = ranker.scores()
    store.save_scores(scores)
    table, rho, accesses = report(store, scores, quality)
    table.to_csv("ranking.csv", index=False, float_format="%.6f")
    Path("report.json").write_text(json.dumps({"spearman": round(rho, 8), "accesses": accesses}))
    print(f"spearman {rho:.6f} over {accesses} accesses")
    print(table.head(10).to_string(index=False))


if __name__ == "__main__":
    main()
