"""Count k-mers of simulated reads with a pool of processes and one table.

Simulates shotgun reads of a small genome, lets several processes count the
k-mers of their share of the reads into one table in shared memory, and derives
the usual numbers: distinct and unique k-mers, the abundance histogram and an
estimate of genome size and coverage.

Modelled on: https://github.com/dib-lab/khmer/issues/1248
"""
import multiprocessing as mp
import time

import numpy as np

K = 10
GENOME = 60_000
READ_LENGTH = 100
N_READS = 90_000
BATCH = 250
WORKERS = 4
ERROR_RATE = 0.004
SEED = 1248


def simulate_reads(seed):
    """Return an array (reads, length) of bases coded as 0..3."""
    rng = np.random.default_rng(seed)
    genome = rng.integers(0, 4, GENOME, dtype=np.uint8)
    starts = rng.integers(0, GENOME - READ_LENGTH + 1, N_READS)
    reads = genome[starts[:, None] + np.arange(READ_LENGTH)]
    errors = rng.random(reads.shape) < ERROR_RATE
    shifts = rng.integers(1, 4, reads.shape, dtype=np.uint8)
    return np.where(errors, (reads + shifts) % 4, reads).astype(np.uint8)


def kmer_codes(reads):
    """Code every k-mer of every read as an integer."""
    width = reads.shape[1] - K + 1
    codes = np.zeros((reads.shape[0], width), dtype=np.int64)
    for offset in range(K):
        codes = codes * 4 + reads[:, offset:offset + width]
    return codes.ravel()


class SharedTable:
    """Table of counts that the worker processes fill together."""

    def __init__(self, context):
        self.raw = context.RawArray("I", 4 ** K)
        self.lock = context.Lock()
        self.done = context.Array("i", WORKERS)

    @property
    def counts(self):
        return np.frombuffer(self.raw, dtype=np.uint32)


def consume(table, reads, batches, worker):
    """Count the k-mers of the batches given to this worker."""
    counts = table.counts
    processed = 0
    for batch in batches:
        chunk = reads[batch * BATCH:(batch + 1) * BATCH]
        tally = np.bincount(kmer_codes(chunk), minlength=4 ** K).astype(np.uint32)
        counts[:] = counts + tally  # cause
        processed += len(chunk)
    with table.lock:
        table.done[worker] = processed


def count_parallel(reads):
    context = mp.get_context("fork")
    table = SharedTable(context)
    n_batches = -(-len(reads) // BATCH)
    jobs = []
    for worker in range(WORKERS):
        share = range(worker, n_batches, WORKERS)
        job = context.Process(target=consume, args=(table, reads, share, worker))
        job.start()
        jobs.append(job)
    for job in jobs:
        job.join()
        if job.exitcode:
            raise SystemExit(f"worker failed with {job.exitcode}")
    print("reads per worker", *table.done[:])
    if sum(table.done[:]) != len(reads):
        raise SystemExit("not all reads were counted")
    return table.counts.copy()


def histogram(counts, top=300):
    return np.bincount(np.minimum(counts, top), minlength=top + 1)


def coverage_peak(hist):
    """Most frequent abundance right of the error valley."""
    valley = 1 + int(np.argmin(hist[1:12]))
    return valley + int(np.argmax(hist[valley:-1]))


def main():
    started = time.perf_counter()
    reads = simulate_reads(SEED)
    print(f"{len(reads)} reads, k={K}")
    counts = count_parallel(reads)
    print(f"counted in {time.perf_counter() - started:.2f} s")

    hist = histogram(counts)
    np.savetxt("abundance.txt", np.column_stack([np.arange(len(hist)), hist]), fmt="%d")
    peak = coverage_peak(hist)
    total = int(counts.sum(dtype=np.int64))
    print("distinct k-mers", int((counts > 0).sum()))
    print("unique k-mers", int((counts == 1).sum()))
    print("total k-mers", total)
    print("coverage peak", peak, "genome estimate", round(total / max(peak, 1)))
    top = np.argsort(-counts.astype(np.int64), kind="stable")[:4]
    print("most abundant", " ".join(f"{t:05x}:{counts[t]}" for t in top))


if __name__ == "__main__":
    main()
