"""Collect the snapshots of web pages from several archives.

Providers answer with compressed indexes of snapshots; pages of the index are
decoded in worker threads, normalised and combined to one timeline per
domain, without duplicates.  Every snapshot of the timeline gets a number and
the provider which showed it first, and a table of the coverage is written.

Modelled on: https://github.com/agntn/archives/issues/1
"""
import asyncio
import hashlib
import json
import logging
import random
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("archives")

SEED = 305
DOMAINS = ["example.org", "library.test", "news.test", "weather.test"]
PROVIDERS = ["wayback", "memento", "commoncrawl", "permacc", "webcite", "ukwa"]
PAGES = 5
CONCURRENCY = 8


class Provider:
    """One archive with pages of its compressed index."""

    def __init__(self, name, rng):
        self.name = name
        self.pages = {}
        for domain in DOMAINS:
            for page in range(PAGES):
                self.pages[domain, page] = self.make_page(domain, page, rng)

    def make_page(self, domain, page, rng):
        lines = []
        for _ in range(rng.randrange(1100, 1300)):
            day = rng.randrange(1, 29)
            stamp = f"20{page:02d}{rng.randrange(1, 13):02d}{day:02d}"
            path = f"/{rng.choice('abcdefgh')}/{rng.randrange(40)}"
            size = rng.randrange(800, 90_000)
            lines.append(f"{stamp} {domain}{path} {size} {rng.choice(['200', '200', '200', '301', '404'])}")
        return zlib.compress("\n".join(lines).encode(), 6)

    async def fetch(self, domain, page):
        await asyncio.sleep(0)
        return self.pages[domain, page]


def decode(provider, payload):
    """Decompress one page of an index and parse its rows."""
    rows = []
    for line in zlib.decompress(payload).decode().splitlines():
        stamp, url, size, status = line.split(" ")
        if status != "200":
            continue
        digest = stamp
        for _ in range(12):
            digest = hashlib.sha1((digest + url).encode()).hexdigest()
        rows.append({"time": stamp, "url": url, "size": int(size), "digest": digest, "from": provider})
    return rows


class Collector:
    def __init__(self, providers, concurrency):
        self.providers = providers
        self.concurrency = concurrency
        self.pool = ThreadPoolExecutor(concurrency)

    async def process_batch(self, tasks):
        """Run some tasks side by side and give back what they found."""
        loop = asyncio.get_running_loop()
        results = []

        async def one(provider, domain, page):
            payload = await provider.fetch(domain, page)
            rows = await loop.run_in_executor(self.pool, decode, provider.name, payload)
            results.append({"provider": provider.name, "page": page, "rows": rows})  # cause

        await asyncio.gather(*(one(*task) for task in tasks))
        return results

    async def process_in_parallel(self, tasks):
        results = []
        for first in range(0, len(tasks), self.concurrency):
            results.extend(await self.process_batch(tasks[first:first + self.concurrency]))
        return results

    async def collect(self, domain):
        tasks = [(provider, domain, page) for page in range(PAGES) for provider in self.providers]
        return await self.process_in_parallel(tasks)


def combine(results):
    """One timeline; of equal snapshots the first seen one is kept."""
    seen, timeline = {}, []
    for result in results:
        for row in result["rows"]:
            key = (row["time"], row["url"])
            if key in seen:
                seen[key]["copies"] += 1
                continue
            entry = dict(row, copies=1)
            seen[key] = entry
            timeline.append(entry)
    timeline.sort(key=lambda entry: entry["time"])
    for number, entry in enumerate(timeline):
        entry["number"] = number
    return timeline


def coverage(timeline):
    table = {}
    for entry in timeline:
        year = entry["time"][:4]
        row = table.setdefault(entry["from"], {})
        row[year] = row.get(year, 0) + 1
    return {name: dict(sorted(table[name].items())) for name in sorted(table)}


def growth(timeline):
    """Mean change of page size from one snapshot to the next by url."""
    last, total, count = {}, 0, 0
    for entry in timeline:
        if entry["url"] in last:
            total += abs(entry["size"] - last[entry["url"]])
            count += 1
        last[entry["url"]] = entry["size"]
    return total / max(1, count)


async def gather_all(collector):
    report = {}
    for domain in DOMAINS:
        began = time.perf_counter()
        timeline = combine(await collector.collect(domain))
        log.info("%s: %d snapshots in %.2f s", domain, len(timeline), time.perf_counter() - began)
        report[domain] = timeline
    return report


def write_timeline(path, timeline):
    with open(path, "w") as handle:
        for entry in timeline:
            handle.write(json.dumps(entry, sort_keys=True) + "\n")


def main():
    rng = random.Random(SEED)
    providers = [Provider(name, rng) for name in PROVIDERS]
    collector = Collector(providers, CONCURRENCY)
    report = asyncio.run(gather_all(collector))
    collector.pool.shutdown()
    for domain, timeline in report.items():
        table = coverage(timeline)
        copies = sum(entry["copies"] for entry in timeline)
        print(f"{domain}: {len(timeline)} snapshots of {copies}, mean change {growth(timeline):.3f}")
        for name, row in table.items():
            print(f"  {name:<12} " + " ".join(f"{year}:{count}" for year, count in row.items()))
        print("  first", " ".join(entry["digest"][:8] for entry in timeline[:4]))
    write_timeline("timeline.jsonl", report[DOMAINS[0]])
    with open("coverage.json", "w") as handle:
        json.dump({domain: coverage(timeline) for domain, timeline in report.items()}, handle, indent=1)


if __name__ == "__main__":
    main()
