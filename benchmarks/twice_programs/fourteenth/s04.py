"""Online behavioural experiment with transmission chains of participants.

Modelled on https://github.com/Dallinger/Dallinger/pull/726
Runs simulated participants through an iterated-learning experiment stored in a database.
"""
import argparse
import json
import logging
import random
import uuid
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pandas as pd
from sqlalchemy import Column, Float, Integer, String, create_engine, select
from sqlalchemy.orm import Session, declarative_base

log = logging.getLogger("experiment")
Base = declarative_base()


@dataclass
class ExperimentConfig:
    seed: int = 2017
    participants: int = 3200
    chains: int = 16
    stimuli: int = 12
    noise: float = 0.35
    database: str = "sqlite:///experiment.db"


class Participant(Base):
    __tablename__ = "participant"
    unique_id = Column(String, primary_key=True)
    recruited = Column(Integer)
    slope_prior = Column(Float)
    condition = Column(String, default="")
    created = Column(String)


class Response(Base):
    __tablename__ = "response"
    id = Column(Integer, primary_key=True)
    participant_id = Column(String)
    chain = Column(Integer)
    generation = Column(Integer)
    slope = Column(Float)
    error = Column(Float)


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)


def new_id():
    return str(uuid.uuid4())  # cause


class Recruiter:
    def __init__(self, session, cfg):
        self.session = session
        self.cfg = cfg

    def recruit(self):
        for k in range(self.cfg.participants):
            self.session.add(Participant(
                unique_id=new_id(),
                recruited=k,
                slope_prior=float(np.random.normal(1.0, 0.4)),
                created=datetime.now(timezone.utc).isoformat(),
            ))
        self.session.commit()
        log.info("recruited %d", self.cfg.participants)


class IteratedLearning:
    """Each generation learns a line from noisy samples of its predecessor."""

    def __init__(self, session, cfg):
        self.session = session
        self.cfg = cfg
        self.x = np.linspace(-1, 1, cfg.stimuli)

    def queue(self):
        stmt = select(Participant).order_by(Participant.unique_id)
        return list(self.session.scalars(stmt))

    def learn(self, participant, slope_in):
        y = slope_in * self.x + np.random.normal(0, self.cfg.noise, size=len(self.x))
        likelihood = float((self.x @ y) / (self.x @ self.x))
        weight = 0.7
        return weight * likelihood + (1 - weight) * participant.slope_prior

    def run(self):
        people = self.queue()
        slopes = {c: -1.0 + 2.0 * c / (self.cfg.chains - 1) for c in range(self.cfg.chains)}
        for position, person in enumerate(people):
            chain = position % self.cfg.chains
            generation = position // self.cfg.chains
            person.condition = "peer" if random.random() < 0.5 else "solo"
            before = slopes[chain]
            after = self.learn(person, before)
            if person.condition == "solo":
                after = 0.5 * (after + before)
            slopes[chain] = after
            self.session.add(Response(participant_id=person.unique_id, chain=chain,
                                      generation=generation, slope=after,
                                      error=abs(after - 1.0)))
        self.session.commit()
        return slopes


def analyse(session):
    rows = session.execute(select(Response.chain, Response.generation, Response.slope,
                                  Response.error)).all()
    frame = pd.DataFrame(rows, columns=["chain", "generation", "slope", "error"])
    per_generation = frame.groupby("generation").agg(slope=("slope", "mean"),
                                                     spread=("slope", "std"),
                                                     error=("error", "mean"))
    conv = float(np.polyfit(per_generation.index, per_generation["spread"], 1)[0])
    return frame, per_generation, conv


def permutation_test(frame, n=24000):
    first = frame[frame.generation < 5]["error"].to_numpy()
    last = frame[frame.generation >= 15]["error"].to_numpy()
    observed = first.mean() - last.mean()
    pool = np.concatenate([first, last])
    hits = 0
    for _ in range(n):
        perm = np.random.permutation(pool)
        hits += (perm[: len(first)].mean() - perm[len(first):].mean()) >= observed
    return float(observed), hits / n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--participants", type=int, default=ExperimentConfig.participants)
    ap.add_argument("--seed", type=int, default=ExperimentConfig.seed)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(process)d] %(message)s")
    cfg = ExperimentConfig(seed=args.seed, participants=args.participants)
    seed_everything(cfg.seed)
    Path("experiment.db").unlink(missing_ok=True)
    engine = create_engine(cfg.database)
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        Recruiter(session, cfg).recruit()
        slopes = IteratedLearning(session, cfg).run()
        frame, table, conv = analyse(session)
    effect, p = permutation_test(frame)
    table.round(6).to_csv("generations.csv")
    summary = {"final_slopes": {str(k): round(v, 6) for k, v in slopes.items()},
               "convergence": round(conv, 6), "effect": round(effect, 6), "p": p}
    Path("summary.json").write_text(json.dumps(summary, indent=1))
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
