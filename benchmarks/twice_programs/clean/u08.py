"""Crawl a small book shop served on a free local port, write items and the crawl stats.

Modelled on: scrapy/scrapy (scrapy/extensions/corestats.py, memusage.py, logstats.py, feed exports)
and scrapy/booksbot: items.jl, items.csv, a log on stderr "[scrapy.core.engine] DEBUG: Crawled (200)
<GET ..>", "Dumping Scrapy stats:" with start_time, finish_time, elapsed_time_seconds, memusage/max,
download latency; a request-fingerprint SQLite cache with fetch times.
"""
import asyncio
import csv
import hashlib
import json
import logging
import os
import pprint
import random
import re
import sqlite3
import time
from datetime import datetime, timezone
from urllib.parse import urljoin, urlsplit

import psutil
from aiohttp import ClientSession, web

logging.basicConfig(level=logging.DEBUG, format="%(asctime)s [%(name)s] %(levelname)s: %(message)s",
                    datefmt="%Y-%m-%d %H:%M:%S")
logging.getLogger("asyncio").setLevel(logging.WARNING)
logging.getLogger("aiohttp").setLevel(logging.WARNING)
engine, scraper = logging.getLogger("scrapy.core.engine"), logging.getLogger("scrapy.core.scraper")
statslog = logging.getLogger("scrapy.statscollectors")
WORDS = "silent river amber garden winter machine paper moon iron harbour velvet letter glass orchard".split()


def catalogue(seed=7, n=60):
    rng = random.Random(seed)
    return [{"id": i, "title": " ".join(rng.sample(WORDS, 3)).title(), "price": round(rng.uniform(4, 60), 2),
             "stock": rng.randrange(25), "rating": rng.randint(1, 5)} for i in range(n)]


def make_app(books, per_page=12):
    pages = -(-len(books) // per_page)

    async def listing(request):
        n = int(request.match_info.get("n", 1))
        part = books[(n - 1) * per_page:n * per_page]
        links = "".join(f'<li><a class="book" href="/book/{b["id"]}">{b["title"]}</a></li>' for b in part)
        nxt = f'<a class="next" href="/page/{n + 1}">next</a>' if n < pages else ""
        return web.Response(text=f"<html><body><ul>{links}</ul>{nxt}<!-- served {time.time()} --></body></html>",
                            content_type="text/html")

    async def book(request):
        b = books[int(request.match_info["id"])]
        await asyncio.sleep(0.04)
        return web.Response(text=f'<h1>{b["title"]}</h1><p class="price">{b["price"]:.2f}</p>'
                                 f'<p class="stock">{b["stock"]}</p><p class="stars">{b["rating"]}</p>',
                            content_type="text/html")

    app = web.Application()
    app.add_routes([web.get("/", listing), web.get("/page/{n}", listing), web.get("/book/{id}", book)])
    return app


class Stats(dict):
    def inc(self, key, n=1):
        self[key] = self.get(key, 0) + n


class BooksSpider:
    name = "books"

    def __init__(self, base, concurrency=4):
        self.base, self.stats, self.seen, self.items = base, Stats(), set(), []
        self.sem = asyncio.Semaphore(concurrency)
        self.cache = sqlite3.connect("httpcache.db")
        self.cache.execute("create table pages (fingerprint text primary key, path text, status int, body_sha1 text, "
                           "fetched_at text, latency_s real)")

    async def fetch(self, session, url):
        async with self.sem:
            t = time.perf_counter()
            async with session.get(url) as resp:
                text = await resp.text()
        return url, resp.status, text, time.perf_counter() - t

    def crawled(self, url, status, text, latency, referer):
        path = urlsplit(url).path
        engine.debug("Crawled (%s) <GET %s> (referer: %s)", status, url, referer)
        self.stats.inc("downloader/request_count")
        self.stats.inc("response_received_count")
        self.stats.inc(f"downloader/response_status_count/{status}")
        self.stats["download_latency/max"] = max(latency, self.stats.get("download_latency/max", 0))
        clean = re.sub(r"<!--.*?-->", "", text)
        self.cache.execute("insert into pages values (?,?,?,?,?,?)",
                           (hashlib.sha1(b"GET " + path.encode()).hexdigest(), path, status,
                            hashlib.sha1(clean.encode()).hexdigest(), datetime.now(timezone.utc).isoformat(), latency))

    def parse_book(self, url, text):
        get = lambda pat: re.search(pat, text).group(1)
        return {"path": urlsplit(url).path, "title": get("<h1>(.*?)</h1>"), "price": float(get('price">(.*?)<')),
                "stock": int(get('stock">(.*?)<')), "rating": int(get('stars">(.*?)<'))}

    async def crawl(self):
        async with ClientSession() as session:
            url, referer = self.base + "/", None
            while url:
                url, status, text, lat = await self.fetch(session, url)
                self.crawled(url, status, text, lat, referer)
                hrefs = re.findall(r'class="book" href="(.*?)"', text)
                # gather keeps the order of the links, whichever answer comes first
                for r in await asyncio.gather(*[self.fetch(session, urljoin(url, h)) for h in hrefs]):
                    self.crawled(*r, referer=url)
                    item = self.parse_book(r[0], r[2])
                    scraper.debug("Scraped from <200 %s>\n%s", r[0], item)
                    self.items.append(item)
                    self.stats.inc("item_scraped_count")
                nxt = re.search(r'class="next" href="(.*?)"', text)
                referer, url = url, urljoin(url, nxt.group(1)) if nxt else None
        self.cache.commit()
        self.cache.close()


def export(items):
    with open("items.jl", "w") as f:
        f.writelines(json.dumps(i) + "\n" for i in items)
    with open("items.csv", "w", newline="") as f:
        w = csv.DictWriter(f, list(items[0]))
        w.writeheader()
        w.writerows(items)


async def main():
    runner = web.AppRunner(make_app(catalogue()))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    spider = BooksSpider(f"http://127.0.0.1:{port}")
    spider.stats["start_time"] = start = datetime.now(timezone.utc)
    spider.stats["memusage/startup"] = psutil.Process().memory_info().rss
    logging.getLogger("scrapy.extensions.telnet").info("Telnet Password: %s", os.urandom(8).hex())
    engine.info("Spider opened")
    await spider.crawl()
    export(spider.items)
    end = datetime.now(timezone.utc)
    spider.stats.update({"finish_time": end, "elapsed_time_seconds": (end - start).total_seconds(),
                         "finish_reason": "finished", "memusage/max": psutil.Process().memory_info().rss,
                         "items_per_minute": 60 * len(spider.items) / (end - start).total_seconds()})
    statslog.info("Dumping Scrapy stats:\n%s", pprint.pformat(dict(spider.stats)))
    engine.info("Spider closed (finished)")
    await runner.cleanup()
    by = {}
    for i in spider.items:
        by.setdefault(i["rating"], []).append(i)
    print("rating  books  in stock  mean price  stock value")
    for r in sorted(by):
        v = by[r]
        print(f"{r:6d} {len(v):6d} {sum(i['stock'] > 0 for i in v):9d} {sum(i['price'] for i in v) / len(v):11.3f} "
              f"{sum(i['price'] * i['stock'] for i in v):12.2f}")


if __name__ == "__main__":
    asyncio.run(main())
