"""Spreads the samples over threads."""
import queue
import threading

import numpy as np

from .simulate import sequential_sample


def _worker(system, seed, worker_id, tasks, shortfalls, errors):
    rng = np.random.default_rng([seed, worker_id])  # cause
    try:
        while True:
            index = tasks.get_nowait()  # cause
            shortfalls[index] = sequential_sample(system, rng)
    except queue.Empty:
        return
    except Exception as e:
        errors.append(e)


def assess(system, n_samples, seed, n_threads):
    tasks = queue.Queue()
    for i in range(n_samples):
        tasks.put(i)
    shortfalls = np.zeros((n_samples, system.hours))
    errors = []
    threads = [
        threading.Thread(target=_worker, args=(system, seed, w, tasks, shortfalls, errors))
        for w in range(n_threads)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]
    return shortfalls
