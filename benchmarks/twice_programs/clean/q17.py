"""A toy block transform video encoder with the verbose frame report of rav1e.

Output format: rav1e -v (one line for each frame with bytes, PSNR, "encoded n/m
frames, fps, Kb/s, est. size, est. time") and its closing summary; a preview
PNG and a JSON statistics file beside the stream.
Seen at: https://github.com/xiph/rav1e/pull/772
Field: video coding.
"""
import json
import os
import platform
import struct
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from PIL import Image, PngImagePlugin
from scipy.fft import dctn, idctn

W, H, FRAMES, RATE, KEYINT, B = 160, 96, 18, 30, 6, 8
QUANT = {"Y": 14.0, "U": 20.0, "V": 20.0}


def clip(n):
    rng = np.random.default_rng(17)
    texture = rng.normal(0, 10, (H * 2, W * 2))
    y, x = np.mgrid[0:H, 0:W]
    for t in range(n):
        luma = 110 + 40 * np.sin((x + 3 * t) / 17) + 25 * np.cos((y - 2 * t) / 11)
        luma = luma + texture[t:t + H, 2 * t:2 * t + W]
        ball = (x - 20 - 4 * t) ** 2 + (y - 64 - 30 * np.sin(t / 5)) ** 2 < 220
        luma[ball] = 230
        u = 128 + 30 * np.sin((x[::2, ::2] + t) / 25)
        v = 128 + 30 * np.cos((y[::2, ::2] - t) / 25)
        yield {"Y": np.clip(luma, 0, 255).round(), "U": u.round(), "V": v.round()}


def blocks(plane):
    h, w = plane.shape
    return plane.reshape(h // B, B, w // B, B).swapaxes(1, 2)


def unblocks(b):
    return b.swapaxes(1, 2).reshape(b.shape[0] * B, b.shape[1] * B)


def predict(ref, cur):
    """Best whole-block motion vector in a small window, by sum of absolute differences."""
    h, w = cur.shape
    pad = np.pad(ref, 6, mode="edge")
    best = np.full((h // 16, w // 16), np.inf)
    pred = np.zeros_like(cur)
    for dy in range(-6, 7, 2):
        for dx in range(-6, 7, 2):
            cand = pad[6 + dy:6 + dy + h, 6 + dx:6 + dx + w]
            sad = np.abs(cand - cur).reshape(h // 16, 16, w // 16, 16).sum((1, 3))
            better = sad < best - 1e-9
            best = np.where(better, sad, best)
            mask = np.repeat(np.repeat(better, 16, 0), 16, 1)
            pred[mask] = cand[mask]
    return pred


def encode_plane(args):
    name, cur, ref = args
    pred = np.full_like(cur, 128.0) if ref is None else predict(ref, cur)
    coef = dctn(blocks(cur - pred), axes=(2, 3), norm="ortho")
    q = QUANT[name] * (0.8 if ref is None else 1.0)
    level = np.rint(coef / q).astype(np.int16)
    rec = np.clip(unblocks(idctn(level * q, axes=(2, 3), norm="ortho")) + pred, 0, 255).round()
    mse = float(np.mean((rec - cur) ** 2))
    psnr = 100.0 if mse == 0 else 10 * np.log10(255 ** 2 / mse)
    return name, zlib.compress(level.transpose(2, 3, 0, 1).tobytes(), 9), rec, psnr, threading.current_thread().name


def main():
    start = time.time()
    print(f"rav1e 0.7.1 (release) on {platform.node()}, process {os.getpid()}, {os.cpu_count()} logical threads")
    print(f"Using y4m decoder\n{W}x{H} @ {RATE}/1 fps, 4:2:0, 8-bit, keyframe interval {KEYINT}, quantizer {QUANT['Y']:.0f}")
    out, total, ref = open("clip.ivf", "wb"), 0, None
    out.write(struct.pack("<4sHH4sHHIIII", b"DKIF", 0, 32, b"TOY1", W, H, RATE, 1, FRAMES, int(start)))
    stats, who = [], set()
    with ThreadPoolExecutor(3, thread_name_prefix="tile") as pool:
        for n, frame in enumerate(clip(FRAMES)):
            key = n % KEYINT == 0
            t = time.perf_counter()
            planes = list(pool.map(encode_plane, [(p, frame[p], None if key else ref[p]) for p in "YUV"]))
            ref = {p[0]: p[2] for p in planes}
            payload = b"".join(struct.pack("<I", len(p[1])) + p[1] for p in planes)
            out.write(struct.pack("<IQ", len(payload), n) + payload)
            total += len(payload)
            psnr = {p[0]: p[3] for p in planes}
            who.update(p[4] for p in planes)
            done, secs = n + 1, time.time() - start
            fps = done / secs
            size_mb = total / done * FRAMES / 1e6
            kbps = total * 8 / done * RATE / 1000
            stats.append({"frame": n, "type": "key" if key else "inter", "bytes": len(payload), "psnr": {k: round(v, 4) for k, v in psnr.items()},
                          "encode_ms": round(1000 * (time.perf_counter() - t), 3), "finished_at": time.time()})
            print(f"Frame {n} - {'Key frame' if key else 'Inter frame'} - {len(payload)} bytes - PSNR: Y: {psnr['Y']:.4f}  U: {psnr['U']:.4f}  "
                  f"V: {psnr['V']:.4f} - encoded {done}/{FRAMES} frames, {fps:.2f} fps, {kbps:.2f} Kb/s, est. size: {size_mb:.3f} MB, "
                  f"est. time: {(FRAMES - done) / fps:.1f} s")
            sys.stderr.write(f"\r[{'#' * (24 * done // FRAMES):<24}] {100 * done // FRAMES}% {fps:6.2f} fps")
    out.close()
    sys.stderr.write("\n")
    secs = time.time() - start
    print("-" * 60)
    for kind, label in (("key", "Key frames"), ("inter", "Inter frames")):
        rows = [s for s in stats if s["type"] == kind]
        print(f"{label:<13}: {len(rows):4d} | avg size: {sum(s['bytes'] for s in rows) / len(rows):10.1f} B | avg Y PSNR: {np.mean([s['psnr']['Y'] for s in rows]):.4f} | "
              f"avg time: {np.mean([s['encode_ms'] for s in rows]):.2f} ms")
    mean = {p: float(np.mean([s["psnr"][p] for s in stats])) for p in "YUV"}
    avg = (4 * mean["Y"] + mean["U"] + mean["V"]) / 6
    print(f"Mean PSNR: Y: {mean['Y']:.4f}  U: {mean['U']:.4f}  V: {mean['V']:.4f}  Avg: {avg:.4f}")
    print(f"encoded {FRAMES} frames, {FRAMES / secs:.3f} fps, {total * 8 * RATE / FRAMES / 1000:.2f} Kb/s, total {total} bytes in {secs:.2f} s")
    with open("clip.json", "w") as fh:
        json.dump({"encoder": "rav1e toy", "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "host": platform.node(), "pid": os.getpid(),
                   "seconds": secs, "threads": sorted(who), "frames": stats, "mean_psnr": {k: round(v, 4) for k, v in mean.items()}}, fh, indent=1)
    info = PngImagePlugin.PngInfo()
    info.add_text("date:create", time.strftime("%Y-%m-%dT%H:%M:%S"))
    info.add_text("tmp", f"/tmp/rav1e-{os.getpid()}/preview.y4m")
    Image.fromarray(ref["Y"].astype(np.uint8)).save("preview.png", pnginfo=info)


if __name__ == "__main__":
    main()
