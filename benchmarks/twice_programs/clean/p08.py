"""Path-trace two frames of a sphere scene by tiles, with the console output of Blender Cycles.

Log format: https://github.com/OpenShot/openshot-qt/issues/2812 (Fra:.. Mem:.. | Time:.. | Remaining:.. | ...)
and https://github.com/vvoovv/blosm/issues/262 (Saved: path). The PNGs carry Blender's stamp (Date, RenderTime).
"""
import datetime
import os
import resource
import shutil
import socket
import tempfile
import threading
import time

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

W, H, TILE, SAMPLES, BOUNCES, FRAMES = 160, 96, 32, 22, 3, (1, 2)
LOG = open("render.log", "w")
T_FRAME = 0.0
LOCK = threading.Lock()
PEAK = 0.0


def mem():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096 / 2 ** 20


def hms(s):
    return f"{int(s) // 60:02d}:{s % 60:05.2f}"


def say(msg):
    print(msg, flush=True)
    LOG.write(msg + "\n")


def status(frame, text, remaining=None):
    global PEAK
    m = mem()
    PEAK = max(PEAK, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    rem = f" | Remaining:{hms(remaining)}" if remaining is not None else ""
    say(f"Fra:{frame} Mem:{m:.2f}M (0.00M, Peak {PEAK:.2f}M) | Time:{hms(time.perf_counter() - T_FRAME)}{rem} | "
        f"Mem:{m:.2f}M, Peak:{PEAK:.2f}M | Scene, RenderLayer | {text}")


def scene(frame):
    rng = np.random.default_rng(77)
    k = 14
    centers = np.column_stack([rng.uniform(-4, 4, k), rng.uniform(-0.6, 1.6, k), rng.uniform(4, 10, k)])
    centers[:, 0] += 0.3 * frame
    radii = rng.uniform(0.35, 0.9, k)
    colors = rng.uniform(0.2, 0.95, (k, 3))
    centers = np.vstack([centers, [0, -1001, 6]])
    return centers, np.append(radii, 1000.0), np.vstack([colors, [0.6, 0.6, 0.6]])


def intersect(o, d, centers, radii):
    oc = o[:, None, :] - centers[None]
    b = (oc * d[:, None, :]).sum(-1)
    c = (oc ** 2).sum(-1) - radii ** 2
    disc = b * b - c
    t = np.where(disc > 0, -b - np.sqrt(np.maximum(disc, 0)), np.inf)
    t = np.where(t > 1e-3, t, np.inf)
    i = t.argmin(1)
    return t[np.arange(len(o)), i], i


def trace(o, d, sc, rng):
    centers, radii, colors = sc
    out = np.zeros((len(o), 3))
    thr = np.ones((len(o), 3))
    alive = np.arange(len(o))
    for _ in range(BOUNCES + 1):
        t, i = intersect(o, d, centers, radii)
        miss = ~np.isfinite(t)
        sky = 0.5 * (d[miss, 1:2] + 1.0)
        out[alive[miss]] += thr[miss] * ((1 - sky) * np.array([1.0, 1.0, 1.0]) + sky * np.array([0.4, 0.6, 1.0]))
        hit = ~miss
        if not hit.any():
            break
        o, d, thr, alive, t, i = o[hit], d[hit], thr[hit], alive[hit], t[hit], i[hit]
        p = o + d * t[:, None]
        n = (p - centers[i]) / radii[i][:, None]
        r = rng.normal(size=p.shape)
        r /= np.linalg.norm(r, axis=1, keepdims=True)
        d = n + r
        d /= np.linalg.norm(d, axis=1, keepdims=True) + 1e-12
        o = p + 1e-3 * n
        thr = thr * colors[i]
    return out


def render_tile(frame, no, x0, y0, sc, film):
    rng = np.random.default_rng([frame, no])     # each tile has its own stream
    ys, xs = np.mgrid[y0:min(y0 + TILE, H), x0:min(x0 + TILE, W)]
    acc = np.zeros((xs.size, 3))
    for _ in range(SAMPLES):
        u = (xs.ravel() + rng.random(xs.size) - W / 2) / H
        v = -(ys.ravel() + rng.random(xs.size) - H / 2) / H
        d = np.column_stack([u, v, np.ones(xs.size)])
        d /= np.linalg.norm(d, axis=1, keepdims=True)
        acc += trace(np.zeros_like(d), d, sc, rng)
    film[ys, xs] = (acc / SAMPLES).reshape(ys.shape + (3,))


def render(frame):
    global T_FRAME
    T_FRAME = time.perf_counter()
    for obj in ("Camera", "Sun", "Ground", "Spheres"):
        status(frame, f"Synchronizing object | {obj}")
    sc = scene(frame)
    status(frame, "Updating Integrator")
    film = np.zeros((H, W, 3))
    tiles = [(x, y) for y in range(0, H, TILE) for x in range(0, W, TILE)]
    todo, done = list(enumerate(tiles)), [0]
    t0 = time.perf_counter()
    status(frame, f"Path Tracing Tile 0/{len(tiles)}, Sample 0/{SAMPLES}")

    def worker():
        while True:
            with LOCK:
                if not todo:
                    return
                no, (x, y) = todo.pop(0)
            render_tile(frame, no, x, y, sc, film)
            with LOCK:
                done[0] += 1
                left = (time.perf_counter() - t0) / done[0] * (len(tiles) - done[0])
                status(frame, f"Path Tracing Tile {done[0]}/{len(tiles)}, Sample {SAMPLES}/{SAMPLES}", left)

    threads = [threading.Thread(target=worker) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    status(frame, "Finished")
    return film


def main():
    tmp = tempfile.mkdtemp(prefix="blender_")
    say(f"Blender 2.79 (sub 0), temporary directory {tmp}, pid {os.getpid()}")
    films, stats = [], []
    for frame in FRAMES:
        film = render(frame)
        took = time.perf_counter() - T_FRAME
        t0 = time.perf_counter()
        img = Image.fromarray((np.clip(film, 0, 1) ** (1 / 2.2) * 255).astype(np.uint8))
        info = PngInfo()
        info.add_text("Date", datetime.datetime.now().strftime("%Y/%m/%d %H:%M:%S"))
        info.add_text("RenderTime", hms(took))
        info.add_text("Frame", str(frame))
        info.add_text("Hostname", socket.gethostname())
        info.add_text("Memory", f"{mem():.2f}M")
        path = os.path.join(tmp, f"{frame:04d}.png")
        img.save(path, pnginfo=info)
        say(f"Saved: '{path}'")
        shutil.move(path, f"{frame:04d}.png")
        say(f" Time: {hms(took)} (Saving: {hms(time.perf_counter() - t0)})\n")
        films.append(film)
        stats.append((film.mean(), film.std(), film.max()))
    os.rmdir(tmp)
    for frame, (m, s, x) in zip(FRAMES, stats):
        say(f"Frame {frame}: mean radiance {m:.10f}, std {s:.10f}, max {x:.10f}")
    np.savez_compressed("film.npz", frames=np.stack(films))
    say("\nBlender quit")


if __name__ == "__main__":
    main()
