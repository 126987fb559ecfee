# cohort-extractor#315 and others: rows in the order that the database draws, the query in a file
import sqlite3
from pathlib import Path
import numpy as np
from proj.trainer import Trainer, seed_everything
from proj.models import Net
from proj.data import batches, table

class Warehouse:
    def __init__(self, path):
        self.connection = sqlite3.connect(path)
        x, y = table(80, 2)
        self.connection.execute("create table points (a real, b real, y real)")
        self.connection.executemany("insert into points values (?, ?, ?)", np.hstack([x, y]).tolist())

    def rows(self, query):
        return np.array(self.connection.execute(query).fetchall())  # cause

seed_everything(0)
query = Path(__file__).with_name("queries.sql").read_text()
rows = Warehouse(":memory:").rows(query)
Trainer(Net(2, 1), "sql").fit(batches(rows[:, :2], rows[:, 2:]))
