"""A small breadth-first crawler over a local site, with Scrapy's log and closing statistics.

Output follows Scrapy (https://github.com/scrapy/scrapy/pull/5830, https://github.com/scrapy/scrapy/issues/6685
and https://docs.scrapy.org/en/latest/topics/logging.html): log lines, "Dumping Scrapy stats", items feed.
"""
import hashlib
import json
import logging
import os
import pprint
import random
import re
import resource
import sqlite3
import time
from collections import deque
from datetime import datetime, timezone
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlparse

SETTINGS = {"BOT_NAME": "bookbot", "LOG_LEVEL": "DEBUG", "NEWSPIDER_MODULE": "bookbot.spiders",
            "ROBOTSTXT_OBEY": True, "SPIDER_MODULES": ["bookbot.spiders"], "RETRY_TIMES": 2}
ROOT = "http://books.example/"
log = {n: logging.getLogger(f"scrapy.{n}") for n in
       ("utils.log", "crawler", "middleware", "core.engine", "core.scraper", "extensions.telnet",
        "extensions.logstats", "extensions.feedexport", "downloadermiddlewares.retry", "statscollectors", "dupefilters")}


class Counter(logging.Handler):
    def __init__(self, stats):
        super().__init__()
        self.stats = stats

    def emit(self, record):
        self.stats.inc(f"log_count/{record.levelname}")


class Stats(dict):
    def inc(self, k, n=1):
        self[k] = self.get(k, 0) + n

    def max(self, k, v):
        self[k] = max(self.get(k, v), v)


class Site:
    """The whole 'web': pages made from a seeded generator and written below site/."""
    WORDS = "river stone letter garden winter machine island mirror paper kingdom silent copper".split()

    def __init__(self, folder, n=220, seed=5):
        rnd = random.Random(seed)
        self.folder, self.failures = Path(folder), {}
        for i in range(n):
            title = " ".join(rnd.choice(self.WORDS).title() for _ in range(3))
            links = sorted({rnd.randrange(n) for _ in range(5)} | {(i + 1) % n})
            body = f"<html><head><title>{title}</title></head><body><h1>{title}</h1>" \
                   f"<p class='price'>&pound;{rnd.randrange(500, 6000) / 100:.2f}</p>" \
                   f"<p class='stock'>In stock ({rnd.randrange(30)} available)</p><ul>" + \
                   "".join(f"<li><a href='/book/{j}.html'>next {j}</a></li>" for j in links) + "</ul></body></html>"
            p = self.folder / "book" / f"{i}.html"
            p.parent.mkdir(parents=True, exist_ok=True)
            p.write_text(body)
            if rnd.random() < 0.05:
                self.failures[f"/book/{i}.html"] = 1 + rnd.randrange(3)
        (self.folder / "index.html").write_text("<html><a href='/book/0.html'>start</a><a href='/book/9999.html'>gone</a></html>")
        (self.folder / "robots.txt").write_text("User-agent: *\nDisallow: /private\n")

    def get(self, url):
        path = urlparse(url).path
        if self.failures.get(path, 0) > 0:
            self.failures[path] -= 1
            return 503, b"busy"
        f = self.folder / ("index.html" if path == "/" else path.lstrip("/"))
        return (200, f.read_bytes()) if f.exists() else (404, b"not found")


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links = []

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.links += [v for k, v in attrs if k == "href"]


def parse_book(url, body):
    text = body.decode()
    return {"title": re.search("<h1>(.*?)</h1>", text)[1],
            "price": float(re.search("pound;([0-9.]+)<", text)[1]),
            "stock": int(re.search(r"\((\d+) available", text)[1]), "url": url}


def rss():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def crawl(site, stats, feed, db):
    now = datetime.now(timezone.utc)
    stats["start_time"] = now
    stats["memusage/startup"] = stats["memusage/max"] = rss()
    log["core.engine"].info("Spider opened")
    log["extensions.logstats"].info("Crawled 0 pages (at 0 pages/min), scraped 0 items (at 0 items/min)")
    log["extensions.telnet"].info("Telnet console listening on 127.0.0.1:%d", 6023 + os.getpid() % 50)
    t0 = last = time.monotonic()
    queue, seen, dup_noted = deque([(ROOT, None, 0, 0)]), {ROOT}, False
    pages = 0
    while queue:
        url, ref, depth, tries = queue.popleft()
        stats.inc("scheduler/dequeued")
        stats.inc("downloader/request_count")
        stats.inc("downloader/request_method_count/GET")
        stats.inc("downloader/request_bytes", 220 + len(url) + len(ref or ""))
        status, body = site.get(url)
        stats.inc("downloader/response_count")
        stats.inc(f"downloader/response_status_count/{status}")
        stats.inc("downloader/response_bytes", len(body))
        if status == 503:
            if tries < SETTINGS["RETRY_TIMES"]:
                log["downloadermiddlewares.retry"].debug(
                    "Retrying <GET %s> (failed %d times): 503 Service Unavailable", url, tries + 1)
                stats.inc("retry/count")
                stats.inc("retry/reason_count/503 Service Unavailable")
                queue.append((url, ref, depth, tries + 1))
                stats.inc("scheduler/enqueued")
            else:
                log["downloadermiddlewares.retry"].error(
                    "Gave up retrying <GET %s> (failed %d times): 503 Service Unavailable", url, tries + 1)
                stats.inc("retry/max_reached")
            continue
        pages += 1
        stats.inc("response_received_count")
        stats.max("request_depth_max", depth)
        log["core.engine"].debug("Crawled (%d) <GET %s> (referer: %s)", status, url, ref)
        if status != 200:
            stats.inc(f"httperror/response_ignored_status_count/{status}")
            continue
        if "/book/" in url:
            item = parse_book(url, body)
            log["core.scraper"].debug("Scraped from <%d %s>\n%s", status, url, item)
            stats.inc("item_scraped_count")
            item["crawled_at"] = datetime.now(timezone.utc).isoformat()
            feed.write(json.dumps(item) + "\n")
            db.execute("INSERT INTO items VALUES (?,?,?,?,?,?)",
                       (hashlib.sha1(url.encode()).hexdigest(), item["title"], item["price"], item["stock"], url, item["crawled_at"]))
        parser = Links()
        parser.feed(body.decode())
        for href in parser.links:
            nxt = urljoin(url, href)
            if nxt in seen:
                stats.inc("dupefilter/filtered")
                if not dup_noted:
                    log["dupefilters"].debug("Filtered duplicate request: <GET %s> - no more duplicates will be shown "
                                             "(see DUPEFILTER_DEBUG to show all duplicates)", nxt)
                    dup_noted = True
                continue
            seen.add(nxt)
            queue.append((nxt, url, depth + 1, 0))
            stats.inc("scheduler/enqueued")
        time.sleep(0.004)
        if pages % 100 == 0:
            dt = (time.monotonic() - last) / 60
            last = time.monotonic()
            log["extensions.logstats"].info("Crawled %d pages (at %d pages/min), scraped %d items (at %d items/min)",
                                            pages, 100 / dt, stats["item_scraped_count"], 100 / dt)
    stats["memusage/max"] = rss()
    el = time.monotonic() - t0
    stats.update({"finish_reason": "finished", "finish_time": datetime.now(timezone.utc), "elapsed_time_seconds": round(el, 6),
                  "responses_per_minute": pages * 60 / el, "items_per_minute": stats["item_scraped_count"] * 60 / el})


def main():
    stats = Stats()
    logging.basicConfig(level=logging.DEBUG, format="%(asctime)s [%(name)s] %(levelname)s: %(message)s",
                        datefmt="%Y-%m-%d %H:%M:%S", handlers=[logging.StreamHandler(), Counter(stats)])
    log["utils.log"].info("Scrapy 2.12.0 started (bot: %s)", SETTINGS["BOT_NAME"])
    log["crawler"].info("Overridden settings:\n%s", pprint.pformat(SETTINGS))
    log["extensions.telnet"].info("Telnet Password: %s", os.urandom(8).hex())
    log["middleware"].info("Enabled item pipelines:\n['bookbot.pipelines.SQLitePipeline']")
    site = Site("site")
    stamp = datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    os.makedirs("feeds", exist_ok=True)
    path = f"feeds/books_{stamp}.jsonl"
    db = sqlite3.connect("books.db")
    db.execute("CREATE TABLE items (fp TEXT PRIMARY KEY, title TEXT, price REAL, stock INT, url TEXT, crawled_at TEXT)")
    with open(path, "w") as feed:
        crawl(site, stats, feed, db)
    db.commit()
    log["core.engine"].info("Closing spider (finished)")
    log["extensions.feedexport"].info("Stored jsonlines feed (%d items) in: %s", stats["item_scraped_count"], path)
    log["statscollectors"].info("Dumping Scrapy stats:\n%s", pprint.pformat(dict(stats)))
    log["core.engine"].info("Spider closed (finished)")
    n, mean, top = db.execute("SELECT count(*), avg(price), max(price) FROM items").fetchone()
    print(f"{n} books, mean price {mean:.4f}, highest {top:.2f}")


if __name__ == "__main__":
    main()
