"""Crawl a small book shop served on localhost, logging and dumping stats as Scrapy does.

Log format: https://libraries.io/pypi/logparser/0.8.1 and
https://docs.scrapy.org/en/latest/_modules/scrapy/extensions/corestats.html
"""
import asyncio
import html
import json
import logging
import os
import pprint
import random
import re
import resource
from datetime import datetime, timezone

import aiohttp
from aiohttp import web

SEED, N_CATS, BOOKS_PER_CAT, PER_PAGE, CONCURRENCY = 21, 12, 45, 9, 8

logging.basicConfig(format="%(asctime)s [%(name)s] %(levelname)s: %(message)s",
                    datefmt="%Y-%m-%d %H:%M:%S", level=logging.DEBUG)
for noisy in ("asyncio", "aiohttp.access"):
    logging.getLogger(noisy).setLevel(logging.WARNING)


def build_shop():
    rng = random.Random(SEED)
    syll = ["ba", "ko", "ri", "ten", "mu", "sol", "var", "in", "del", "qua", "zi", "fer"]
    shop = {}
    bid = 0
    for c in range(N_CATS):
        books = []
        for _ in range(BOOKS_PER_CAT):
            bid += 1
            title = " ".join("".join(rng.choices(syll, k=rng.randint(2, 4))).title() for _ in range(rng.randint(1, 4)))
            books.append({"id": bid, "title": title, "price": round(rng.uniform(5, 80), 2),
                          "stock": rng.randint(0, 30), "stars": rng.randint(1, 5)})
        shop[c] = books
    return shop


class Shop:
    """The server: some pages are missing, some answer 503 to the first request."""

    def __init__(self):
        self.shop = build_shop()
        self.books = {b["id"]: b for bs in self.shop.values() for b in bs}
        self.seen = set()

    async def handle(self, request):
        path = request.path
        await asyncio.sleep(random.SystemRandom().uniform(0.005, 0.06))
        if path == "/":
            links = [f"/cat/{c}/1" for c in self.shop]
            return self.page("Shop", links)
        if m := re.fullmatch(r"/cat/(\d+)/(\d+)", path):
            c, p = int(m[1]), int(m[2])
            part = self.shop[c][(p - 1) * PER_PAGE:p * PER_PAGE]
            links = [f"/book/{b['id']}" for b in part] + ["/"]
            if p * PER_PAGE < BOOKS_PER_CAT:
                links.append(f"/cat/{c}/{p + 1}")
            return self.page(f"Category {c}", links)
        if m := re.fullmatch(r"/book/(\d+)", path):
            i = int(m[1])
            if i % 41 == 0:
                return web.Response(status=404, text="not found")
            if i % 29 == 0 and i not in self.seen:
                self.seen.add(i)
                return web.Response(status=503, text="busy")
            b = self.books[i]
            body = "".join(f'<span class="{k}">{html.escape(str(v))}</span>' for k, v in b.items())
            return self.page(b["title"], [f"/book/{(i * 7) % len(self.books) + 1}"], body)
        return web.Response(status=404, text="not found")

    @staticmethod
    def page(title, links, body=""):
        anchors = "".join(f'<a href="{l}">x</a>' for l in links)
        return web.Response(text=f"<html><h1>{html.escape(title)}</h1>{body}{anchors}</html>", content_type="text/html")


class Crawler:
    def __init__(self, base):
        self.base, self.stats, self.items, self.seen = base, {}, [], set()
        self.queue = asyncio.Queue()
        self.log = logging.getLogger("scrapy.core.engine")

    def inc(self, key, n=1):
        self.stats[key] = self.stats.get(key, 0) + n

    def schedule(self, path, referer=None, retry=0):
        if retry == 0:
            if path in self.seen:
                self.inc("dupefilter/filtered")
                return
            self.seen.add(path)
        self.inc("scheduler/enqueued")
        self.inc("scheduler/enqueued/memory")
        self.queue.put_nowait((path, referer, retry))

    async def worker(self, session):
        while True:
            path, referer, retry = await self.queue.get()
            try:
                await self.fetch(session, path, referer, retry)
            finally:
                self.queue.task_done()

    async def fetch(self, session, path, referer, retry):
        self.inc("scheduler/dequeued")
        self.inc("downloader/request_count")
        self.inc("downloader/request_method_count/GET")
        async with session.get(self.base + path) as resp:
            text = await resp.text()
        self.inc("downloader/response_count")
        self.inc(f"downloader/response_status_count/{resp.status}")
        self.inc("downloader/response_bytes", len(text))
        url = self.base + path
        if resp.status == 503:
            self.inc("retry/count")
            self.inc("retry/reason_count/503 Service Unavailable")
            logging.getLogger("scrapy.downloadermiddlewares.retry").debug(
                "Retrying <GET %s> (failed %d times): 503 Service Unavailable", url, retry + 1)
            return self.schedule(path, referer, retry + 1)
        self.log.debug("Crawled (%d) <GET %s> (referer: %s)", resp.status, url, referer)
        self.inc("response_received_count")
        if resp.status == 404:
            self.inc("httperror/response_ignored_count")
            self.inc("httperror/response_ignored_status_count/404")
            logging.getLogger("scrapy.spidermiddlewares.httperror").info(
                "Ignoring response <404 %s>: HTTP status code is not handled or not allowed", url)
            return
        if path.startswith("/book/"):
            f = dict(re.findall(r'<span class="(\w+)">(.*?)</span>', text))
            item = {"id": int(f["id"]), "title": html.unescape(f["title"]), "price": float(f["price"]),
                    "stock": int(f["stock"]), "stars": int(f["stars"]), "url": path}
            self.items.append(item)
            self.inc("item_scraped_count")
            logging.getLogger("scrapy.core.scraper").debug("Scraped from <200 %s>\n%s", url, item)
        for link in re.findall(r'href="(.*?)"', text):
            self.schedule(link, url)

    async def logstats(self):
        pages = items = 0
        while True:
            await asyncio.sleep(1.0)
            p, i = self.stats.get("response_received_count", 0), len(self.items)
            logging.getLogger("scrapy.extensions.logstats").info(
                "Crawled %d pages (at %d pages/min), scraped %d items (at %d items/min)",
                p, (p - pages) * 60, i, (i - items) * 60)
            pages, items = p, i


def rss():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def main():
    logging.getLogger("scrapy.utils.log").info("Scrapy 2.8.0 started (bot: bookshop), pid %d", os.getpid())
    app = web.Application()
    app.router.add_get("/{tail:.*}", Shop().handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    crawler = Crawler(f"http://127.0.0.1:{port}")
    start = datetime.now(timezone.utc)
    crawler.stats["start_time"] = start
    crawler.stats["memusage/startup"] = rss()
    crawler.log.info("Spider opened")
    async with aiohttp.ClientSession() as session:
        crawler.schedule("/")
        jobs = [asyncio.create_task(crawler.worker(session)) for _ in range(CONCURRENCY)]
        jobs.append(asyncio.create_task(crawler.logstats()))
        await crawler.queue.join()
        for j in jobs:
            j.cancel()
    await runner.cleanup()
    crawler.log.info("Closing spider (finished)")
    end = datetime.now(timezone.utc)
    crawler.stats.update({"finish_reason": "finished", "finish_time": end,
                          "elapsed_time_seconds": (end - start).total_seconds(), "memusage/max": rss()})
    logging.getLogger("scrapy.statscollectors").info("Dumping Scrapy stats:\n%s", pprint.pformat(crawler.stats))
    crawler.log.info("Spider closed (finished)")
    items = sorted(crawler.items, key=lambda i: i["id"])
    with open("items.jsonl", "w") as f:
        f.writelines(json.dumps(i) + "\n" for i in items)
    with open("stats.json", "w") as f:
        json.dump(crawler.stats, f, indent=1, default=str, sort_keys=True)
    value = sum(i["price"] * i["stock"] for i in items)
    print(f"{len(items)} books, stock value {value:.2f}")
    for s in range(1, 6):
        g = [i["price"] for i in items if i["stars"] == s]
        print(f"  {s} stars: {len(g):4d} books, mean price {sum(g) / len(g):.4f}")
    print(f"crawled in {(end - start).total_seconds():.2f} s")


if __name__ == "__main__":
    asyncio.run(main())
