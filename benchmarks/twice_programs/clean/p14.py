"""TPC-B-like benchmark on SQLite with client threads, reporting as pgbench does.

Format: https://postgresql.org/message-id/attachment/118712/v9.0002.pgbench-barrier.patch (summary) and
https://github.com/postgrespro/postgres/commit/b6b8824ee771eecb84830903fad50a7f6853639d (per-transaction log pgbench_log.PID)
"""
import hashlib
import json
import math
import os
import random
import sqlite3
import sys
import tempfile
import threading
import time

SCALE, CLIENTS, TX_PER_CLIENT, SEED, PROGRESS = 2, 4, 9000, 31, 0.5
N_ACC, N_TELL = 2000 * SCALE, 10 * SCALE
LOG_LOCK = threading.Lock()
SCRIPT = ["BEGIN;", "UPDATE accounts;", "SELECT abalance;", "UPDATE tellers;", "UPDATE branches;", "INSERT INTO history;", "END;"]


def connect(path):
    c = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
    c.execute("PRAGMA synchronous=OFF")
    c.execute("PRAGMA journal_mode=WAL")
    return c


def init(path):
    err = lambda m: print(m, file=sys.stderr, flush=True)
    t0 = time.perf_counter()
    c = connect(path)
    err("dropping old tables...\ncreating tables...")
    c.executescript("""
        CREATE TABLE branches(bid INTEGER PRIMARY KEY, bbalance INT);
        CREATE TABLE tellers(tid INTEGER PRIMARY KEY, bid INT, tbalance INT);
        CREATE TABLE accounts(aid INTEGER PRIMARY KEY, bid INT, abalance INT);
        CREATE TABLE history(tid INT, bid INT, aid INT, delta INT, mtime TEXT, client INT);""")
    t1 = time.perf_counter()
    err("generating data (client-side)...")
    c.execute("BEGIN")
    c.executemany("INSERT INTO branches VALUES(?,0)", [(b,) for b in range(1, SCALE + 1)])
    c.executemany("INSERT INTO tellers VALUES(?,?,0)", [(t, (t - 1) // 10 + 1) for t in range(1, N_TELL + 1)])
    c.executemany("INSERT INTO accounts VALUES(?,?,0)", [(a, (a - 1) // 2000 + 1) for a in range(1, N_ACC + 1)])
    c.execute("COMMIT")
    t2 = time.perf_counter()
    err(f"{N_ACC} of {N_ACC} tuples (100%) done (elapsed {t2 - t1:.2f} s, remaining 0.00 s)\nvacuuming...")
    c.execute("VACUUM")
    t3 = time.perf_counter()
    err(f"done in {t3 - t0:.2f} s (drop tables 0.00 s, create tables {t1 - t0:.2f} s, client-side generate {t2 - t1:.2f} s, "
        f"vacuum {t3 - t2:.2f} s).")
    c.close()


class Client(threading.Thread):
    def __init__(self, no, path, barrier, log):
        super().__init__()
        self.no, self.path, self.barrier, self.log = no, path, barrier, log
        self.rng = random.Random(SEED * 1000 + no)
        self.lat, self.cmd, self.retries = [], [0.0] * len(SCRIPT), 0

    def timed(self, k, conn, sql, args=()):
        t = time.perf_counter()
        out = conn.execute(sql, args).fetchone()
        self.cmd[k] += time.perf_counter() - t
        return out

    def run(self):
        t0 = time.perf_counter()
        conn = connect(self.path)
        self.conn_time = time.perf_counter() - t0
        self.barrier.wait()
        for n in range(TX_PER_CLIENT):
            aid, tid = self.rng.randint(1, N_ACC), self.rng.randint(1, N_TELL)
            bid, delta = self.rng.randint(1, SCALE), self.rng.randint(-5000, 5000)
            t0 = time.perf_counter()
            self.timed(0, conn, "BEGIN IMMEDIATE")
            self.timed(1, conn, "UPDATE accounts SET abalance=abalance+? WHERE aid=?", (delta, aid))
            self.timed(2, conn, "SELECT abalance FROM accounts WHERE aid=?", (aid,))
            self.timed(3, conn, "UPDATE tellers SET tbalance=tbalance+? WHERE tid=?", (delta, tid))
            self.timed(4, conn, "UPDATE branches SET bbalance=bbalance+? WHERE bid=?", (delta, bid))
            self.timed(5, conn, "INSERT INTO history VALUES(?,?,?,?,strftime('%Y-%m-%d %H:%M:%f','now'),?)",
                       (tid, bid, aid, delta, self.no))
            self.timed(6, conn, "COMMIT")
            us = int((time.perf_counter() - t0) * 1e6)
            now = time.time()
            self.lat.append(us)
            with LOG_LOCK:
                self.log.write(f"{self.no} {n} {us} 0 {int(now)} {int(now % 1 * 1e6)}\n")
        conn.close()


def progress(clients, t0, stop):
    last, last_t = 0, t0
    while not stop.wait(PROGRESS):
        now = time.perf_counter()
        done = sum(len(c.lat) for c in clients)
        recent = [x for c in clients for x in c.lat[-50:]] or [0]
        m = sum(recent) / len(recent)
        sd = math.sqrt(sum((x - m) ** 2 for x in recent) / len(recent))
        print(f"progress: {now - t0:.1f} s, {(done - last) / (now - last_t):.1f} tps, lat {m / 1000:.3f} ms stddev {sd / 1000:.3f}, "
              "0 failed", file=sys.stderr, flush=True)
        last, last_t = done, now


def digest(conn, sql):
    h = hashlib.md5()
    n = 0
    for row in conn.execute(sql):
        h.update(repr(row).encode())
        n += 1
    return n, h.hexdigest()


def main():
    fd, path = tempfile.mkstemp(prefix="pgbench_", suffix=".db")
    os.close(fd)
    os.unlink(path)
    init(path)
    print(f"pgbench (15.1)\nstarting vacuum...end.\nusing database {path}", flush=True)
    barrier = threading.Barrier(CLIENTS + 1)
    with open(f"pgbench_log.{os.getpid()}", "w") as log:
        clients = [Client(i, path, barrier, log) for i in range(CLIENTS)]
        for c in clients:
            c.start()
        barrier.wait()
        t0, stop = time.perf_counter(), threading.Event()
        p = threading.Thread(target=progress, args=(clients, t0, stop))
        p.start()
        for c in clients:
            c.join()
        total = time.perf_counter() - t0
        stop.set()
        p.join()
    lat = sorted(x for c in clients for x in c.lat)
    n = len(lat)
    m = sum(lat) / n
    sd = math.sqrt(sum((x - m) ** 2 for x in lat) / n)
    print(f"transaction type: <builtin: TPC-B (sort of)>\nscaling factor: {SCALE}\nquery mode: simple\n"
          f"number of clients: {CLIENTS}\nnumber of threads: {CLIENTS}\nmaximum number of tries: 1\n"
          f"number of transactions per client: {TX_PER_CLIENT}\n"
          f"number of transactions actually processed: {n}/{CLIENTS * TX_PER_CLIENT}\nnumber of failed transactions: 0 (0.000%)")
    print(f"latency average = {m / 1000:.3f} ms\nlatency stddev = {sd / 1000:.3f} ms")
    print(f"initial connection time = {1000 * max(c.conn_time for c in clients):.3f} ms")
    print(f"tps = {n / total:.6f} (without initial connection time)")
    print("statement latencies in milliseconds and failures:")
    for k, s in enumerate(SCRIPT):
        print(f"       {1000 * sum(c.cmd[k] for c in clients) / n:8.3f}           0  {s}")
    conn = connect(path)
    sums = {t: conn.execute(f"SELECT sum({c}) FROM {t}").fetchone()[0]
            for t, c in (("accounts", "abalance"), ("tellers", "tbalance"), ("branches", "bbalance"), ("history", "delta"))}
    assert len(set(sums.values())) == 1, sums
    checks = {"accounts": digest(conn, "SELECT * FROM accounts ORDER BY aid"),
              "tellers": digest(conn, "SELECT * FROM tellers ORDER BY tid"),
              "history": digest(conn, "SELECT tid,bid,aid,delta,client FROM history ORDER BY 5,3,1,2,4")}
    print(f"consistency check: balance {sums['accounts']}")
    for t, (rows, h) in checks.items():
        print(f"  {t:<10} {rows:6d} rows  md5 {h}")
    with open("branches.csv", "w") as f:
        f.write("bid,bbalance,transactions\n")
        f.writelines(f"{b},{v},{k}\n" for b, v, k in conn.execute(
            "SELECT b.bid,bbalance,count(*) FROM branches b JOIN history h ON h.bid=b.bid GROUP BY 1 ORDER BY 1"))
    conn.close()
    with open("result.json", "w") as f:
        json.dump({"started": time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(time.time() - total)), "duration": total,
                   "tps": n / total, "latency_avg_ms": m / 1000, "latency_stddev_ms": sd / 1000,
                   "percentiles_ms": {q: lat[int(n * q / 100)] / 1000 for q in (50, 95, 99)},
                   "transactions": n, "balance": sums["accounts"], "checks": checks}, f, indent=2)
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.unlink(path + suffix)


if __name__ == "__main__":
    main()
