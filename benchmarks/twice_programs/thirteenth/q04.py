"""Workflow that enriches records through a small web service and keeps a running ledger.

Report: https://github.com/temporalio/sdk-python/issues/518
Activities are started together and the workflow advances whenever some of them are done.
"""
import asyncio
import csv
import hashlib
import json
import logging
import random
import time
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from aiohttp import web

log = logging.getLogger("workflow")


@dataclass
class Settings:
    orders: int = 1500
    concurrency: int = 24
    credit: float = 240000.0
    seed: int = 518
    out: str = "ledger"


def make_orders(cfg: Settings) -> list:
    rng = random.Random(cfg.seed)
    orders = []
    for n in range(cfg.orders):
        orders.append(
            {
                "order": f"O{n:04d}",
                "customer": f"C{rng.randrange(30):02d}",
                "items": [rng.randrange(1, 40) for _ in range(rng.randrange(2, 9))],
                "priority": rng.choice("ABC"),
            }
        )
    return orders


class PricingService:
    """Loopback service with a price book; heavier orders take longer."""

    def __init__(self):
        self.app = web.Application()
        self.app.router.add_post("/quote", self.quote)
        self.runner = None
        self.port = 0

    async def quote(self, request):
        body = await request.json()
        digest = b""
        for item in body["items"]:
            digest = hashlib.pbkdf2_hmac("sha256", str(item).encode(), digest + b"x", 900)
        await asyncio.sleep(0.012 + 0.0015 * len(body["items"]))
        total = sum(((item * 7919) % 97) + 3.25 for item in body["items"])
        return web.json_response({"order": body["order"], "total": total, "token": digest.hex()[:8]})

    async def __aenter__(self):
        self.runner = web.AppRunner(self.app, access_log=None)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0)
        await site.start()
        self.port = self.runner.addresses[0][1]
        return self

    async def __aexit__(self, *exc):
        await self.runner.cleanup()


class Ledger:
    def __init__(self, credit: float):
        self.credit = credit
        self.entries = []
        self.rejected = []

    def post(self, quote: dict):
        discount = min(0.15, 0.001 * len(self.entries))
        amount = round(quote["total"] * (1 - discount), 4)
        if amount > self.credit:
            self.rejected.append(quote["order"])
            return
        self.credit = round(self.credit - amount, 4)
        self.entries.append((len(self.entries) + 1, quote["order"], amount, self.credit))


class OrderWorkflow:
    def __init__(self, cfg: Settings, url: str):
        self.cfg = cfg
        self.url = url
        self.ledger = Ledger(cfg.credit)

    async def activity(self, session, order):
        async with session.post(self.url, json=order) as resp:
            resp.raise_for_status()
            return await resp.json()

    async def run(self, orders: list) -> Ledger:
        queue = list(reversed(orders))
        connector = aiohttp.TCPConnector(limit=self.cfg.concurrency)
        async with aiohttp.ClientSession(connector=connector) as session:
            pending = set()
            while queue or pending:
                while queue and len(pending) < self.cfg.concurrency:
                    pending.add(asyncio.create_task(self.activity(session, queue.pop())))
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)  # cause
                for task in done:
                    self.ledger.post(task.result())
        return self.ledger


def write_outputs(cfg: Settings, ledger: Ledger) -> dict:
    out = Path(cfg.out)
    out.mkdir(exist_ok=True)
    with open(out / "entries.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["seq", "order", "amount", "credit_left"])
        writer.writerows(ledger.entries)
    summary = {
        "posted": len(ledger.entries),
        "rejected": sorted(ledger.rejected),
        "revenue": round(sum(e[2] for e in ledger.entries), 4),
        "credit_left": ledger.credit,
    }
    (out / "summary.json").write_text(json.dumps(summary, indent=1))
    return summary


async def amain(cfg: Settings):
    orders = make_orders(cfg)
    async with PricingService() as service:
        log.info("service on port %d", service.port)
        flow = OrderWorkflow(cfg, f"http://127.0.0.1:{service.port}/quote")
        t0 = time.monotonic()
        ledger = await flow.run(orders)
        log.info("%d orders in %.2fs", len(orders), time.monotonic() - t0)
    summary = write_outputs(cfg, ledger)
    print("posted", summary["posted"], "revenue", summary["revenue"])


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(amain(Settings()))


if __name__ == "__main__":
    main()
