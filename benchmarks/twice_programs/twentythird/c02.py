"""Builds a single-file tile archive from a set of synthetic points of interest.

The points are clustered per zoom level, cut into tiles, encoded as small JSON
feature collections, compressed, and packed into one archive (header, root
directory, metadata, tile data). Equal tiles are stored once. The checksum of
the archive is what the mirror servers use to decide about a new download.

Modelled on: https://github.com/protomaps/PMTiles/pull/674
"""
import gzip
import hashlib
import json
import logging
import math
import struct
from collections import defaultdict
from pathlib import Path

import numpy as np

log = logging.getLogger("tiles")

MAGIC = b"TILES\x03"
HEADER = struct.Struct("<6sQQQQQQII")
KINDS = ["cafe", "school", "pharmacy", "station", "museum", "park"]
CITIES = [(13.40, 52.52), (8.54, 47.37), (2.35, 48.86), (16.37, 48.21), (4.90, 52.37), (-3.70, 40.42)]
EXTENT = 4096


def make_points(n, seed):
    """Draw points of interest around a few cities."""
    rng = np.random.default_rng(seed)
    city = rng.integers(0, len(CITIES), size=n)
    centre = np.array(CITIES)[city]
    lonlat = centre + rng.normal(0, 0.35, size=(n, 2))
    kind = rng.integers(0, len(KINDS), size=n)
    rank = np.round(rng.pareto(2.0, size=n), 4)
    return lonlat, kind, rank


def project(lonlat):
    """Web mercator coordinates in the unit square."""
    x = lonlat[:, 0] / 360.0 + 0.5
    sin = np.sin(np.radians(lonlat[:, 1]))
    y = 0.5 - np.log((1 + sin) / (1 - sin)) / (4 * math.pi)
    return np.column_stack([x, y])


def hilbert_id(z, x, y):
    """Tile id along the Hilbert curve, counted from zoom 0 on."""
    acc = (4 ** z - 1) // 3
    d, s = 0, 2 ** z // 2
    while s > 0:
        rx, ry = int((x & s) > 0), int((y & s) > 0)
        d += s * s * ((3 * rx) ^ ry)
        if ry == 0:
            if rx == 1:
                x, y = s - 1 - x, s - 1 - y
            x, y = y, x
        s //= 2
    return acc + d


def thin_out(xy, rank, zoom, cells=64):
    """Keep the highest ranked point of each grid cell of a zoom level."""
    size = 2 ** zoom * cells
    keys = np.floor(xy * size).astype(np.int64)
    best = {}
    for i in np.lexsort((np.arange(len(rank)), -rank)):
        best.setdefault((keys[i, 0], keys[i, 1]), i)
    return np.array(sorted(best.values()))


def cut_tiles(xy, kind, rank, zoom):
    """Group the points by tile and encode every tile."""
    keep = thin_out(xy, rank, zoom)
    tiles = defaultdict(list)
    for i in keep:
        fx, fy = xy[i] * 2 ** zoom
        tx, ty = int(fx), int(fy)
        tiles[(tx, ty)].append({
            "x": int((fx - tx) * EXTENT), "y": int((fy - ty) * EXTENT),
            "kind": KINDS[kind[i]], "rank": float(rank[i]),
        })
    return {key: json.dumps({"layer": "poi", "features": f}, separators=(",", ":")).encode()
            for key, f in tiles.items()}


def compress(data):
    return gzip.compress(data, 6)  # cause


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def serialize_directory(entries):
    """Delta encoded ids, then lengths, then offsets."""
    out = [varint(len(entries))]
    last = 0
    for tile_id, _, _ in entries:
        out.append(varint(tile_id - last))
        last = tile_id
    out += [varint(length) for _, _, length in entries]
    out += [varint(offset + 1) for _, offset, _ in entries]
    return compress(b"".join(out))


class Writer:
    def __init__(self, path):
        self.path = Path(path)
        self.blobs, self.seen, self.entries = [], {}, []
        self.offset = 0

    def write_tile(self, tile_id, raw):
        digest = hashlib.blake2b(raw, digest_size=16).digest()
        if digest not in self.seen:
            blob = compress(raw)
            self.seen[digest] = (self.offset, len(blob))
            self.blobs.append(blob)
            self.offset += len(blob)
        self.entries.append((tile_id, *self.seen[digest]))

    def finalize(self, metadata):
        self.entries.sort()
        root = serialize_directory(self.entries)
        meta = compress(json.dumps(metadata, sort_keys=True).encode())
        data = b"".join(self.blobs)
        start = HEADER.size
        header = HEADER.pack(MAGIC, start, len(root), start + len(root), len(meta),
                             start + len(root) + len(meta), len(data), len(self.entries), len(self.blobs))
        self.path.write_bytes(header + root + meta + data)
        return len(self.entries), len(self.blobs)


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    lonlat, kind, rank = make_points(26000, seed=674)
    xy = project(lonlat)
    writer = Writer("poi.tiles")
    report = []
    for zoom in range(4, 13):
        tiles = cut_tiles(xy, kind, rank, zoom)
        for (tx, ty), raw in sorted(tiles.items()):
            writer.write_tile(hilbert_id(zoom, tx, ty), raw)
        report.append({"zoom": zoom, "tiles": len(tiles), "bytes": sum(map(len, tiles.values()))})
        log.info("zoom %d: %d tiles", zoom, len(tiles))
    n_entries, n_blobs = writer.finalize({"name": "poi", "kinds": KINDS, "minzoom": 4, "maxzoom": 12})
    content = writer.path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    Path("poi.tiles.sha256").write_text(f"{digest}  poi.tiles\n")
    Path("report.json").write_text(json.dumps(report, indent=1))
    for row in report:
        print(f"z{row['zoom']:<3d}{row['tiles']:6d} tiles {row['bytes']:9d} bytes")
    print(f"{n_entries} entries, {n_blobs} blobs, {len(content)} bytes")
    print("sha256", digest)


if __name__ == "__main__":
    main()
