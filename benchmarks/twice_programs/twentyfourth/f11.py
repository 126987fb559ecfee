"""Price watch over several shops.

Starts a small local shop service, asks it for the pages of many products in
concurrent sessions, extracts the prices, and writes a price table in which each
product has a rank number, plus a digest of offers that beat the running mean.

Modelled on: https://github.com/psf/requests-html/issues/480
"""
import asyncio
import csv
import functools
import json
import logging
import random
import re

log = logging.getLogger("prices")
SHOPS = ("alpha", "bravo", "corso", "delta", "echo")
PAGE = "<html><head><title>{name}</title></head><body><p class='price'>{price:.2f} EUR</p></body></html>"


class ShopData:
    """The products and prices of all shops."""

    def __init__(self, seed, products=160):
        rng = random.Random(seed)
        self.prices = {}
        for product in range(products):
            base = rng.uniform(5, 200)
            for shop in SHOPS:
                self.prices[shop, product] = round(base * rng.uniform(0.85, 1.2), 2)

    def urls(self):
        return [f"/{shop}/item/{product}" for shop, product in self.prices]

    def page(self, path):
        match = re.fullmatch(r"/(\w+)/item/(\d+)", path)
        shop, product = match.group(1), int(match.group(2))
        return PAGE.format(name=f"{shop} item {product}", price=self.prices[shop, product])


class ShopSite:
    """Serves the pages in memory with a fixed delay."""

    def __init__(self, data, delay=0.05):
        self.data = data
        self.delay = delay
        self.served = 0

    async def get(self, path):
        await asyncio.sleep(self.delay)
        self.served += 1
        return self.data.page(path)


class AsyncSession:
    """Runs coroutine functions together and collects what they return."""

    def __init__(self, site, limit=20):
        self.site = site
        self.limit = limit
        self.loop = asyncio.new_event_loop()

    async def get(self, path):
        return path, await self.site.get(path)

    def run(self, *coros):
        tasks = [self.loop.create_task(coro()) for coro in coros]
        done, _ = self.loop.run_until_complete(asyncio.wait(tasks))
        return [task.result() for task in done]  # cause

    def run_batches(self, coros):
        results = []
        for start in range(0, len(coros), self.limit):
            results.extend(self.run(*coros[start:start + self.limit]))
        return results

    def close(self):
        self.loop.close()


def parse(path, html):
    shop, product = re.match(r"/(\w+)/item/(\d+)", path).groups()
    price = float(re.search(r"class='price'>([\d.]+) EUR", html).group(1))
    return {"shop": shop, "product": int(product), "price": price}


class OfferWatch:
    """Follows the prices of a product as they come and notes good offers."""

    def __init__(self, margin=0.93):
        self.margin = margin
        self.seen = {}
        self.offers = []

    def feed(self, row):
        count, mean = self.seen.get(row["product"], (0, 0.0))
        if count >= 1 and row["price"] < self.margin * mean:
            self.offers.append({**row, "mean": round(mean, 4)})
        mean = mean + (row["price"] - mean) / (count + 1)
        self.seen[row["product"]] = (count + 1, mean)


def crawl(seed):
    data = ShopData(seed)
    site = ShopSite(data)
    session = AsyncSession(site, limit=400)
    paths = data.urls()
    jobs = [functools.partial(session.get, path) for path in paths]
    pages = session.run_batches(jobs)
    session.close()
    log.info("%d pages fetched", site.served)
    return [parse(path, html) for path, html in pages]


def write_table(rows, name):
    with open(name, "w", newline="") as handle:
        out = csv.DictWriter(handle, ["rank", "shop", "product", "price"])
        out.writeheader()
        for rank, row in enumerate(rows, 1):
            out.writerow({"rank": rank, **row})


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    total = []
    for seed in range(1, 17):
        rows = crawl(seed)
        write_table(rows, f"prices_{seed}.csv")
        watch = OfferWatch()
        for row in rows:
            watch.feed(row)
        total.append(len(watch.offers))
        with open(f"offers_{seed}.json", "w") as handle:
            json.dump(watch.offers, handle, indent=1)
        first = rows[0]
        print(f"region {seed}: {len(rows)} prices, {len(watch.offers)} offers, "
              f"first row {first['shop']}/{first['product']}")
    print("offers in all:", sum(total))


if __name__ == "__main__":
    main()
