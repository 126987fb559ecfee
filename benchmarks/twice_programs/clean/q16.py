"""Deduplicating backup of a small home folder, twice, with restic's JSON messages.

Output format: restic init / backup --json (status and summary messages),
snapshots table, repository layout (config, data, snapshots, index, locks).
Seen at: https://github.com/restic/restic/pull/3586
         https://github.com/ngosang/restic-exporter/issues/38
Field: backup and storage.
"""
import hashlib
import json
import os
import random
import secrets
import shutil
import socket
import sys
import tempfile
import time
import zlib
from datetime import datetime, timezone

MIN, MAX, MASK = 2048, 16384, (1 << 12) - 1


def gear_table():
    rng = random.Random(4)
    return [rng.getrandbits(32) for _ in range(256)]


GEAR = gear_table()


def chunks(data):
    """Content defined chunking with a gear hash."""
    start, n = 0, len(data)
    while start < n:
        h, end = 0, min(start + MAX, n)
        i = min(start + MIN, n)
        while i < end:
            h = ((h << 1) + GEAR[data[i]]) & 0xFFFFFFFF
            i += 1
            if not h & MASK:
                break
        yield data[start:i]
        start = i


def now():
    t = time.time_ns()
    return datetime.fromtimestamp(t // 10 ** 9, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S") + f".{t % 10 ** 9:09d}Z"


def make_home(root):
    rng = random.Random(8)
    words = [f"w{rng.randrange(10 ** 6)}" for _ in range(900)]
    for d in range(6):
        os.makedirs(f"{root}/docs{d}")
        for f in range(8):
            size = rng.randrange(1000, 9000)
            with open(f"{root}/docs{d}/note{f}.txt", "w") as fh:
                fh.write(" ".join(rng.choice(words) for _ in range(size)))
    os.makedirs(f"{root}/photos")
    for f in range(6):
        with open(f"{root}/photos/img{f}.raw", "wb") as fh:
            fh.write(rng.randbytes(150000))
    shutil.copytree(f"{root}/docs1", f"{root}/copy_of_docs1")


def edit_home(root):
    with open(f"{root}/docs0/note3.txt", "a") as fh:
        fh.write(" and one more line")
    with open(f"{root}/photos/img2.raw", "r+b") as fh:
        fh.seek(70000)
        fh.write(b"edited" * 40)
    os.remove(f"{root}/docs2/note5.txt")
    with open(f"{root}/docs4/fresh.txt", "w") as fh:
        fh.write("fresh " * 3000)


class Repo:
    def __init__(self, path):
        self.path, self.id, self.blobs = path, secrets.token_hex(32), {}
        for d in ("data", "snapshots", "index", "locks"):
            os.makedirs(os.path.join(path, d))
        with open(f"{path}/config", "w") as fh:
            json.dump({"version": 2, "id": self.id, "chunker_polynomial": secrets.token_hex(7)}, fh)
        print(f"created restic repository {self.id[:10]} at {path}")

    def save(self, data):
        bid = hashlib.sha256(data).hexdigest()
        if bid in self.blobs:
            return bid, 0, 0
        packed = zlib.compress(data, 6)
        self.blobs[bid] = len(data)
        os.makedirs(f"{self.path}/data/{bid[:2]}", exist_ok=True)
        with open(f"{self.path}/data/{bid[:2]}/{bid}", "wb") as fh:
            fh.write(packed)
        return bid, len(data), len(packed)

    def backup(self, root, parent):
        begin, t0 = now(), time.perf_counter()
        lock = f"{self.path}/locks/{secrets.token_hex(32)}"
        with open(lock, "w") as fh:
            json.dump({"time": begin, "hostname": socket.gethostname(), "pid": os.getpid()}, fh)
        files = sorted(os.path.join(d, f) for d, _, fs in os.walk(root) for f in fs)
        total = sum(os.path.getsize(f) for f in files)
        s = dict.fromkeys(("files_new", "files_changed", "files_unmodified", "data_blobs", "data_added", "data_added_packed"), 0)
        tree, size = {}, 0
        for n, path in enumerate(files):
            with open(path, "rb") as fh:
                data = fh.read()
            rel, ids = os.path.relpath(path, root), []
            for piece in chunks(data):
                bid, raw, packed = self.save(piece)
                ids.append(bid)
                s["data_blobs"] += raw > 0
                s["data_added"] += raw
                s["data_added_packed"] += packed
            old = parent and parent["nodes"].get(rel)
            s["files_new" if not old else "files_unmodified" if old["content"] == ids else "files_changed"] += 1
            tree[rel] = {"content": ids, "size": len(data), "mtime": os.stat(path).st_mtime_ns, "inode": os.stat(path).st_ino}
            size += len(data)
            if n % 16 == 0:
                secs = time.perf_counter() - t0
                print(json.dumps({"message_type": "status", "seconds_elapsed": round(secs, 3),
                                  "seconds_remaining": round(secs * (total - size) / max(size, 1), 3), "percent_done": round(size / total, 6),
                                  "total_files": len(files), "files_done": n + 1, "bytes_done": size, "current_files": [path]}))
        snap = {"time": begin, "parent": parent and parent["id"], "tree": hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest(),
                "paths": [root], "hostname": socket.gethostname(), "uid": os.getuid(), "program_version": "restic 0.17.3",
                "summary": {"backup_start": begin, "backup_end": now(), **s, "total_files_processed": len(files), "total_bytes_processed": size}}
        sid = hashlib.sha256(json.dumps(snap).encode()).hexdigest()
        with open(f"{self.path}/snapshots/{sid}", "w") as fh:
            json.dump(snap, fh)
        with open(f"{self.path}/index/{secrets.token_hex(32)}", "w") as fh:
            json.dump({"packs": sorted(self.blobs.items())}, fh)
        os.remove(lock)
        print(json.dumps({"message_type": "summary", **s, "total_files_processed": len(files), "total_bytes_processed": size,
                          "total_duration": time.perf_counter() - t0, "snapshot_id": sid}))
        return {"id": sid, "nodes": tree, "time": begin, "size": size, "snap": snap}

    def restore(self, snap, target):
        digest, count = hashlib.sha256(), 0
        for rel, node in sorted(snap["nodes"].items()):
            path = os.path.join(target, rel)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as fh:
                for bid in node["content"]:
                    with open(f"{self.path}/data/{bid[:2]}/{bid}", "rb") as blob:
                        part = zlib.decompress(blob.read())
                    fh.write(part)
                    digest.update(part)
            count += 1
        return count, digest.hexdigest()


def main():
    t0 = time.perf_counter()
    work = tempfile.mkdtemp(prefix="restic-check-")
    try:
        home = os.path.join(work, "home")
        os.makedirs(home)
        make_home(home)
        repo = Repo(os.path.join(os.getcwd(), f"repo-{datetime.now():%H%M%S}"))
        first = repo.backup(home, None)
        edit_home(home)
        second = repo.backup(home, first)
        print("ID        Time                 Host        Paths                                     Size")
        print("-" * 92)
        for snap in (first, second):
            print(f"{snap['id'][:8]}  {snap['time'][:19].replace('T', ' ')}  {socket.gethostname():<10}  {home:<38}  {snap['size'] / 1048576:.3f} MiB")
        print("-" * 92 + "\n2 snapshots")
        t = time.perf_counter()
        count, digest = repo.restore(second, os.path.join(work, "restored"))
        secs = time.perf_counter() - t
        print(f"Summary: Restored {count} files/dirs ({second['size'] / 1048576:.3f} MiB) in 0:{secs:02.0f} ({second['size'] / 1048576 / secs:.1f} MiB/s)")
        raw = sum(repo.blobs.values())
        print(f"Total Blob Count: {len(repo.blobs)}\nTotal Uncompressed Size: {raw / 1048576:.3f} MiB")
        both = first["size"] + second["size"]
        print(f"Deduplication: {both / raw:.4f}x over {both} bytes\ncontent digest {digest}")
        print(f"[{time.strftime('%H:%M:%S')}] no errors were found, {time.perf_counter() - t0:.2f} s", file=sys.stderr)
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
