"""A small JSON service and its client on the loopback interface, with gunicorn's and aiohttp's logs.

Output follows gunicorn (https://github.com/benoitc/gunicorn/issues/3111, https://github.com/WordPress/openverse/pull/2639)
with an access log whose last field is the request time, and locust's closing statistics
(https://docs.locust.io/en/stable/quickstart.html, CSV as in https://github.com/locustio/locust).
"""
import asyncio
import csv
import json
import logging
import os
import random
import time
import uuid
from datetime import datetime, timezone

from aiohttp import ClientSession, web

log = logging.getLogger("gunicorn.error")
access = logging.getLogger("gunicorn.access")


class Shop:
    def __init__(self):
        r = random.Random(8)
        self.items = {i: {"id": i, "name": f"item-{i:03d}", "price": r.randrange(100, 9999) / 100, "stock": r.randrange(5, 40)}
                      for i in range(40)}
        self.orders = []

    async def list(self, req):
        q = req.query.get("max")
        rows = [v for v in self.items.values() if q is None or v["price"] <= float(q)]
        return web.json_response({"count": len(rows), "items": rows[:10]})

    async def get(self, req):
        i = int(req.match_info["id"])
        if i not in self.items:
            return web.json_response({"error": "no such item"}, status=404)
        return web.json_response(self.items[i])

    async def order(self, req):
        body = await req.json()
        item = self.items.get(body["item"])
        if item is None or item["stock"] < body["n"]:
            return web.json_response({"error": "out of stock"}, status=409)
        item["stock"] -= body["n"]
        o = {"order": len(self.orders) + 1, "item": body["item"], "n": body["n"], "total": round(item["price"] * body["n"], 2)}
        self.orders.append({**o, "created_at": datetime.now(timezone.utc).isoformat(), "request_id": req["rid"]})
        return web.json_response(o, status=201)


@web.middleware
async def access_log(req, handler):
    req["rid"] = req.headers.get("X-Request-Id", "-")
    t = time.perf_counter()
    resp = await handler(req)
    us = int((time.perf_counter() - t) * 1e6)
    access.info('%s - - [%s] "%s %s HTTP/1.1" %d %d "-" "%s" %d rid=%s', req.remote,
                time.strftime("%d/%b/%Y:%H:%M:%S %z"), req.method, req.path_qs, resp.status, len(resp.body or b""),
                "python-client/1.0", us, req["rid"])
    resp.headers["X-Process-Time"] = str(us / 1e6)
    return resp


def setup_logging():
    fmt = logging.Formatter("[%(asctime)s] [%(process)d] [%(levelname)s] %(message)s", "%Y-%m-%d %H:%M:%S %z")
    h = logging.StreamHandler()
    h.setFormatter(fmt)
    log.addHandler(h)
    log.setLevel(logging.INFO)
    f = logging.FileHandler("access.log")
    f.setFormatter(logging.Formatter("%(message)s"))
    access.addHandler(f)
    access.setLevel(logging.INFO)


def plan(n=900):
    r = random.Random(4)
    for _ in range(n):
        k = r.random()
        if k < 0.3:
            yield "GET", "/items", {"max": str(r.randrange(10, 100))}, None
        elif k < 0.7:
            yield "GET", f"/items/{r.randrange(44)}", None, None
        else:
            yield "POST", "/orders", None, {"item": r.randrange(40), "n": r.randrange(1, 6)}


async def drive(base):
    stats, answers = {}, []
    async with ClientSession() as s:
        for method, path, params, body in plan():
            rid = uuid.uuid4().hex
            t = time.perf_counter()
            async with s.request(method, base + path, params=params, json=body, headers={"X-Request-Id": rid}) as resp:
                data = await resp.json()
                ms = (time.perf_counter() - t) * 1000
                answers.append((method, path, resp.status, data))
                key = (method, "/items/[id]" if path.startswith("/items/") else path)
                stats.setdefault(key, []).append((ms, resp.status, len(json.dumps(data))))
            await asyncio.sleep(0.001)
    return stats, answers


def pct(v, q):
    v = sorted(v)
    return v[min(len(v) - 1, int(q * len(v)))]


def report(stats, seconds):
    head = "Type     Name                  # reqs      # fails |    Avg     Min     Max    Med |   req/s  failures/s"
    line = "--------|---------------------|-------|-------------|-------|-------|-------|-------|--------|-----------"
    print(head + "\n" + line)
    rows = []
    for key in sorted(stats):
        v = stats[key]
        ms = [a for a, _, _ in v]
        bad = sum(s >= 400 for _, s, _ in v)
        print(f"{key[0]:<8} {key[1]:<21} {len(v):6d} {bad:5d}({100 * bad / len(v):.2f}%) | {sum(ms) / len(ms):6.2f}  {min(ms):6.2f} "
              f" {max(ms):6.2f} {pct(ms, .5):6.2f} | {len(v) / seconds:7.2f} {bad / seconds:8.2f}")
        rows.append({"Type": key[0], "Name": key[1], "Request Count": len(v), "Failure Count": bad,
                     "Average Content Size": sum(c for _, _, c in v) / len(v), "Median Response Time": pct(ms, .5),
                     "Average Response Time": sum(ms) / len(ms), "Requests/s": len(v) / seconds, "95%": pct(ms, .95), "99%": pct(ms, .99)})
    with open("locust_stats.csv", "w", newline="") as f:
        w = csv.DictWriter(f, fieldnames=list(rows[0]))
        w.writeheader()
        w.writerows(rows)


async def main():
    setup_logging()
    log.info("Starting gunicorn 20.1.0")
    shop = Shop()
    app = web.Application(middlewares=[access_log])
    app.add_routes([web.get("/items", shop.list), web.get("/items/{id}", shop.get), web.post("/orders", shop.order)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    log.info("Listening at: http://127.0.0.1:%d (%d)", port, os.getppid())
    log.info("Using worker: aiohttp.GunicornWebWorker")
    log.info("Booting worker with pid: %d", os.getpid())
    t = time.perf_counter()
    stats, answers = await drive(f"http://127.0.0.1:{port}")
    seconds = time.perf_counter() - t
    log.info("Handling signal: term")
    log.info("Worker exiting (pid: %d)", os.getpid())
    await runner.cleanup()
    log.info("Shutting down: Master")
    report(stats, seconds)
    with open("answers.jsonl", "w") as f:
        for a in answers:
            f.write(json.dumps(a) + "\n")
    with open("orders.json", "w") as f:
        json.dump(shop.orders, f, indent=1)
    print(f"{len(answers)} requests in {seconds:.2f}s; {len(shop.orders)} orders, turnover {sum(o['total'] for o in shop.orders):.2f}")
    print("stock left:", sum(i["stock"] for i in shop.items.values()))


if __name__ == "__main__":
    asyncio.run(main())
