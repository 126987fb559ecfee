"""A deduplicating backup with chunking and compression: three archives, a prune and a check, in borg's words.

Output follows BorgBackup (https://borgbackup.readthedocs.io/en/1.4-maint/usage/info.html and
https://gist.github.com/azrdev/795c916e755d85c1e7af68c24ee8d577): --stats block with Time (start), Duration,
archive fingerprint (which covers the start time, as in borg), --list lines, JSON info.
"""
import getpass
import hashlib
import json
import os
import random
import socket
import struct
import sys
import time
import zlib
from datetime import datetime
from pathlib import Path

REPO = Path("repo")
_r = random.Random(1234)
GEAR = [_r.getrandbits(32) for _ in range(256)]
MASK, MIN, MAX = (1 << 11) - 1, 512, 8192
LINE = "-" * 78


def chunkify(data):
    """Gear-hash content-defined chunks."""
    out, start, h = [], 0, 0
    for i, b in enumerate(data):
        h = ((h << 1) + GEAR[b]) & 0xFFFFFFFF
        n = i - start + 1
        if (n >= MIN and not h & MASK) or n >= MAX:
            out.append(data[start:i + 1])
            start, h = i + 1, 0
    if start < len(data):
        out.append(data[start:])
    return out


def size(n):
    for u in ("B", "kB", "MB", "GB"):
        if n < 1000 or u == "GB":
            return f"{n:.0f} {u}" if u == "B" else f"{n:.2f} {u}"
        n /= 1000


class Repository:
    def __init__(self):
        (REPO / "data" / "0").mkdir(parents=True)
        self.id = os.urandom(32).hex()
        (REPO / "config").write_text(f"[repository]\nversion = 1\nsegments_per_dir = 1000\nid = {self.id}\n")
        self.seg = open(REPO / "data" / "0" / "1", "wb")
        self.index, self.refs, self.archives = {}, {}, []

    def put(self, chunk):
        k = hashlib.blake2b(chunk, digest_size=16).hexdigest()
        self.refs[k] = self.refs.get(k, 0) + 1
        new = k not in self.index
        if new:
            z = zlib.compress(chunk, 6)
            self.index[k] = (self.seg.tell(), len(z), len(chunk))
            self.seg.write(struct.pack("<II", zlib.crc32(z), len(z)) + z)
        return k, new

    def get(self, k):
        pos, n, _ = self.index[k]
        self.seg.flush()
        with open(self.seg.name, "rb") as f:
            f.seek(pos)
            crc, m = struct.unpack("<II", f.read(8))
            z = f.read(m)
        assert m == n and zlib.crc32(z) == crc
        return zlib.decompress(z)


def totals(repo, archives):
    o = sum(a["original"] for a in archives)
    c = sum(repo.index[k][1] for a in archives for ks in a["files"].values() for k in ks)
    uniq = {k for a in archives for ks in a["files"].values() for k in ks}
    return o, c, sum(repo.index[k][1] for k in uniq), len(uniq), sum(len(ks) for a in archives for ks in a["files"].values())


def create(repo, tag, src):
    start = datetime.now()
    name = f"{tag}-{start:%Y-%m-%dT%H:%M:%S}"
    print(f'Creating archive at "{REPO.resolve()}::{name}"')
    files, original, fresh = {}, 0, 0
    prev = repo.archives[-1]["files"] if repo.archives else {}
    for p in sorted(src.rglob("*")):
        if not p.is_file():
            continue
        data = p.read_bytes()
        keys = []
        for c in chunkify(data):
            k, new = repo.put(c)
            keys.append(k)
            fresh += repo.index[k][1] if new else 0
        rel = str(p.relative_to(src))
        status = "A" if rel not in prev else "U" if prev[rel] == keys else "M"
        files[rel] = keys
        original += len(data)
        if status != "U":
            print(f"{status} {rel}")
        sys.stderr.write(f"{size(original)} O {size(fresh)} D {len(files)} N {rel}\r")
    sys.stderr.write("\n")
    end = datetime.now()
    a = {"name": name, "start": start.isoformat(), "end": end.isoformat(), "hostname": socket.gethostname(), "files": files,
         "original": original}
    fp = hashlib.sha256(json.dumps(a, sort_keys=True).encode()).hexdigest()
    a["id"], a["tree"] = fp, hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
    repo.archives.append(a)
    o, c, d, _, _ = totals(repo, [a])
    print(LINE)
    print(f"Repository: {REPO.resolve()}\nArchive name: {name}\nArchive fingerprint: {fp}")
    print(f"Time (start): {start:%a, %Y-%m-%d %H:%M:%S}\nTime (end):   {end:%a, %Y-%m-%d %H:%M:%S}")
    print(f"Duration: {(end - start).total_seconds():.2f} seconds\nNumber of files: {len(files)}")
    print("Utilization of max. archive size: 0%\n" + LINE)
    print(f"{'':23}{'Original size':>15}{'Compressed size':>20}{'Deduplicated size':>20}")
    print(f"{'This archive:':<23}{size(o):>15}{size(c):>20}{size(fresh):>20}")
    o, c, d, u, t = totals(repo, repo.archives)
    print(f"{'All archives:':<23}{size(o):>15}{size(c):>20}{size(d):>20}\n")
    print(f"{'':23}{'Unique chunks':>15}{'Total chunks':>20}\n{'Chunk index:':<23}{u:>15}{t:>20}\n" + LINE)
    print(f"tree {a['tree'][:32]}")


def make_tree(src, r):
    words = "alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima".split()
    for d in ("docs", "mail", "photos/2019", "photos/2020"):
        (src / d).mkdir(parents=True)
        for i in range(8):
            if d.startswith("photos"):
                (src / d / f"img_{i:04d}.raw").write_bytes(r.randbytes(60000))
            else:
                (src / d / f"{i:03d}.txt").write_text(" ".join(r.choice(words) for _ in range(9000)))


def modify(src, r):
    for p in r.sample(sorted(src.rglob("*.txt")), 4):
        s = p.read_text()
        k = r.randrange(len(s))
        p.write_text(s[:k] + " inserted words here " + s[k:])
    (src / "docs" / f"new_{r.randrange(1000):03d}.txt").write_text("fresh notes " * r.randrange(300, 600))


def main():
    t0 = time.monotonic()
    r = random.Random(2024)
    src = Path("home")
    make_tree(src, r)
    repo = Repository()
    try:
        user = getpass.getuser()
    except Exception:
        user = "unknown"
    print(f"borg 1.2.8 as {user}@{socket.gethostname()} [{os.getpid()}], repository id {repo.id}")
    for tag in ("monday", "tuesday", "wednesday"):
        create(repo, tag, src)
        modify(src, r)
    gone = repo.archives.pop(0)
    print(f"Pruning archive (1/1): {gone['name']:<36} {datetime.fromisoformat(gone['start']):%a, %Y-%m-%d %H:%M:%S} [{gone['id']}]")
    t = time.monotonic()
    bad = 0
    for a in repo.archives:
        for ks in a["files"].values():
            for k in ks:
                bad += hashlib.blake2b(repo.get(k), digest_size=16).hexdigest() != k
    print(f"Archive consistency check complete, {'no problems found' if not bad else f'{bad} problems'}. ({time.monotonic() - t:.2f}s)")
    repo.seg.close()
    with open("info.json", "w") as f:
        json.dump({"repository": {"id": repo.id, "location": str(REPO.resolve()), "last_modified": datetime.now().isoformat()},
                   "archives": repo.archives, "elapsed": time.monotonic() - t0}, f, indent=1)
    print("terminating with success status, rc 0")


if __name__ == "__main__":
    main()
