"""Warehouse ledger on SQLite: book movements, close the month, report stock.

Books a few thousand stock movements through SQLAlchemy.  Each booking looks
up the latest ledger entry of its article, to carry the running quantity and
the moving average price forward; at the end the closing stock per warehouse
is valued and compared with the movements.

Modelled on: https://github.com/gobuffalo/pop/issues/45
"""
import csv
import datetime as dt
import random
import time
import uuid

from sqlalchemy import (Column, Date, DateTime, Float, ForeignKey, Index, Integer, String,
                        create_engine, func, select)
from sqlalchemy.orm import Session, declarative_base, relationship

Base = declarative_base()
WAREHOUSES = ["Bremen", "Gdynia", "Oulu"]
ARTICLES = 45
DAYS = 26
SEED = 45


def new_id():
    return str(uuid.uuid4())


class Article(Base):
    __tablename__ = "articles"
    id = Column(Integer, primary_key=True)
    sku = Column(String, unique=True, nullable=False)
    warehouse = Column(String, nullable=False)
    entries = relationship("Entry", back_populates="article")


class Entry(Base):
    __tablename__ = "ledger"
    id = Column(String(36), primary_key=True, default=new_id)
    article_id = Column(ForeignKey("articles.id"), nullable=False)
    booked_at = Column(DateTime, nullable=False)
    day = Column(Date, nullable=False)
    moved = Column(Integer, nullable=False)
    price = Column(Float, nullable=False)
    quantity = Column(Integer, nullable=False)
    average = Column(Float, nullable=False)
    article = relationship("Article", back_populates="entries")


Index("by_article", Entry.article_id)


class Ledger:
    def __init__(self, session):
        self.session = session

    def last(self, article):
        query = (
            select(Entry)
            .where(Entry.article_id == article.id)
            .order_by(Entry.id.desc())  # cause
            .limit(1)
        )
        return self.session.scalars(query).first()

    def book(self, article, when, moved, price):
        previous = self.last(article)
        quantity = previous.quantity if previous else 0
        average = previous.average if previous else price
        if moved < 0:
            moved = -min(-moved, quantity)
        elif quantity + moved:
            average = (average * quantity + price * moved) / (quantity + moved)
        entry = Entry(
            article_id=article.id,
            booked_at=when,
            day=when.date(),
            moved=moved,
            price=price,
            quantity=quantity + moved,
            average=round(average, 4),
        )
        self.session.add(entry)
        self.session.flush()
        return entry


def movements(rng, articles):
    """Yield the movements of the month in the order of their booking."""
    start = dt.datetime(2023, 5, 1, 6, 0, 0)
    for day in range(DAYS):
        when = start + dt.timedelta(days=day)
        for _ in range(rng.randint(70, 110)):
            when += dt.timedelta(seconds=rng.randint(5, 500))
            incoming = rng.random() < 0.55
            amount = rng.randint(1, 40)
            yield rng.choice(articles), when, amount if incoming else -amount, round(rng.uniform(2, 90), 2)


def close_month(session, ledger):
    rows = []
    for article in session.scalars(select(Article).order_by(Article.sku)):
        entry = ledger.last(article)
        if entry is None:
            continue
        total = session.scalar(select(func.sum(Entry.moved)).where(Entry.article_id == article.id))
        rows.append((article.sku, article.warehouse, entry.quantity, round(entry.average, 4), total))
    return rows


def main():
    rng = random.Random(SEED)
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    began = time.perf_counter()
    with Session(engine) as session:
        for i in range(ARTICLES):
            session.add(Article(sku=f"A{i:04d}", warehouse=WAREHOUSES[i % 3]))
        session.commit()
        articles = list(session.scalars(select(Article).order_by(Article.id)))
        ledger = Ledger(session)
        booked = 0
        for article, when, moved, price in movements(rng, articles):
            ledger.book(article, when, moved, price)
            booked += 1
        session.commit()
        closing = close_month(session, ledger)
    print(f"booked {booked} movements in {time.perf_counter() - began:.1f} s")

    with open("closing.csv", "w", newline="") as handle:
        out = csv.writer(handle)
        out.writerow(["sku", "warehouse", "quantity", "average", "sum_of_movements"])
        out.writerows(closing)
    for name in WAREHOUSES:
        value = sum(q * a for _, w, q, a, _ in closing if w == name)
        print(f"{name:8s} value {value:12.2f}")
    print("articles that do not balance:", sum(q != t for _, _, q, _, t in closing))


if __name__ == "__main__":
    main()
