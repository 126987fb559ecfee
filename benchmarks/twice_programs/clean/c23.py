"""A service-like job: structured JSON logs with trace ids, a loopback server on a free port, retries, a scheduler, reports as HTML, Markdown and LaTeX."""

import hashlib
import html
import http.server
import json
import logging
import os
import platform
import secrets
import string
import sys
import threading
import time
import traceback
import urllib.request
from datetime import datetime, timedelta, timezone

import numpy as np


class JsonFormatter(logging.Formatter):
    def format(self, record):
        out = {
            "ts": datetime.fromtimestamp(record.created, timezone.utc).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "where": f"{record.filename}:{record.lineno}",
            "thread": record.thread,
            "process": record.process,
            "uptime_ms": record.relativeCreated,
            "msg": record.getMessage(),
        }
        out.update(getattr(record, "extra", {}))
        if record.exc_info:
            out["exc"] = traceback.format_exception_only(record.exc_info[1])[-1].strip()
        return json.dumps(out)


def run_name():
    return "job-" + "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(8))


class Handler(http.server.BaseHTTPRequestHandler):
    weights = np.linspace(-1, 1, 6)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps({"score": float(np.tanh(self.weights @ body["x"]))}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format, *args):
        sys.stderr.write("%s - - [%s] %s\n" % (self.address_string(), self.log_date_time_string(), format % args))


def ask(port, x):
    t = time.perf_counter()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/score", json.dumps({"x": x}).encode())
    with urllib.request.urlopen(request, timeout=10) as r:
        return json.load(r)["score"], (time.perf_counter() - t) * 1e3, r.headers["Date"]


def main():
    handler = logging.FileHandler("job.jsonl")
    handler.setFormatter(JsonFormatter())
    console = logging.StreamHandler(sys.stdout)
    console.setFormatter(logging.Formatter("%(relativeCreated)6d %(threadName)s %(message)s"))
    log = logging.getLogger("job")
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    log.addHandler(console)
    name, trace = run_name(), secrets.token_hex(16)
    started = datetime.now()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    log.info("serving on http://127.0.0.1:%d run=%s", port, name, extra={"extra": {"trace": trace, "host": platform.node()}})
    g = np.random.default_rng(22)
    rows = []
    for i in range(12):
        score, ms, date = ask(port, g.normal(size=6).round(3).tolist())
        rows.append((i, score, ms, date))
        log.info("request %d score=%.6f latency=%.2fms", i, score, ms, extra={"extra": {"trace": trace, "span": secrets.token_hex(8), "score": score, "latency_ms": round(ms, 3)}})
    try:
        raise TimeoutError(f"attempt 1 of 3 failed after {rows[0][2] / 1e3:.3f}s")
    except TimeoutError:
        log.warning("retrying", exc_info=True)
    server.shutdown()
    scores = [r[1] for r in rows]
    digest = hashlib.sha256(json.dumps(scores).encode()).hexdigest()
    eta = datetime.now() + timedelta(minutes=5)
    log.info("mean %.6f digest %s next run %s", sum(scores) / 12, digest[:16], eta.strftime("%H:%M"))
    with open("report.html", "w") as f:
        f.write(f"<html><head><title>{html.escape(name)}</title></head><body><p>Generated {datetime.now():%A, %d. %B %Y %H:%M:%S} on {platform.node()}</p><table>\n")
        f.writelines(f"<tr><td>{i}</td><td>{s:.6f}</td><td>{ms:.1f} ms</td></tr>\n" for i, s, ms, _ in rows)
        f.write("</table></body></html>\n")
    with open("report.md", "w") as f:
        f.write(f"# Run {name}\n\nStarted {started.isoformat(sep=' ', timespec='seconds')}, took {(datetime.now() - started).total_seconds():.3f} s\n\n| # | score | latency (ms) |\n|--:|--:|--:|\n")
        f.writelines(f"| {i} | {s:+.4f} | {ms:.2f} |\n" for i, s, ms, _ in rows)
    with open("table.tex", "w") as f:
        f.write("% " + time.asctime() + "\n\\begin{tabular}{rrr}\n")
        f.writelines(f"{i} & {s:.4f} & {ms:.1f} \\\\\n" for i, s, ms, _ in rows)
        f.write("\\end{tabular}\n")
    with open("run.env", "w") as f:
        f.write(f"RUN_NAME={name}\nRUN_PORT={port}\nRUN_PID={os.getpid()}\nRUN_TRACE={trace}\nRUN_SCORE={sum(scores):.8f}\n")
    print(f"Elapsed: {datetime.now() - started}")


if __name__ == "__main__":
    main()
