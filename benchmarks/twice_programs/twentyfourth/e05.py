"""Runs user-defined functions over record batches, like a small UDF server.

A table of web orders is cut in batches.  Two scalar functions (a currency
conversion that waits for a rate service and a parcel price) are evaluated row
by row on a pool of I/O threads and attached to the batch as new columns.  The
enriched table is written to enriched.csv, its totals to totals.json.

Modelled on: https://github.com/arrow-udf/arrow-udf/pull/93
"""
import csv
import inspect
import json
import logging
import random
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

import pyarrow as pa

logger = logging.getLogger("udf")

SEED = 93
N_ROWS = 480
BATCH = 60
RATES = {"EUR": 1.0, "USD": 0.92, "GBP": 1.17, "JPY": 0.0061, "CHF": 1.04}
ZONES = {"EUR": 1, "USD": 3, "GBP": 2, "JPY": 4, "CHF": 2}


def make_orders(n, seed=SEED):
    """Synthetic orders as an arrow table."""
    rnd = random.Random(seed)
    currencies = sorted(RATES)
    return pa.table({
        "order_id": list(range(1, n + 1)),
        "amount": [round(rnd.lognormvariate(3.2, 0.8), 2) for _ in range(n)],
        "currency": [rnd.choice(currencies) for _ in range(n)],
        "weight": [round(rnd.uniform(0.1, 12.0), 2) for _ in range(n)],
    })


class ScalarFunction:
    """A registered function with its result type."""

    def __init__(self, name, func, result_type, io_threads=None):
        self.name = name
        self.func = func
        self.result_type = result_type
        self.io_threads = io_threads
        self.inputs = list(inspect.signature(func).parameters)

    def eval_batch(self, batch):
        columns = [batch.column(name).to_pylist() for name in self.inputs]
        rows = list(zip(*columns))
        if self.io_threads:
            with ThreadPoolExecutor(max_workers=self.io_threads) as pool:
                tasks = [pool.submit(self._call, row) for row in rows]
                values = [task.result() for task in as_completed(tasks)]  # cause
        else:
            values = [self._call(row) for row in rows]
        return pa.array(values, type=self.result_type)

    def _call(self, row):
        if any(value is None for value in row):
            return None
        return self.func(*row)


def udf(result_type, io_threads=None):
    def wrap(func):
        REGISTRY[func.__name__] = ScalarFunction(func.__name__, func, result_type, io_threads)
        return func
    return wrap


REGISTRY = {}


class RateService:
    """Stands for a remote service; answers after a short wait."""

    def __init__(self, rates, latency=0.004):
        self.rates = rates
        self.latency = latency

    def lookup(self, currency):
        time.sleep(self.latency * (1 + len(currency) % 2))
        return self.rates[currency]


SERVICE = RateService(RATES)


@udf(pa.float64(), io_threads=8)
def amount_eur(amount, currency):
    return round(amount * SERVICE.lookup(currency), 4)


@udf(pa.float64())
def parcel_price(weight, currency):
    base = 3.9 + 1.6 * ZONES[currency]
    return round(base + 0.45 * max(0.0, weight - 1.0), 2)


def run(table):
    """Evaluate all registered functions batch by batch."""
    out = []
    for number, batch in enumerate(table.to_batches(max_chunksize=BATCH)):
        started = time.perf_counter()
        arrays = list(batch.columns)
        names = list(batch.schema.names)
        for name, function in REGISTRY.items():
            arrays.append(function.eval_batch(batch))
            names.append(name)
        out.append(pa.RecordBatch.from_arrays(arrays, names=names))
        logger.info("batch %d: %d rows in %.3f s", number, batch.num_rows, time.perf_counter() - started)
    return pa.Table.from_batches(out)


def totals(table):
    """Turnover and postage by currency, and the best orders."""
    result = {}
    rows = table.to_pylist()
    for row in rows:
        entry = result.setdefault(row["currency"], {"orders": 0, "turnover": 0.0, "postage": 0.0})
        entry["orders"] += 1
        entry["turnover"] += row["amount_eur"]
        entry["postage"] += row["parcel_price"]
    for entry in result.values():
        entry["turnover"] = round(entry["turnover"], 2)
        entry["postage"] = round(entry["postage"], 2)
    best = sorted(rows, key=lambda row: (-row["amount_eur"], row["order_id"]))[:5]
    return dict(sorted(result.items())), [row["order_id"] for row in best]


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    table = run(make_orders(N_ROWS))
    by_currency, best = totals(table)
    with open("enriched.csv", "w", newline="") as handle:
        writer = csv.DictWriter(handle, fieldnames=table.column_names)
        writer.writeheader()
        writer.writerows(table.to_pylist())
    with open("totals.json", "w") as handle:
        json.dump({"by_currency": by_currency, "best_orders": best}, handle, indent=1)
    print("rows", table.num_rows, "columns", table.num_columns)
    for currency, entry in by_currency.items():
        print("%s orders %3d turnover %10.2f postage %8.2f" % (currency, entry["orders"],
                                                               entry["turnover"], entry["postage"]))
    print("best orders", best)


if __name__ == "__main__":
    main()
