"""Composable iterable nodes: source, parallel mapper and batcher."""
import queue
import random
import threading

_STOP = object()


class Node:
    source = None

    def set_epoch(self, epoch):
        if self.source is not None:
            self.source.set_epoch(epoch)


class SamplerSource(Node):
    """Yields the items of a list, optionally permuted by seed and epoch."""

    def __init__(self, items, shuffle, seed):
        self.items, self.shuffle, self.seed, self.epoch = list(items), shuffle, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        order = list(range(len(self.items)))
        if self.shuffle:
            random.Random(self.seed * 1009 + self.epoch).shuffle(order)
        for k in order:
            yield self.items[k]


class ParallelMapper(Node):
    """Applies map_fn to the items of the source on worker threads."""

    def __init__(self, source, map_fn, num_workers, prefetch, in_order=True):
        self.source, self.map_fn = source, map_fn
        self.num_workers, self.prefetch, self.in_order = num_workers, prefetch, in_order

    def _work(self, in_q, out_q):
        while True:
            job = in_q.get()
            if job is _STOP:
                return
            k, item = job
            try:
                out_q.put((k, self.map_fn(item), None))
            except Exception as exc:
                out_q.put((k, None, exc))

    def _results(self, in_q, out_q):
        """Results as they become available, at most prefetch jobs in flight."""
        sent = received = 0
        for k, item in enumerate(self.source):
            in_q.put((k, item))
            sent += 1
            if sent - received >= self.prefetch:
                yield out_q.get()  # cause
                received += 1
        while received < sent:
            yield out_q.get()  # cause
            received += 1

    def __iter__(self):
        in_q, out_q = queue.Queue(), queue.Queue()
        threads = [threading.Thread(target=self._work, args=(in_q, out_q), daemon=True)
                   for _ in range(self.num_workers)]
        for th in threads:
            th.start()
        held, want = {}, 0
        try:
            for k, value, exc in self._results(in_q, out_q):
                if exc is not None:
                    raise exc
                if not self.in_order:
                    yield value
                    continue
                held[k] = value
                while want in held:
                    yield held.pop(want)
                    want += 1
        finally:
            for _ in threads:
                in_q.put(_STOP)
            for th in threads:
                th.join()


class Batcher(Node):
    def __init__(self, source, batch_size, collate_fn):
        self.source, self.batch_size, self.collate_fn = source, batch_size, collate_fn

    def __iter__(self):
        batch = []
        for item in self.source:
            batch.append(item)
            if len(batch) == self.batch_size:
                yield self.collate_fn(batch)
                batch = []
        if batch:
            yield self.collate_fn(batch)
