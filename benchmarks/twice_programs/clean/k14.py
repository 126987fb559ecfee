"""Nightly sales report: pandas + DuckDB ETL.

Modelled on practicalbusinesspython.com's pandas report scripts (chris1610/pbpython) and duckdb/duckdb
"SQL on pandas" examples: extract CSVs, clean, join in SQL, anomaly flag with IsolationForest, write parquet,
HTML ("Generated at ..."), Markdown, gzip CSV, an ETL audit table in a DuckDB file, rotating log file.
"""
import getpass
import hashlib
import logging
import os
import platform
import socket
import sys
import tempfile
import time
import uuid
from datetime import datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest

BATCH_ID = uuid.uuid4()
LOG = logging.getLogger('sales_report')
STEPS = []


def setup_logging():
    Path('logs').mkdir(exist_ok=True)
    fmt = logging.Formatter('%(asctime)s.%(msecs)03d [%(process)d] [%(threadName)s] %(levelname)-7s %(name)s:%(lineno)d - %(message)s', '%Y-%m-%d %H:%M:%S')
    LOG.setLevel(logging.INFO)
    for h in (logging.StreamHandler(sys.stdout), RotatingFileHandler('logs/sales_report.log', maxBytes=1_000_000, backupCount=3)):
        h.setFormatter(fmt)
        LOG.addHandler(h)


def step(func):
    def wrapper(*a, **k):
        t0, started = time.perf_counter(), datetime.now()
        out = func(*a, **k)
        dt = time.perf_counter() - t0
        rows = len(out) if hasattr(out, '__len__') else 0
        STEPS.append((str(BATCH_ID), func.__name__, rows, started, round(dt, 4)))
        LOG.info('step %-14s rows=%-7d took %.3fs (%.0f rows/s)', func.__name__, rows, dt, rows / dt)
        return out
    return wrapper


@step
def extract():
    rng = np.random.default_rng(77)
    n, raw = 120_000, Path('raw')
    raw.mkdir(exist_ok=True)
    pd.DataFrame({'customer_id': range(600), 'region': rng.choice(['North', 'South', 'East', 'West'], 600),
                  'segment': rng.choice(['SMB', 'Enterprise', 'Consumer'], 600, p=[.3, .1, .6])}).to_csv(raw / 'customers.csv', index=False)
    pd.DataFrame({'sku': [f'SKU-{i:03d}' for i in range(80)], 'category': rng.choice(['Books', 'Toys', 'Garden', 'Audio'], 80),
                  'price': rng.gamma(3, 12, 80).round(2)}).to_csv(raw / 'products.csv', index=False)
    days = pd.date_range('2023-01-01', '2023-12-31')
    orders = pd.DataFrame({'order_id': np.arange(n), 'date': rng.choice(days, n), 'customer_id': rng.integers(0, 620, n),
                           'sku': [f'SKU-{i:03d}' for i in rng.zipf(1.6, n) % 80], 'qty': rng.poisson(2, n) + 1, 'discount': rng.choice([0, .05, .1, .2], n)})
    orders.loc[rng.random(n) < .004, 'qty'] *= 50
    orders = pd.concat([orders, orders.sample(200, random_state=5)])
    orders.to_csv(raw / 'orders.csv', index=False)
    return orders


@step
def clean():
    o = pd.read_csv('raw/orders.csv', parse_dates=['date']).drop_duplicates('order_id')
    known = pd.read_csv('raw/customers.csv').customer_id
    bad = ~o.customer_id.isin(known)
    LOG.warning('%d orders with unknown customers moved to rejects', bad.sum())
    o[bad].to_csv('rejects.csv.gz', index=False)
    return o[~bad].sort_values('order_id', ignore_index=True)


@step
def enrich(con, orders):
    con.register('orders_df', orders)
    return con.execute("""
        SELECT o.order_id, o.date, c.region, c.segment, p.category, o.qty, round(o.qty * p.price * (1 - o.discount), 2) AS revenue
        FROM orders_df o JOIN read_csv_auto('raw/customers.csv') c USING (customer_id) JOIN read_csv_auto('raw/products.csv') p USING (sku)
        ORDER BY o.order_id""").df()


@step
def anomalies(fact):
    daily = fact.groupby('date').agg(revenue=('revenue', 'sum'), orders=('order_id', 'size'), max_order=('revenue', 'max'))
    iso = IsolationForest(n_estimators=80, contamination=0.03, random_state=0).fit(daily.values)
    pred, score = iso.predict(daily.values), iso.decision_function(daily.values)
    return daily.assign(score=score)[pred == -1].sort_values('score')


@step
def pivot(fact):
    p = fact.pivot_table(index=['region', 'segment'], columns='category', values='revenue', aggfunc='sum', margins=True, margins_name='Total')
    return p.round(2)


def publish(name, write):
    """Write to a temporary name first, then rename, like a good nightly job."""
    fd, tmp = tempfile.mkstemp(prefix=f'.{name}.', dir='.')
    os.close(fd)
    write(tmp)
    LOG.info('wrote %s -> %s (%d bytes)', os.path.basename(tmp), name, os.path.getsize(tmp))
    os.replace(tmp, name)


def main():
    setup_logging()
    t0 = time.time()
    LOG.info('batch %s started by %s on %s (%s)', BATCH_ID, getpass.getuser(), socket.gethostname(), platform.release())
    con = duckdb.connect('warehouse.duckdb')
    con.execute('SET threads TO 1')
    extract()
    fact = enrich(con, clean())
    odd, table = anomalies(fact), pivot(fact)
    monthly = fact.groupby(fact.date.dt.strftime('%Y-%m')).revenue.agg(['sum', 'mean', 'count'])
    monthly['growth_pct'] = monthly['sum'].pct_change() * 100
    fact.to_parquet('fact_sales.parquet', index=False)
    con.register('m', monthly.reset_index())
    con.execute('CREATE OR REPLACE TABLE monthly AS SELECT * FROM m')
    con.execute('CREATE TABLE IF NOT EXISTS etl_audit (batch_id VARCHAR, step VARCHAR, n INTEGER, started_at TIMESTAMP, seconds DOUBLE)')
    con.executemany('INSERT INTO etl_audit VALUES (?, ?, ?, ?, ?)', STEPS)
    con.close()
    stamp = datetime.now()
    publish('report.html', lambda p: Path(p).write_text(
        f'<html><head><title>Sales 2023</title></head><body><h1>Sales report</h1>{table.to_html()}<h2>Monthly</h2>{monthly.to_html(float_format="%.2f")}'
        f'<h2>Anomalous days</h2>{odd.to_html(float_format="%.4f")}<footer>Generated at {stamp:%d %b %Y %H:%M:%S} in {time.time() - t0:.2f} s, batch {BATCH_ID}</footer></body></html>'))
    digest = hashlib.sha256(pd.util.hash_pandas_object(fact).values.tobytes()).hexdigest()
    publish('REPORT.md', lambda p: Path(p).write_text(
        f'# Sales {fact.date.min():%Y-%m-%d} .. {fact.date.max():%Y-%m-%d}\n\n_Report date: {stamp:%Y-%m-%d %H:%M}_\n\n- rows: {len(fact)}\n- revenue: {fact.revenue.sum():.2f}\n'
        f'- data checksum: `{digest}`\n\n```\n{monthly.to_string(float_format="%.2f")}\n```\n'))
    print(table.to_string())
    print(monthly.to_string(float_format='%.2f'))
    LOG.info('batch %s finished: %d rows, revenue %.2f, %d anomalous days, elapsed %s', BATCH_ID, len(fact), fact.revenue.sum(), len(odd), datetime.now() - stamp)
    LOG.info('total %.2f s', time.time() - t0)


if __name__ == '__main__':
    main()
