"""memload: load harness for a small "agent memory" HTTP service.

Starts the service on a local port, fills it with a generated corpus through a
few concurrent writers, then measures how well the service recalls memories for a
fixed list of probes.  The stored corpus is written to ``corpus.jsonl`` and the
recall table to ``recall.csv``.

Modelled on: https://github.com/rohitg00/agentmemory/pull/363
"""
import asyncio
import csv
import hashlib
import json
import logging
import math
import random
import time
from collections import Counter

import aiohttp
from aiohttp import web

log = logging.getLogger("memload")

BENCH_SEED = 20240
RECORDS = 900
CONCURRENCY = 8
TOPICS = ["deploy", "billing", "search", "auth", "metrics", "cache", "queue", "mail"]
VERBS = ["fixed", "broke", "reviewed", "planned", "measured", "deferred", "rewrote"]
NOUNS = ["handler", "index", "migration", "retry", "dashboard", "schema", "token",
         "worker", "timeout", "parser", "limit", "cursor"]
PROBES = ["fixed auth token", "broke billing schema", "measured cache limit",
          "rewrote search index", "planned queue worker", "reviewed mail parser",
          "deferred metrics dashboard", "fixed deploy migration"]


class MemoryService:
    """Keeps memories by id and answers queries with a bag-of-words score."""

    def __init__(self):
        self.records = {}
        self.frequency = Counter()

    def _digest(self, text):
        value = text.encode()
        for _ in range(400 + 40 * len(text)):
            value = hashlib.sha256(value).digest()
        return value.hex()[:16]

    async def remember(self, request):
        body = await request.json()
        loop = asyncio.get_running_loop()
        digest = await loop.run_in_executor(None, self._digest, body["content"])
        self.records[body["id"]] = {**body, "digest": digest}
        self.frequency.update(set(body["content"].split()))
        return web.json_response({"ok": True, "digest": digest})

    def _score(self, words, record):
        have = set(record["content"].split())
        total = len(self.records)
        return sum(math.log(1 + total / self.frequency[w])
                   for w in words if w in have) * record["importance"]

    async def recall(self, request):
        words = sorted(set(request.query["q"].split()))
        scored = [(round(self._score(words, r), 6), rid) for rid, r in self.records.items()]
        scored.sort(key=lambda item: (-item[0], item[1]))
        top = [{"id": rid, "score": score} for score, rid in scored[:5]]
        return web.json_response({"results": top})

    def app(self):
        app = web.Application()
        app.router.add_post("/remember", self.remember)
        app.router.add_get("/recall", self.recall)
        return app


def make_memory(rng, index):
    length = rng.randint(3, 9)
    words = [rng.choice(VERBS), rng.choice(TOPICS)]
    words += [rng.choice(NOUNS) for _ in range(length)]
    return {"id": index, "content": " ".join(words),
            "importance": round(rng.uniform(0.1, 1.0), 3)}


class Harness:
    def __init__(self, base_url, session):
        self.base_url = base_url
        self.session = session
        self.rng = random.Random(BENCH_SEED)
        self.errors = 0

    async def _writer(self, first):
        for index in range(first, RECORDS, CONCURRENCY):
            memory = make_memory(self.rng, index)  # cause
            async with self.session.post(self.base_url + "/remember", json=memory) as resp:
                if resp.status != 200:
                    self.errors += 1
                await resp.read()

    async def seed(self):
        started = time.perf_counter()
        await asyncio.gather(*[self._writer(k) for k in range(CONCURRENCY)])
        log.info("stored %d memories in %.2fs, %d errors", RECORDS,
                 time.perf_counter() - started, self.errors)

    async def measure(self):
        rows = []
        for probe in PROBES:
            async with self.session.get(self.base_url + "/recall", params={"q": probe}) as resp:
                answer = await resp.json()
            for rank, hit in enumerate(answer["results"], 1):
                rows.append((probe, rank, hit["id"], hit["score"]))
        return rows


def write_outputs(service, rows):
    with open("corpus.jsonl", "w") as fh:
        for rid in sorted(service.records):
            fh.write(json.dumps(service.records[rid], sort_keys=True) + "\n")
    with open("recall.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["probe", "rank", "id", "score"])
        writer.writerows(rows)


async def run():
    service = MemoryService()
    runner = web.AppRunner(service.app())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    async with aiohttp.ClientSession() as session:
        harness = Harness(f"http://127.0.0.1:{port}", session)
        await harness.seed()
        rows = await harness.measure()
    await runner.cleanup()
    write_outputs(service, rows)
    print("memories:", len(service.records))
    print("mean importance: %.4f" % (
        sum(service.records[i]["importance"] for i in sorted(service.records)) / RECORDS))
    for probe, rank, rid, score in rows:
        if rank == 1:
            print(f"{probe:30s} -> {rid:4d} ({score:.4f})")


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    asyncio.run(run())


if __name__ == "__main__":
    main()
