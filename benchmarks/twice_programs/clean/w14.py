"""Asynchronous document indexer: simulated fetchers with retries and rate limits, a TF-IDF index,
and a SQLite database with fetch log and results."""
import asyncio
import hashlib
import json
import logging
import math
import os
import random
import re
import secrets
import sqlite3
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

DB = Path("index/docs.sqlite")
N_DOCS = 200
CONCURRENCY = 12
MAX_RETRIES = 3
SEED = 2718
TOPICS = {
    "astro": "star planet orbit telescope galaxy comet nebula gravity light dust".split(),
    "cook": "onion butter oven simmer garlic dough pepper pan sauce salt".split(),
    "sail": "wind mast harbor rope tide anchor deck rudder knot sail".split(),
    "code": "loop array cache thread compiler pointer stack queue parser test".split(),
}
FILLER = "the of and in to with for on at by from over under about very some many few".split()


class ColorFormatter(logging.Formatter):
    COLORS = {"INFO": "\033[32m", "WARNING": "\033[33m", "ERROR": "\033[31m", "DEBUG": "\033[36m"}

    def format(self, record):
        ms = f"{record.relativeCreated:9.1f}ms"
        return f"{self.COLORS.get(record.levelname, '')}{record.levelname:<7}\033[0m {ms} [{record.name}] {record.getMessage()}"


log = logging.getLogger("indexer")


def setup():
    DB.parent.mkdir(exist_ok=True)
    h = logging.StreamHandler(sys.stdout)
    h.setFormatter(ColorFormatter())
    fh = logging.FileHandler(DB.parent / f"indexer.{os.getpid()}.log")
    fh.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(taskName)s %(message)s" if sys.version_info >= (3, 12)
                                      else "%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(h)
    log.addHandler(fh)
    log.setLevel(logging.INFO)


class FakeServer:
    """Content depends only on the document id; latency and the moment of an answer do not matter."""

    def __init__(self, seed):
        self.seed = seed
        self.failures = defaultdict(int)

    def body(self, doc_id):
        r = random.Random(f"{self.seed}/{doc_id}")
        topic = r.choice(sorted(TOPICS))
        other = r.choice(sorted(TOPICS))
        words = [r.choice(TOPICS[topic]) if r.random() < 0.4 else r.choice(TOPICS[other]) if r.random() < 0.2
                 else r.choice(FILLER) for _ in range(r.randint(120, 400))]
        return topic, " ".join(words)

    async def get(self, doc_id):
        await asyncio.sleep(random.SystemRandom().uniform(0.02, 0.12))
        r = random.Random(f"fail/{self.seed}/{doc_id}")
        will_fail = 0 if r.random() > 0.12 else r.randint(1, 2)
        if self.failures[doc_id] < will_fail:
            self.failures[doc_id] += 1
            raise ConnectionError("503 Service Unavailable")
        return self.body(doc_id)


@dataclass
class Stats:
    started: float = field(default_factory=time.monotonic)
    fetched: int = 0
    retries: int = 0
    bytes: int = 0
    latencies: list = field(default_factory=list)


async def fetch(server, doc_id, sem, stats, conn):
    request_id = secrets.token_hex(6)
    async with sem:
        for attempt in range(1, MAX_RETRIES + 1):
            t0 = time.perf_counter()
            try:
                topic, text = await server.get(doc_id)
            except ConnectionError as e:
                stats.retries += 1
                log.warning("doc %d: %s (attempt %d, request %s)", doc_id, e, attempt, request_id)
                await asyncio.sleep(0.02 * attempt)
                continue
            dt = time.perf_counter() - t0
            stats.latencies.append(dt)
            stats.fetched += 1
            stats.bytes += len(text)
            conn.execute("INSERT INTO fetch_log(doc_id, request_id, attempt, latency_ms, fetched_at) VALUES (?,?,?,?,?)",
                         (doc_id, request_id, attempt, dt * 1e3, datetime.now().isoformat()))
            if stats.fetched % 40 == 0:
                el = time.monotonic() - stats.started
                log.info("%d/%d documents, %.1f docs/s, %.1f KiB/s", stats.fetched, N_DOCS, stats.fetched / el,
                         stats.bytes / 1024 / el)
            return doc_id, topic, text
    raise RuntimeError(f"doc {doc_id}: too many failures")


def create_schema(conn):
    conn.executescript("""
    CREATE TABLE fetch_log(id INTEGER PRIMARY KEY AUTOINCREMENT, doc_id INT, request_id TEXT, attempt INT,
                           latency_ms REAL, fetched_at TEXT);
    CREATE TABLE documents(doc_id INTEGER PRIMARY KEY, topic TEXT, n_tokens INT, sha1 TEXT);
    CREATE TABLE postings(term TEXT, doc_id INT, tf INT, weight REAL, PRIMARY KEY(term, doc_id));
    CREATE TABLE runs(run_id TEXT PRIMARY KEY, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, pid INT, duration REAL,
                      n_docs INT, n_terms INT);
    """)


def build_index(docs, conn):
    t0 = time.perf_counter()
    tfs = {d: Counter(re.findall(r"[a-z]+", text)) for d, _, text in docs}
    df = Counter(term for tf in tfs.values() for term in tf)
    vectors = {}
    for d, topic, text in docs:
        vec = {t: (1 + math.log(c)) * math.log((1 + len(docs)) / (1 + df[t])) for t, c in sorted(tfs[d].items())}
        norm = math.sqrt(sum(w * w for w in vec.values()))
        vectors[d] = {t: w / norm for t, w in vec.items()}
        conn.execute("INSERT INTO documents VALUES (?,?,?,?)",
                     (d, topic, sum(tfs[d].values()), hashlib.sha1(text.encode()).hexdigest()))
        conn.executemany("INSERT INTO postings VALUES (?,?,?,?)", [(t, d, tfs[d][t], w) for t, w in vectors[d].items()])
    conn.commit()
    log.info("indexed %d documents, %d terms in %.1f ms", len(docs), len(df), (time.perf_counter() - t0) * 1e3)
    return vectors, df


def search(conn, query, k=5):
    terms = sorted(set(query.split()))
    marks = ",".join("?" * len(terms))
    return conn.execute(f"""SELECT p.doc_id, d.topic, sum(p.weight) AS score FROM postings p JOIN documents d USING(doc_id)
                            WHERE p.term IN ({marks}) GROUP BY p.doc_id ORDER BY score DESC, p.doc_id LIMIT ?""",
                        (*terms, k)).fetchall()


def knn_eval(vectors, topics, k=7):
    ids = sorted(vectors)
    correct = 0
    for a in ids:
        sims = sorted(((sum(w * vectors[b].get(t, 0.0) for t, w in vectors[a].items()), b) for b in ids if b != a),
                      key=lambda s: (-s[0], s[1]))[:k]
        votes = Counter(topics[b] for _, b in sims)
        correct += max(sorted(votes), key=votes.get) == topics[a]
    return correct / len(ids)


async def progress(stats):
    while True:
        await asyncio.sleep(0.25)
        print(f"\r  {stats.fetched:>3} done, {time.monotonic() - stats.started:4.1f}s", end="", file=sys.stderr)


async def crawl(conn):
    stats, sem, server = Stats(), asyncio.Semaphore(CONCURRENCY), FakeServer(SEED)
    spinner = asyncio.create_task(progress(stats))
    tasks = [asyncio.create_task(fetch(server, d, sem, stats, conn), name=f"fetch-{d}") for d in range(N_DOCS)]
    docs = [await t for t in asyncio.as_completed(tasks)]
    spinner.cancel()
    print(file=sys.stderr)
    return sorted(docs), stats


def main():
    setup()
    run_id = datetime.now().strftime("%Y%m%dT%H%M%S-") + secrets.token_hex(2)
    log.info("run %s starting", run_id)
    t0 = time.time()
    conn = sqlite3.connect(DB)
    create_schema(conn)
    docs, stats = asyncio.run(crawl(conn))
    lat = sorted(stats.latencies)
    log.info("crawl: %d docs, %d retries, latency p50 %.1f ms p95 %.1f ms", stats.fetched, stats.retries,
             lat[len(lat) // 2] * 1e3, lat[int(len(lat) * 0.95)] * 1e3)
    vectors, df = build_index(docs, conn)
    topics = {d: t for d, t, _ in docs}
    acc = knn_eval(vectors, topics)
    results = {}
    for q in ("star orbit light", "garlic butter sauce", "anchor rope tide wind", "thread cache queue"):
        results[q] = [(d, t, round(s, 6)) for d, t, s in search(conn, q)]
        print(f"query: {q!r}")
        for d, t, s in results[q]:
            print(f"   {s:.4f}  doc {d:>3} [{t}]")
    conn.execute("INSERT INTO runs(run_id, pid, duration, n_docs, n_terms) VALUES (?,?,?,?,?)",
                 (run_id, os.getpid(), time.time() - t0, len(docs), len(df)))
    conn.commit()
    conn.close()
    with open(DB.parent / "results.json", "w") as f:
        json.dump({"queries": results, "knn_accuracy": acc, "top_terms": df.most_common(15), "retries": stats.retries,
                   "docs_sha": hashlib.sha256("".join(x[2] for x in docs).encode()).hexdigest()}, f, indent=1)
    log.info("leave-one-out kNN accuracy %.4f; run took %.2fs", acc, time.time() - t0)


if __name__ == "__main__":
    main()
