"""Container flow generator for a sea port.

Report: https://github.com/1kastner/conflowgen/issues/9
Containers are created for feeders and assigned to onward vehicles through a database.
"""
import argparse
import csv
import logging
import random
import time
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Boolean, Float, ForeignKey, Integer, String, create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

log = logging.getLogger("conflowgen")


@dataclass
class FlowConfig:
    feeders: int = 24
    vessels: int = 10
    trains: int = 30
    moves: int = 150
    seed: int = 2021
    out: str = "flow_report"


class Base(DeclarativeBase):
    pass


class Vehicle(Base):
    __tablename__ = "vehicle"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(40))
    mode: Mapped[str] = mapped_column(String(16), index=True)
    arrival: Mapped[float] = mapped_column(Float)
    capacity: Mapped[int] = mapped_column(Integer)
    used: Mapped[int] = mapped_column(Integer, default=0)


class Container(Base):
    __tablename__ = "container"
    id: Mapped[int] = mapped_column(primary_key=True)
    teu: Mapped[int] = mapped_column(Integer)
    weight: Mapped[int] = mapped_column(Integer)
    delivered_by: Mapped[int] = mapped_column(ForeignKey("vehicle.id"))
    picked_up_by: Mapped[int | None] = mapped_column(ForeignKey("vehicle.id"), nullable=True)
    emergency: Mapped[bool] = mapped_column(Boolean, default=False)


class Fleet:
    def __init__(self, cfg: FlowConfig):
        self.cfg = cfg
        self.rng = random.Random(cfg.seed)

    def create(self, session: Session):
        spec = [("feeder", self.cfg.feeders, 0), ("vessel", self.cfg.vessels, 190), ("train", self.cfg.trains, 40)]
        for mode, count, capacity in spec:
            for k in range(count):
                session.add(
                    Vehicle(
                        name=f"{mode}-{k:02d}",
                        mode=mode,
                        arrival=round(self.rng.uniform(0, 21 * 24), 2),
                        capacity=capacity,
                    )
                )
        session.flush()


class ContainerFactory:
    def __init__(self, cfg: FlowConfig):
        self.cfg = cfg
        self.rng = random.Random(cfg.seed + 1)

    def create(self, session: Session):
        feeders = session.scalars(select(Vehicle).where(Vehicle.mode == "feeder").order_by(Vehicle.id)).all()
        for feeder in feeders:
            for _ in range(self.cfg.moves):
                session.add(
                    Container(
                        teu=self.rng.choice((1, 2, 2)),
                        weight=self.rng.randrange(4, 28, 2),
                        delivered_by=feeder.id,
                    )
                )
        session.flush()


class OnwardTransportation:
    """Hands containers to vehicles that depart after they have arrived."""

    def __init__(self, cfg: FlowConfig):
        self.cfg = cfg
        self.rng = random.Random(cfg.seed + 2)

    def waiting(self, session: Session):
        query = select(Container).where(Container.picked_up_by.is_(None))
        return session.scalars(query.order_by(func.random())).all()  # cause

    def candidates(self, session: Session, after: float):
        query = (
            select(Vehicle)
            .where(Vehicle.mode.in_(("vessel", "train")), Vehicle.arrival > after)
            .where(Vehicle.used < Vehicle.capacity)
            .order_by(Vehicle.arrival, Vehicle.id)
            .limit(6)
        )
        return session.scalars(query).all()

    def assign(self, session: Session):
        arrivals = {v.id: v.arrival for v in session.scalars(select(Vehicle)).all()}
        assigned = 0
        for box in self.waiting(session):
            options = [v for v in self.candidates(session, arrivals[box.delivered_by]) if v.used + box.teu <= v.capacity]
            if not options:
                box.emergency = True
                continue
            vehicle = self.rng.choices(options, weights=[v.capacity - v.used for v in options])[0]
            vehicle.used += box.teu
            box.picked_up_by = vehicle.id
            assigned += 1
        session.flush()
        return assigned


def report(session: Session, out: Path):
    rows = session.execute(
        select(Vehicle.name, Vehicle.used, func.count(Container.id), func.coalesce(func.sum(Container.weight), 0))
        .join(Container, Container.picked_up_by == Vehicle.id, isouter=True)
        .where(Vehicle.mode != "feeder")
        .group_by(Vehicle.id)
        .order_by(Vehicle.id)
    ).all()
    with open(out / "vehicles.csv", "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["vehicle", "teu", "containers", "weight"])
        w.writerows([tuple(r) for r in rows])
    boxes = session.execute(select(Container.id, Container.picked_up_by, Container.emergency).order_by(Container.id)).all()
    with open(out / "containers.csv", "w", newline="") as fh:
        csv.writer(fh).writerows([tuple(b) for b in boxes])
    return rows, sum(1 for b in boxes if b[2])


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=FlowConfig.seed)
    ns = ap.parse_args()
    cfg = FlowConfig(seed=ns.seed)
    t0 = time.time()
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        Fleet(cfg).create(session)
        ContainerFactory(cfg).create(session)
        n = OnwardTransportation(cfg).assign(session)
        log.info("assigned %d containers", n)
        out = Path(cfg.out)
        out.mkdir(exist_ok=True)
        rows, emergency = report(session, out)
        session.commit()
    print("emergency pickups", emergency)
    for row in rows[:5]:
        print(*row)
    log.info("%.2fs", time.time() - t0)


if __name__ == "__main__":
    main()
