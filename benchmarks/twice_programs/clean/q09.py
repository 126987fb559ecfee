"""Load test of a loopback quotation service, reported like Apache JMeter.

Output format: JMeter's summariser lines, the JTL result file and the
statistics.json and index.html of the dashboard.
Seen at: https://github.com/oliverlloyd/jmeter-ec2/issues/26
         https://github.com/aws-solutions/distributed-load-testing-on-aws/issues/117
Field: load testing.
"""
import csv
import html
import http.client
import http.server
import json
import os
import socket
import statistics
import tempfile
import threading
import time
from datetime import datetime

THREADS, BLOCKS, PER_BLOCK = 4, 4, 12
LABELS = ("GET /quote", "GET /basket", "GET /health")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        kind, _, number = self.path[1:].partition("/")
        n, code = int(number), 200
        if kind == "quote":
            total = sum((n * k * k + 7 * k) % 97 for k in range(3000))
            body = {"item": n, "price": round(total / 100, 2)}
            if n % 11 == 5:
                code, body = 503, {"item": n, "error": "out of stock"}
        elif kind == "basket":
            a, b = 0, 1
            for _ in range(200 + n):
                a, b = b, (a + b) % 1000003
            body = {"basket": n, "sum": a}
        else:
            body = {"status": "up"}
        time.sleep(0.004)
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


class Summariser:
    def __init__(self):
        self.start = self.last = time.time()
        self.done = 0

    @staticmethod
    def line(mark, rows, secs, extra=""):
        times = [r["elapsed"] for r in rows]
        err = sum(r["success"] == "false" for r in rows)
        clock = time.strftime("%H:%M:%S", time.gmtime(secs))
        return (f"summary {mark} {len(rows):6d} in {clock} = {len(rows) / secs:6.1f}/s Avg: {statistics.fmean(times):5.0f} "
                f"Min: {min(times):5d} Max: {max(times):5d} Err: {err:5d} ({100 * err / len(rows):.2f}%){extra}")

    def report(self, rows):
        now = time.time()
        new = rows[self.done:]
        print(self.line("+", new, now - self.last, f" Active: {THREADS} Started: {THREADS} Finished: 0"))
        print(self.line("=", rows, now - self.start))
        self.last, self.done = now, len(rows)


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port = server.server_address[1]
    runner = threading.Thread(target=server.serve_forever)
    runner.start()
    home = tempfile.mkdtemp(prefix="jmeter_")
    started = datetime.now()
    print("Creating summariser <summary>")
    print(f"Created the tree successfully using {os.path.join(home, 'quotes.jmx')}")
    print(f"Starting standalone test @ {started:%Y %b %d %H:%M:%S} UTC ({int(started.timestamp() * 1000)})")
    print(f"Waiting for possible Shutdown/StopTestNow/HeapDump/ThreadDump message on port {port}")
    rows, lock, values = [], threading.Lock(), {}
    summary = Summariser()
    barrier = threading.Barrier(THREADS, action=lambda: summary.report(rows))
    host = socket.gethostname()

    def user(number):
        name = f"Thread Group 1-{number + 1}"
        conn = http.client.HTTPConnection("127.0.0.1", port)
        for block in range(BLOCKS):
            for i in range(PER_BLOCK):
                item = (block * PER_BLOCK + i) * THREADS + number
                kind = i % 3
                ts, clock = int(time.time() * 1000), time.perf_counter()
                fresh = conn.sock is None
                if fresh:
                    conn.connect()
                connect = time.perf_counter() - clock
                conn.request("GET", f"/{('quote', 'basket', 'health')[kind]}/{item}")
                resp = conn.getresponse()
                latency = time.perf_counter() - clock
                body = resp.read()
                took = time.perf_counter() - clock
                ok = resp.status == 200
                row = {"timeStamp": ts, "elapsed": int(took * 1000), "label": LABELS[kind], "responseCode": resp.status,
                       "responseMessage": resp.reason, "threadName": name, "success": str(ok).lower(), "bytes": len(body),
                       "grpThreads": THREADS, "allThreads": THREADS, "Latency": int(latency * 1000), "Hostname": host,
                       "Connect": int(connect * 1000)}
                with lock:
                    rows.append(row)
                    values[kind, item] = json.loads(body)
            barrier.wait()
        conn.close()

    users = [threading.Thread(target=user, args=(n,)) for n in range(THREADS)]
    for t in users:
        t.start()
    for t in users:
        t.join()
    server.shutdown()
    runner.join()
    server.server_close()
    print("Tidying up ...    @ " + datetime.now().strftime("%Y %b %d %H:%M:%S") + f" UTC ({int(time.time() * 1000)})")
    with open("quotes.jtl", "w", newline="") as fh:
        out = csv.DictWriter(fh, fieldnames=list(rows[0]))
        out.writeheader()
        out.writerows(rows)
    stats = {}
    secs = time.time() - summary.start
    for label in LABELS + ("Total",):
        part = [r for r in rows if label in (r["label"], "Total")]
        t = sorted(r["elapsed"] for r in part)
        bad = sum(r["success"] == "false" for r in part)
        stats[label] = {"transaction": label, "sampleCount": len(part), "errorCount": bad, "errorPct": round(100 * bad / len(part), 4),
                        "meanResTime": statistics.fmean(t), "medianResTime": statistics.median(t), "minResTime": t[0], "maxResTime": t[-1],
                        "pct1ResTime": t[int(.9 * len(t))], "pct3ResTime": t[int(.99 * len(t))],
                        "throughput": len(part) / secs, "receivedKBytesPerSec": sum(r["bytes"] for r in part) / 1024 / secs}
    with open("statistics.json", "w") as fh:
        json.dump(stats, fh, indent=2)
    with open("index.html", "w") as fh:
        fh.write(f"<html><head><title>Apache JMeter Dashboard</title></head><body><table><tr><td>Source file</td><td>quotes.jtl</td></tr>"
                 f"<tr><td>Start Time</td><td>{started:%m/%d/%y, %I:%M %p}</td></tr><tr><td>End Time</td><td>{datetime.now():%m/%d/%y, %I:%M:%S %p}</td></tr>")
        for s in stats.values():
            fh.write(f"<tr><td>{html.escape(s['transaction'])}</td><td>{s['sampleCount']}</td><td>{s['errorCount']}</td>"
                     f"<td>{s['errorPct']:.2f}%</td><td>{s['meanResTime']:.2f}</td><td>{s['throughput']:.2f}</td></tr>\n")
        fh.write("</table></body></html>\n")
    os.rmdir(home)
    print("\nLabel             # Samples   Error %    Bytes      Average   Throughput")
    for s in stats.values():
        size = sum(r["bytes"] for r in rows if s["transaction"] in (r["label"], "Total"))
        print(f"{s['transaction']:<18}{s['sampleCount']:8d}{s['errorPct']:9.2f}%{size:9d}{s['meanResTime']:10.2f} ms{s['throughput']:9.1f}/s")
    prices = [v["price"] for k, v in sorted(values.items()) if "price" in v]
    sums = [v["sum"] for k, v in sorted(values.items()) if "sum" in v]
    print(f"extracted: {len(prices)} prices, total {sum(prices):.2f}, highest {max(prices):.2f}; basket checksum {sum(sums) % 1000003}")
    print("... end of run")


if __name__ == "__main__":
    main()
