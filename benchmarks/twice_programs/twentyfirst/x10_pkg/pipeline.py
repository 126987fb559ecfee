"""Filters and outputs."""
import random
import re
from collections import defaultdict

LINE = re.compile(r"(\S+) (\S+) (\S+) (\d+) (\d+) ([\d.]+)")

CONDITIONS = {
    "any": lambda e: True,
    "ok": lambda e: e["status"] < 400,
    "error": lambda e: e["status"] >= 500,
    "slow": lambda e: e["latency"] > 45.0,
    "big": lambda e: e["bytes"] > 1200,
}


def grok(event):
    host, method, path, status, size, latency = LINE.match(event["message"]).groups()
    event.update(host=host, method=method, path=path, status=int(status),
                 bytes=min(int(size), 200000), latency=float(latency))


def mutate(event):
    event["level"] = "error" if event["status"] >= 500 else "info"


FILTERS = {"grok": grok, "mutate": mutate}


class Pipeline:
    """Runs events through the filters and offers them to every output.

    The outputs share one in-flight buffer: when it is full, an event that an
    output accepts is dropped until the next drain.
    """

    def __init__(self, config, capacity, seed):
        self.filters = [FILTERS[p.kind] for p in config.filters]
        self.outputs = config.outputs
        self.capacity = capacity
        self.rng = random.Random(seed)
        self.received = defaultdict(list)
        self.in_flight = 0
        self.seen = 0
        self.dropped = 0

    def process(self, event):
        for apply in self.filters:
            apply(event)
        self.seen += 1
        if self.seen % 1000 == 0:
            self.in_flight = 0
        for plugin in self.outputs:
            if not CONDITIONS[plugin.options["when"]](event):
                continue
            if self.rng.random() >= float(plugin.options["keep"]):
                continue
            if self.in_flight >= self.capacity:
                self.dropped += 1
                continue
            self.in_flight += 1
            self.received[plugin.options["name"]].append(event)

    def flush(self):
        return dict(self.received)
