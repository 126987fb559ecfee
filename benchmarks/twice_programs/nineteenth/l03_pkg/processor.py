"""Threaded paired-end processor, packs of reads per worker."""
import queue
import threading
from collections import Counter

from .trim import process_pair


def read_fastq(path):
    with open(path) as fh:
        while True:
            name = fh.readline().rstrip()
            if not name:
                return
            seq = fh.readline().rstrip()
            fh.readline()
            yield name, seq, fh.readline().rstrip()


def packs(path1, path2, size):
    pack = []
    for pair in zip(read_fastq(path1), read_fastq(path2)):
        pack.append(pair)
        if len(pack) == size:
            yield pack
            pack = []
    if pack:
        yield pack


class PairEndProcessor:
    def __init__(self, sink, threads=4, pack_size=100, min_len=30):
        self.sink = sink
        self.threads = threads
        self.pack_size = pack_size
        self.min_len = min_len
        self.stats = Counter()
        self.lock = threading.Lock()
        self.todo = queue.Queue(maxsize=16)

    def _consume(self):
        while True:
            pack = self.todo.get()
            if pack is None:
                return
            lines, stats = [], Counter()
            for pair in pack:
                keep, adapter, reads = process_pair(pair, self.min_len)
                stats["pairs"] += 1
                stats["adapter"] += adapter
                if not keep:
                    stats["too_short"] += 1
                    continue
                stats["kept"] += 1
                for name, seq, qual in reads:
                    stats["bases"] += len(seq)
                    lines.append(f"{name}\n{seq}\n+\n{qual}\n")
            block = "".join(lines)
            with self.lock:
                self.stats.update(stats)
                self.sink.write(block)  # cause

    def run(self, path1, path2):
        workers = [threading.Thread(target=self._consume) for _ in range(self.threads)]
        for w in workers:
            w.start()
        for pack in packs(path1, path2, self.pack_size):
            self.todo.put(pack)
        for _ in workers:
            self.todo.put(None)
        for w in workers:
            w.join()
        return dict(sorted(self.stats.items()))
