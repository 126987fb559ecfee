"""https://github.com/cytomining/CytoTable/pull/182 - DuckDB promises no order without ORDER BY, so pages read with LIMIT and
OFFSET from a parallel query hold other rows in every run; the fix is ORDER BY ALL."""
import json
import sys
import time
from contextlib import closing

import duckdb
import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import silhouette_score

PAGE = 1024
CELLS = 6000

CREATE = """
create or replace table objects as
select (hash(i) % {cells})::int as cell,
       (hash(i * 31 + 7) % 1000)::int as u,
       (hash(i * 17 + 3) % 1000)::int as v,
       i % 3 as channel
from range({start}, {start} + {n}) t(i)
"""

PROFILE = """
select cell,
       avg(u) filter (channel = 0) + 80 * sin(cell % 5) as dna,
       avg(v) filter (channel = 1) + 60 * cos(cell % 5) as rna,
       avg(u * v) filter (channel = 2) + 9000 * (cell % 5) as er,
       max(u) - min(v) as texture,
       count(*) as area
from objects
group by cell
"""


class Warehouse:
    def __init__(self, threads=2):
        self.con = duckdb.connect(config={"threads": threads})

    def build(self, plate, n):
        self.con.execute(CREATE.format(n=n, start=plate * n, cells=CELLS))
        self.con.execute(f"create or replace table profiles as {PROFILE}")  # cause

    def pages(self, columns):
        offset = 0
        while True:
            rows = self.con.execute(f"select {', '.join(columns)} from profiles limit {PAGE} offset {offset}").fetchnumpy()  # cause
            block = np.column_stack([np.asarray(rows[c], float) for c in columns])
            if not len(block):
                return
            yield block
            offset += PAGE

    def close(self):
        self.con.close()


def normalise(blocks):
    mean = np.mean([b.mean(0) for b in blocks[:1]], 0)
    std = blocks[0].std(0) + 1e-9
    return [(b - mean) / std for b in blocks]


def main(plates=6, n=600_000, seed=5):
    np.random.seed(seed)
    started = time.time()
    columns = ["dna", "rna", "er", "texture", "area"]
    with closing(Warehouse()) as house:
        blocks = []
        for plate in range(plates):
            house.build(plate, n)
            blocks.extend(normalise(list(house.pages(columns))))
    print(f"duckdb {duckdb.__version__}: {sum(map(len, blocks))} profiles in {len(blocks)} pages, {time.time() - started:.2f}s",
          file=sys.stderr)
    model = MiniBatchKMeans(5, random_state=seed, n_init=3, batch_size=256)
    for epoch in range(3):
        for block in blocks:
            model.partial_fit(block)
    held = blocks[-1]
    labels = model.predict(held)
    sizes = np.bincount(np.concatenate([model.predict(b) for b in blocks]), minlength=5)
    result = {"silhouette": float(silhouette_score(held, labels)), "sizes": sizes.tolist(),
              "centres": model.cluster_centers_[np.argsort(model.cluster_centers_[:, 0])].tolist()}
    with open("phenotypes.json", "w") as f:
        json.dump(result, f, indent=1)
    print("silhouette", round(result["silhouette"], 5), "sizes", sizes, time.strftime("%c"))


if __name__ == "__main__":
    main()
