"""Settling of a small rag doll that is stepped over a debug interface.

Report: https://github.com/tommy-xr/shock2quest/pull/298
A client asks a loopback server to advance the physics and reads the joints afterwards.
"""
import argparse
import json
import logging
import threading
import time
import urllib.request
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np

log = logging.getLogger("runtime")


@dataclass
class PhysicsConfig:
    links: int = 9
    length: float = 0.25
    gravity: float = -9.81
    damping: float = 0.6
    stiffness: float = 5200.0
    max_dt: float = 0.02
    substeps: int = 8
    seed: int = 60


class RagDoll:
    """Chain of point masses joined by damped springs, over a floor."""

    def __init__(self, cfg: PhysicsConfig):
        rng = np.random.default_rng(cfg.seed)
        self.cfg = cfg
        n = cfg.links + 1
        self.x = np.column_stack([np.zeros(n), 1.4 + cfg.length * np.arange(n)])
        self.x += rng.normal(0, 0.02, self.x.shape)
        self.v = rng.normal(0, 0.3, self.x.shape)
        self.time = 0.0

    def forces(self):
        c = self.cfg
        f = np.zeros_like(self.x)
        f[:, 1] += c.gravity
        d = np.diff(self.x, axis=0)
        dist = np.linalg.norm(d, axis=1, keepdims=True)
        spring = c.stiffness * (dist - c.length) * d / np.maximum(dist, 1e-9)
        f[:-1] += spring
        f[1:] -= spring
        f -= c.damping * self.v
        return f

    def advance(self, dt: float):
        h = dt / self.cfg.substeps
        for _ in range(self.cfg.substeps):
            self.v += h * self.forces()
            self.x += h * self.v
            below = self.x[:, 1] < 0
            self.x[below, 1] = 0
            self.v[below, 1] *= -0.2
            self.v[below, 0] *= 0.7
        self.time += dt


class Runtime:
    def __init__(self, cfg: PhysicsConfig):
        self.cfg = cfg
        self.world = RagDoll(cfg)
        self.last = time.perf_counter()
        self.frames = 0

    def frame_delta(self) -> float:
        now = time.perf_counter()  # cause
        delta, self.last = now - self.last, now
        return min(delta, self.cfg.max_dt)

    def step(self, frames: int):
        for _ in range(frames):
            self.world.advance(self.frame_delta())
            self.frames += 1
        return {"frames": self.frames, "sim_time": self.world.time}

    def info(self):
        w = self.world
        return {
            "sim_time": w.time,
            "joints": [[float(a), float(b)] for a, b in w.x],
            "kinetic": float((w.v**2).sum() / 2),
        }


def make_handler(runtime: Runtime):
    class Handler(BaseHTTPRequestHandler):
        def reply(self, payload):
            body = json.dumps(payload).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self):
            size = int(self.headers.get("Content-Length", 0))
            args = json.loads(self.rfile.read(size) or b"{}")
            self.reply(runtime.step(int(args.get("frames", 1))))

        def do_GET(self):
            self.reply(runtime.info())

        def log_message(self, fmt, *args):
            log.debug(fmt, *args)

    return Handler


class Client:
    def __init__(self, port: int):
        self.base = f"http://127.0.0.1:{port}/v1"

    def step(self, frames: int):
        data = json.dumps({"frames": frames}).encode()
        req = urllib.request.Request(self.base + "/step", data=data, method="POST")
        with urllib.request.urlopen(req) as r:
            return json.load(r)

    def info(self):
        with urllib.request.urlopen(self.base + "/info") as r:
            return json.load(r)


def experiment(client: Client, requests: int, frames: int):
    samples = []
    for k in range(requests):
        client.step(frames)
        if k % 10 == 9:
            state = client.info()
            centre = np.mean(state["joints"], axis=0)
            samples.append((k + 1, float(centre[0]), float(centre[1]), state["kinetic"]))
    return samples, client.info()


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    ap = argparse.ArgumentParser()
    ap.add_argument("--requests", type=int, default=400)
    ap.add_argument("--frames", type=int, default=24)
    ns = ap.parse_args()
    runtime = Runtime(PhysicsConfig())
    server = HTTPServer(("127.0.0.1", 0), make_handler(runtime))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    log.info("debug runtime on port %d", server.server_port)
    samples, final = experiment(Client(server.server_port), ns.requests, ns.frames)
    server.shutdown()
    lines = ["request,x,y,kinetic"] + [f"{k},{x:.6f},{y:.6f},{e:.6f}" for k, x, y, e in samples]
    Path("settle.csv").write_text("\n".join(lines) + "\n")
    Path("joints.json").write_text(json.dumps(final["joints"]))
    settled = next((k for k, _, _, e in samples if e < 0.05), None)
    print("settled after request", settled)
    print("head at %.5f %.5f" % tuple(final["joints"][-1]))


if __name__ == "__main__":
    main()
