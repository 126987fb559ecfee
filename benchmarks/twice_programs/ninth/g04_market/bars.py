"""Aggregation of a trade tape to five-minute bars with DuckDB."""
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def write_tape(path, symbols, trades, seed, row_group=40000):
    """Simulate a day of trades, ordered by time as an exchange would deliver them."""
    rng = np.random.default_rng(seed)
    ms = np.sort(rng.integers(0, 8 * 3600 * 1000, trades))
    sym = rng.integers(0, symbols, trades)
    price = np.empty(trades)
    for s in range(symbols):
        k = np.flatnonzero(sym == s)
        drift = 0.02 * np.sin(np.arange(len(k)) / rng.uniform(500, 4000))
        price[k] = rng.uniform(20, 200) * np.exp(np.cumsum(rng.normal(0, 2e-4, len(k))) + drift)
    base = np.datetime64("2024-03-04T08:00:00", "ms")
    table = pa.table({
        "trade_id": np.arange(trades),
        "symbol": np.char.add("S", sym.astype(str)),
        "ts": base + ms.astype("timedelta64[ms]"),
        "price": np.round(price, 4),
        "size": rng.integers(1, 400, trades),
    })
    pq.write_table(table, path, row_group_size=row_group)
    return trades


def make_bars(db_path, tape_path, threads):
    con = duckdb.connect(db_path)
    con.execute(f"SET threads = {threads}")
    tape = con.sql(f"SELECT *, time_bucket(INTERVAL '5 minutes', ts) AS bar FROM read_parquet('{tape_path}')")
    bars = tape.aggregate("symbol, bar, min(price) AS low, max(price) AS high, last(price) AS close, sum(size) AS volume, count(*) AS trades", "symbol, bar")  # cause
    bars.order("symbol, bar").create("bars")
    df = con.execute("SELECT symbol, bar, low, high, close, volume, trades FROM bars ORDER BY symbol, bar").df()
    con.close()
    return df
