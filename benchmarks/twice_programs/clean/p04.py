"""Deduplicating backup of a generated source tree, reporting as `borg create --stats` does.

Output format: https://github.com/borgbackup/borg/pull/3234 and
https://github.com/borgbackup/borg/issues/6612 (Archive fingerprint, Time (start), Duration, sizes)
"""
import csv
import getpass
import hashlib
import json
import os
import random
import shutil
import socket
import tempfile
import time
import zlib
from datetime import datetime

import numpy as np
from numba import njit

SEED = 5
RNG = random.Random(SEED)
WINDOW, MASK, MIN_CHUNK, MAX_CHUNK = 48, (1 << 12) - 1, 1024, 32768
TABLE = np.random.default_rng(SEED).integers(0, 2 ** 32, 256, dtype=np.uint64).astype(np.uint64)


@njit
def cut_points(data, table, window, mask, lo, hi):
    """Buzhash content-defined chunking."""
    out = []
    h = np.uint64(0)
    m32 = np.uint64(0xFFFFFFFF)
    start = 0
    n = len(data)
    for i in range(n):
        h = ((h << np.uint64(1)) | (h >> np.uint64(31))) & m32
        h ^= table[data[i]]
        if i >= window:
            old = table[data[i - window]]
            r = np.uint64(window % 32)
            old = ((old << r) | (old >> (np.uint64(32) - r))) & m32
            h ^= old
        size = i + 1 - start
        if size >= hi or (size >= lo and (h & np.uint64(mask)) == np.uint64(0)):
            out.append(i + 1)
            start = i + 1
    if start < n:
        out.append(n)
    return out


def human(n):
    for unit in ("B", "kB", "MB", "GB"):
        if abs(n) < 1000 or unit == "GB":
            return f"{n:.2f} {unit}" if unit != "B" else f"{n} B"
        n /= 1000.0


def write_tree(root, n_files):
    words = ["".join(RNG.choices("abcdefghijklmnopqrstuvwxyz", k=RNG.randint(2, 9))) for _ in range(900)]
    for i in range(n_files):
        d = os.path.join(root, f"pkg{i % 7}", f"mod{i % 3}")
        os.makedirs(d, exist_ok=True)
        if i % 5 == 0:
            body = RNG.randbytes(RNG.randint(2000, 120000))
        else:
            body = " ".join(RNG.choices(words, k=RNG.randint(500, 15000))).encode()
        with open(os.path.join(d, f"f{i:03d}.dat"), "wb") as f:
            f.write(body)


def edit_tree(root, share):
    for path in list_files(root):
        if RNG.random() < share:
            with open(path, "r+b") as f:
                data = bytearray(f.read())
                at = RNG.randrange(len(data))
                data[at:at] = RNG.randbytes(RNG.randint(10, 4000))
                f.seek(0)
                f.write(data)


def list_files(root):
    return sorted(os.path.join(d, f) for d, _, fs in os.walk(root) for f in fs)


class Repo:
    def __init__(self):
        self.chunks = {}       # id -> [size, csize, refcount]
        self.store = {}
        self.archives = []
        self.id = os.urandom(32).hex()

    def add(self, data):
        cid = hashlib.blake2b(data, digest_size=32).hexdigest()
        if cid in self.chunks:
            self.chunks[cid][2] += 1
            return cid, 0
        packed = zlib.compress(data, 6)
        self.store[cid] = packed
        self.chunks[cid] = [len(data), len(packed), 1]
        return cid, len(packed)

    def totals(self):
        osize = sum(s * r for s, _, r in self.chunks.values())
        csize = sum(c * r for _, c, r in self.chunks.values())
        return osize, csize, sum(c for _, c, _ in self.chunks.values())


def create(repo, name, root, log):
    start, t0 = datetime.now(), time.perf_counter()
    log(f"Creating archive at \"{root}/repo::{name}\"")
    osize = csize = dsize = 0
    items = []
    for path in list_files(root):
        raw = open(path, "rb").read()
        arr = np.frombuffer(raw, np.uint8)
        prev, ids = 0, []
        for cut in cut_points(arr, TABLE, WINDOW, MASK, MIN_CHUNK, MAX_CHUNK):
            cid, new = repo.add(raw[prev:cut])
            ids.append(cid)
            dsize += new
            csize += repo.chunks[cid][1]
            prev = cut
        osize += len(raw)
        items.append((os.path.relpath(path, root), ids))
        if len(items) % 40 == 0:
            log(f"{human(osize)} O {human(csize)} C {human(dsize)} D {len(items)} N {os.path.relpath(path, root)}")
    end = datetime.now()
    meta = {"name": name, "time": start.isoformat(), "time_end": end.isoformat(),
            "hostname": socket.gethostname(), "username": getpass.getuser(), "items": items}
    fp = hashlib.sha256(json.dumps(meta).encode()).hexdigest()
    dur = time.perf_counter() - t0
    line = "-" * 78
    log(line)
    log(f"Archive name: {name}\nArchive fingerprint: {fp}")
    log(f"Time (start): {start:%a, %Y-%m-%d %H:%M:%S}\nTime (end):   {end:%a, %Y-%m-%d %H:%M:%S}")
    log(f"Duration: {dur:.2f} seconds\nNumber of files: {len(items)}\nUtilization of max. archive size: 0%")
    log(line)
    log("                       Original size      Compressed size    Deduplicated size")
    log(f"This archive:   {human(osize):>20} {human(csize):>20} {human(dsize):>20}")
    log("All archives:   " + " ".join(f"{human(v):>20}" for v in repo.totals()))
    log("\n                       Unique chunks         Total chunks")
    log(f"Chunk index:    {len(repo.chunks):>20} {sum(r for _, _, r in repo.chunks.values()):>20}")
    log(line)
    repo.archives.append({"name": name, "id": fp, "start": start.isoformat(), "end": end.isoformat(), "duration": dur,
                          "command_line": ["borg", "create", "--stats", f"::{name}", root],
                          "stats": {"original_size": osize, "compressed_size": csize, "deduplicated_size": dsize,
                                    "nfiles": len(items)}})
    return items


def verify(repo, items, root):
    bad = 0
    for rel, ids in items:
        data = b"".join(zlib.decompress(repo.store[i]) for i in ids)
        bad += data != open(os.path.join(root, rel), "rb").read()
    return bad


def main():
    out = open("borg.log", "w")

    def log(msg):
        print(msg, flush=True)
        out.write(f"{datetime.now().isoformat(timespec='milliseconds')} {msg}\n")

    root = tempfile.mkdtemp(prefix="borg-src-")
    repo = Repo()
    log(f"Repository id: {repo.id}")
    try:
        write_tree(root, 200)
        for k in range(3):
            if k:
                edit_tree(root, 0.15)
            items = create(repo, f"backup-{k + 1}", root, log)
            t0 = time.perf_counter()
            bad = verify(repo, items, root)
            log(f"Archive consistency check complete, {bad} problems found. ({time.perf_counter() - t0:.3f} s)")
    finally:
        shutil.rmtree(root)
    osize, csize, dsize = repo.totals()
    with open("info.json", "w") as f:
        json.dump({"archives": repo.archives, "cache": {"stats": {
            "total_size": osize, "total_csize": csize, "unique_csize": dsize,
            "total_unique_chunks": len(repo.chunks)}},
            "repository": {"id": repo.id, "last_modified": datetime.now().isoformat()}}, f, indent=4)
    with open("chunks.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["chunk_id", "size", "csize", "refcount"])
        for cid in sorted(repo.chunks):
            w.writerow([cid] + repo.chunks[cid])
    log("terminating with success status, rc 0")


if __name__ == "__main__":
    main()
