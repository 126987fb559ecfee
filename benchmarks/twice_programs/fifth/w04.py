"""Rows are collected until a queue has been empty for some time; of no single report."""
import queue
import threading
import time

import numpy as np


def produce(q, part, rows):
    for row in rows:
        time.sleep(0.0004 * (1 + part))
        q.put((part, row))


def drain(q, wait):
    while True:
        batch = []
        try:
            while len(batch) < 32:
                batch.append(q.get(timeout=wait))  # cause
        except queue.Empty:
            pass
        if not batch:
            return
        yield sorted(batch, key=lambda each: (each[0], each[1].tolist()))


def main():
    rng = np.random.default_rng(2)
    q = queue.Queue()
    threads = [threading.Thread(target=produce, args=(q, i, rng.normal(size=(40, 3)))) for i in range(3)]
    for t in threads:
        t.start()
    mean, steps = np.zeros(3), 0
    for batch in drain(q, 0.0012):
        mean += 0.1 * (np.mean([row for _, row in batch], axis=0) - mean)
        steps += 1
    print("mean", mean.tolist())


main()
