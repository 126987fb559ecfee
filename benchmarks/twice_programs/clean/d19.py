"""Style of locustio/locust (stats.py console and CSV statistics, HTML report) run on a small model server. Differs in each run:
loopback port, server pid, latency columns and percentiles, requests/s, timestamps of the history, Date headers, report's dates."""
import csv
import hashlib
import json
import logging
import os
import threading
import time
from datetime import datetime, timezone
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from string import Template

import numpy as np

logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(hostname)s/%(levelname)s/%(name)s: %(message)s")
_old = logging.getLogRecordFactory()


def _factory(*a, **k):
    r = _old(*a, **k)
    r.hostname = os.uname().nodename
    return r


logging.setLogRecordFactory(_factory)
log = logging.getLogger("locust.main")
RNG = np.random.default_rng(8)
W1, W2 = RNG.normal(0, 0.4, (16, 64)), RNG.normal(0, 0.4, (64, 5))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize, disable_nagle_algorithm = -1, True

    def log_message(self, fmt, *args):
        with open("access.log", "a") as f:
            f.write("%s:%d - - [%s] %s\n" % (*self.client_address, self.log_date_time_string(), fmt % args))

    def reply(self, obj):
        body = json.dumps(obj).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply({"status": "ok", "pid": os.getpid(), "time": time.time()})

    def do_POST(self):
        t0 = time.perf_counter()
        x = np.array(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["x"])
        z = np.tanh(x @ W1) @ W2
        p = np.exp(z - z.max())
        p /= p.sum()
        self.reply({"label": int(p.argmax()), "confidence": round(float(p.max()), 6), "inference_time_ms": 1e3 * (time.perf_counter() - t0),
                    "request_id": os.urandom(8).hex()})


class Stats:
    def __init__(self):
        self.t, self.start = {}, time.time()

    def add(self, name, ms):
        self.t.setdefault(name, []).append(ms)

    def row(self, name):
        v = np.concatenate([np.asarray(x) for x in self.t.values()]) if name == "Aggregated" else np.asarray(self.t[name])
        el = time.time() - self.start
        return [name, len(v), 0, np.median(v), v.mean(), v.min(), v.max(), len(v) / el, *np.percentile(v, [50, 75, 95, 99, 100])]

    def table(self):
        print("%-22s %7s %7s | %7s %7s %7s %7s | %7s" % ("Name", "# reqs", "# fails", "Avg", "Min", "Max", "Med", "req/s"))
        print("-" * 22 + "|-------|-------|" + "-------|" * 5)
        for n in [*self.t, "Aggregated"]:
            r = self.row(n)
            print("%-22s %7d %3d(%.2f%%) | %7.0f %7.0f %7.0f %7.0f | %7.2f" % (n, r[1], 0, 0.0, r[4], r[5], r[6], r[3], r[7]))
        print()


REPORT = Template("""<!DOCTYPE html><html><head><title>Test Report for d19</title></head><body><h1>Locust Test Report</h1>
<p class="download">During: <b>$start</b> - <b>$end</b> ($dur)</p><p>Target Host: <b>$host</b></p>
<table><tr><th>Name</th><th># Requests</th><th>Average (ms)</th><th>p95</th><th>RPS</th></tr>$rows</table>
<p>Accuracy: <b>$acc</b>, answers $digest</p></body></html>""")


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"http://127.0.0.1:{port}"
    log.info("Starting web interface at %s (pid %d)", host, os.getpid())
    conn = HTTPConnection("127.0.0.1", port)
    rng, stats = np.random.default_rng(21), Stats()
    xs = rng.normal(0, 1, (5000, 16)).round(5)
    truth = (np.tanh(xs @ W1) @ W2 + rng.normal(0, 0.2, (5000, 5))).argmax(1)
    labels, conf, server_ms, hist = [], [], [], []
    t_begin = datetime.now(timezone.utc)
    for i, x in enumerate(xs):
        for method, path, body in ([("GET", "/health", None)] if i % 30 == 0 else []) + [("POST", "/predict", json.dumps({"x": x.tolist()}))]:
            t0 = time.perf_counter()
            conn.request(method, path, body)
            ans = json.loads(conn.getresponse().read())
            stats.add(f"{method} {path}", 1e3 * (time.perf_counter() - t0))
        labels.append(ans["label"])
        conf.append(ans["confidence"])
        server_ms.append(ans["inference_time_ms"])
        if (i + 1) % 1250 == 0:
            hist.append([int(time.time()), 1, *[f"{v:.4f}" if isinstance(v, float) else v for v in stats.row("Aggregated")]])
            stats.table()
    conn.close()
    server.shutdown()
    server.server_close()
    cols = ["Name", "Request Count", "Failure Count", "Median Response Time", "Average Response Time", "Min Response Time", "Max Response Time",
            "Requests/s", "50%", "75%", "95%", "99%", "100%"]
    with open("d19_stats.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(cols)
        w.writerows(stats.row(n) for n in [*stats.t, "Aggregated"])
    with open("d19_stats_history.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["Timestamp", "User Count", *cols])
        w.writerows(hist)
    acc = float(np.mean(np.array(labels) == truth))
    digest = hashlib.sha256(json.dumps([labels, conf]).encode()).hexdigest()[:16]
    np.savetxt("answers.csv", np.c_[labels, conf], fmt=["%d", "%.6f"], delimiter=",", header="label,confidence", comments="")
    end = datetime.now(timezone.utc)
    rows = "".join("<tr><td>%s</td><td>%d</td><td>%.2f</td><td>%.2f</td><td>%.1f</td></tr>" % (n, r[1], r[4], r[10], r[7])
                   for n in [*stats.t, "Aggregated"] for r in [stats.row(n)])
    with open("report.html", "w") as f:
        f.write(REPORT.substitute(start=t_begin.strftime("%Y-%m-%d %H:%M:%S"), end=end.strftime("%Y-%m-%d %H:%M:%S"), dur=end - t_begin,
                                  host=host, rows=rows, acc=f"{acc:.4f}", digest=digest))
    log.info("Shutting down (exit code 0), server median %.3f ms", np.median(server_ms))
    print(f"accuracy {acc:.4f}  mean confidence {np.mean(conf):.6f}  answers {digest}")
    print("Response time percentiles (approximated): p50 {:.1f} p95 {:.1f} p99 {:.1f} ms".format(*np.percentile(server_ms, [50, 95, 99])))


if __name__ == "__main__":
    main()
