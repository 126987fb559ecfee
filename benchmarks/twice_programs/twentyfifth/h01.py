"""Best-first crawl of a small documentation site with a page budget.

A site of some thousand pages is served on the loopback interface.  The crawler
keeps a priority queue of links, fetches them in batches over several
connections, follows the most promising links and stops when the budget of
pages is used up.  It writes the visited pages and a short report on how much
of each section was covered.

Modelled on: https://github.com/unclecode/crawl4ai/issues/1998
"""
import csv
import heapq
import random
import re
import threading
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECTIONS = ["guide", "reference", "howto", "blog", "release-notes"]
TERMS = ["index", "query", "storage", "replica", "snapshot", "cache", "lock", "cursor"]
N_PAGES = 2400
MAX_PAGES = 800
MAX_DEPTH = 8
BATCH_SIZE = 12
HREF = re.compile(r'href="(/[^"]+)"')


def build_site(rng):
    """Return {path: html}; every page links to a few others."""
    paths = [f"/{SECTIONS[i % len(SECTIONS)]}/p{i:04d}" for i in range(N_PAGES)]
    site = {}
    for i, path in enumerate(paths):
        words = [rng.choice(TERMS) for _ in range(rng.randint(60, 2400))]
        targets = {int(N_PAGES * rng.random() ** 2) for _ in range(rng.randint(6, 14))}
        links = "".join(f'<li><a href="{paths[t]}">{paths[t]}</a></li>' for t in sorted(targets))
        site[path] = (
            f"<html><head><title>Page {i}</title></head><body>"
            f"<p>{' '.join(words)}</p><ul>{links}</ul></body></html>"
        )
    return site


def start_server(site):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = site.get(self.path)
            if body is None:
                self.send_error(404)
                return
            data = body.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 64

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class BestFirstCrawler:
    def __init__(self, base, keywords, max_pages, max_depth):
        self.base = base
        self.keywords = keywords
        self.max_pages = max_pages
        self.max_depth = max_depth
        self.seen = set()
        self.depth = {}
        self.frontier = []
        self.pages = []

    def score(self, text):
        words = re.findall(r"[a-z]+", text)
        hits = sum(words.count(k) for k in self.keywords)
        return hits / max(len(words), 1)

    def fetch(self, path):
        with urllib.request.urlopen(self.base + path, timeout=20) as response:
            html = response.read().decode()
        return html, self.score(html)

    def discover(self, path, html, score):
        """Queue the links of a page, as long as the budget allows."""
        depth = self.depth[path] + 1
        room = self.max_pages - len(self.pages)
        if depth > self.max_depth or room <= 0:
            return
        fresh = [link for link in HREF.findall(html) if link not in self.seen][:room]
        for link in fresh:
            if link in self.seen:
                continue
            self.seen.add(link)
            self.depth[link] = depth
            heapq.heappush(self.frontier, (-score, depth, link))

    def run(self, start):
        self.seen.add(start)
        self.depth[start] = 0
        self.frontier = [(-1.0, 0, start)]
        with ThreadPoolExecutor(max_workers=BATCH_SIZE) as pool:
            while self.frontier and len(self.pages) < self.max_pages:
                count = min(BATCH_SIZE, len(self.frontier), self.max_pages - len(self.pages))
                batch = [heapq.heappop(self.frontier)[2] for _ in range(count)]
                jobs = [pool.submit(self.fetch, path) for path in batch]
                names = dict(zip(jobs, batch))
                for job in as_completed(jobs):  # cause
                    path = names[job]
                    html, score = job.result()
                    self.pages.append((path, self.depth[path], round(score, 5)))
                    self.discover(path, html, score)
        return self.pages


def main():
    site = build_site(random.Random(1998))
    server = start_server(site)
    base = f"http://127.0.0.1:{server.server_address[1]}"
    print(f"{time.strftime('%H:%M:%S')} crawling {base}")
    started = time.perf_counter()
    crawler = BestFirstCrawler(base, ["snapshot", "replica"], MAX_PAGES, MAX_DEPTH)
    pages = crawler.run("/guide/p0000")
    print(f"done in {time.perf_counter() - started:.2f} s")
    server.shutdown()

    with open("visited.csv", "w", newline="") as handle:
        out = csv.writer(handle)
        out.writerow(["path", "depth", "score"])
        out.writerows(sorted(pages))

    sections = Counter(path.split("/")[1] for path, _, _ in pages)
    depths = Counter(depth for _, depth, _ in pages)
    print("pages", len(pages), "mean score", round(sum(p[2] for p in pages) / len(pages), 6))
    for name in SECTIONS:
        print(f"  {name:14s} {sections[name]:4d}")
    print("depths", " ".join(f"{d}:{depths[d]}" for d in sorted(depths)))
    best = sorted(pages, key=lambda p: (-p[2], p[0]))[:5]
    print("best", ", ".join(f"{p[0]}={p[2]}" for p in best))


if __name__ == "__main__":
    main()
