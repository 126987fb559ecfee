"""Asyncio crawler against a local aiohttp shop with item pipelines and a final stats dump, in the style of scrapy/quotesbot."""
import argparse
import asyncio
import gzip
import json
import logging
import pprint
import re
import resource
import sqlite3
import time
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import urljoin

import aiohttp
from aiohttp import web
from faker import Faker

logger = logging.getLogger("shopbot")
PER_PAGE = 10
CATEGORIES = ["books", "garden", "kitchen", "music", "toys"]


def make_catalogue(n):
    fake = Faker()
    fake.seed_instance(4321)
    items = []
    for i in range(n):
        items.append({"sku": f"SKU{i:05d}", "title": fake.catch_phrase(), "vendor": fake.company(),
                      "category": CATEGORIES[i % len(CATEGORIES)], "price": fake.random_int(100, 99999) / 100,
                      "rating": fake.random_int(1, 5), "stock": fake.random_int(0, 40)})
    return items


def build_app(items):
    by_sku = {it["sku"]: it for it in items}
    by_cat = {c: [it for it in items if it["category"] == c] for c in CATEGORIES}

    def page(body):
        return web.Response(text=f"<html><body>{body}</body></html>", content_type="text/html")

    async def index(_):
        return page("".join(f'<a class="cat" href="/c/{c}?page=1">{c}</a>' for c in CATEGORIES))

    async def category(request):
        c, p = request.match_info["cat"], int(request.query.get("page", 1))
        chunk = by_cat[c][(p - 1) * PER_PAGE: p * PER_PAGE]
        links = "".join(f'<a class="item" href="/i/{it["sku"]}">{it["title"]}</a>' for it in chunk)
        more = f'<a class="next" href="/c/{c}?page={p + 1}">next</a>' if p * PER_PAGE < len(by_cat[c]) else ""
        return page(links + more)

    async def item(request):
        sku = request.match_info["sku"]
        if int(sku[3:]) % 41 == 40:
            raise web.HTTPNotFound(text="gone")
        it = by_sku[sku]
        await asyncio.sleep(0.003)
        return page("".join(f'<span class="{k}">{v}</span>' for k, v in it.items()))

    app = web.Application()
    app.add_routes([web.get("/", index), web.get("/c/{cat}", category), web.get("/i/{sku}", item)])
    return app


class Stats(dict):
    def inc(self, key, n=1):
        self[key] = self.get(key, 0) + n


class Spider:
    name = "shop"

    def __init__(self, base, concurrency):
        self.base, self.sem = base, asyncio.Semaphore(concurrency)
        self.stats, self.items, self.seen = Stats(), [], set()
        self.latencies = []

    async def fetch(self, session, path):
        async with self.sem:
            t0 = time.perf_counter()
            async with session.get(urljoin(self.base, path)) as resp:
                body = await resp.text()
            self.latencies.append(time.perf_counter() - t0)
        self.stats.inc("downloader/request_count")
        self.stats.inc(f"downloader/response_status_count/{resp.status}")
        self.stats.inc("downloader/response_body_bytes", len(body))
        return resp.status, body, datetime.now(timezone.utc).isoformat()

    async def crawl(self, session):
        _, body, _ = await self.fetch(session, "/")
        frontier = re.findall(r'class="cat" href="([^"]+)"', body)
        depth = 1
        while frontier:
            todo = [u for u in frontier if u not in self.seen]
            self.stats.inc("dupefilter/filtered", len(frontier) - len(todo))
            self.seen.update(todo)
            pages = await asyncio.gather(*(self.fetch(session, u) for u in todo))
            frontier = []
            for url, (status, body, when) in zip(todo, pages):
                logger.debug(f"Crawled ({status}) <GET {self.base}{url}> (depth {depth})")
                if status != 200:
                    logger.info(f"Ignoring response <{status} {url}>: HTTP status code is not handled or not allowed")
                    continue
                if url.startswith("/i/"):
                    self.parse_item(url, body, when)
                frontier += re.findall(r'class="(?:item|next)" href="([^"]+)"', body)
            depth += 1
            self.stats["request_depth_max"] = depth
            logger.info(f"Crawled {self.stats['downloader/request_count']} pages, scraped {len(self.items)} items")

    def parse_item(self, url, body, when):
        it = dict(re.findall(r'<span class="(\w+)">([^<]*)</span>', body))
        it.update(price=float(it["price"]), rating=int(it["rating"]), stock=int(it["stock"]), url=url, scraped_at=when)
        self.items.append(it)
        self.stats.inc("item_scraped_count")


def store(items, out):
    out.mkdir(exist_ok=True)
    with gzip.open(out / "items.jl.gz", "wt") as f:
        for it in items:
            f.write(json.dumps(it) + "\n")
    con = sqlite3.connect(out / "shop.db")
    con.execute("create table items (sku text primary key, title text, vendor text, category text, price real, "
                "rating int, stock int, scraped_at text)")
    con.executemany("insert into items values (:sku,:title,:vendor,:category,:price,:rating,:stock,:scraped_at)", items)
    con.execute("create table runs (spider text, started_at timestamp default current_timestamp, items int)")
    con.execute("insert into runs (spider, items) values ('shop', ?)", (len(items),))
    con.commit()
    rows = con.execute("select category, count(*), round(avg(price), 3), sum(stock) from items group by 1 order by 1").fetchall()
    con.close()
    return rows


async def main(args):
    app = build_app(make_catalogue(args.items))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    logger.info(f"Scrapy-like bot started (bot: shopbot), serving {args.items} products at {base}")
    spider = Spider(base, args.concurrency)
    start, t0 = datetime.now(timezone.utc), time.monotonic()
    async with aiohttp.ClientSession() as session:
        await spider.crawl(session)
    elapsed = time.monotonic() - t0
    await runner.cleanup()

    spider.items.sort(key=lambda it: it["sku"])
    rows = store(spider.items, Path("output"))
    print(f"{'category':<10} {'n':>5} {'avg price':>10} {'stock':>7}")
    for r in rows:
        print(f"{r[0]:<10} {r[1]:>5} {r[2]:>10.3f} {r[3]:>7}")
    lat = sorted(spider.latencies)
    spider.stats.update({
        "start_time": start, "finish_time": datetime.now(timezone.utc), "elapsed_time_seconds": round(elapsed, 6),
        "finish_reason": "finished", "memusage/max": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "download_latency/p50": lat[len(lat) // 2], "download_latency/max": lat[-1],
        "pages_per_minute": 60 * len(lat) / elapsed})
    logger.info("Dumping Scrapy stats:\n" + pprint.pformat(dict(spider.stats)))
    Path("output/stats.json").write_text(json.dumps(spider.stats, default=str, sort_keys=True, indent=1))
    top = Counter(it["vendor"].split()[0].strip(",") for it in spider.items).most_common(3)
    print("busiest vendors:", top)
    logger.info("Spider closed (finished)")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--items", type=int, default=4500)
    p.add_argument("--concurrency", type=int, default=16)
    a = p.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(name)s] %(levelname)s: %(message)s",
                        datefmt="%Y-%m-%d %H:%M:%S")
    asyncio.run(main(a))
