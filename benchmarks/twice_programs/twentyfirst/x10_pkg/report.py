"""Rollups for the comparison with the recorded run."""
import csv
from collections import defaultdict


def rollup(received):
    table = []
    for name in sorted(received):
        groups = defaultdict(lambda: [0, 0, 0.0])
        for e in received[name]:
            g = groups[(e["path"], e["level"])]
            g[0] += 1
            g[1] += e["bytes"]
            g[2] += e["latency"]
        for (path, level), (n, size, lat) in sorted(groups.items()):
            table.append([name, path, level, n, size, f"{lat / n:.6f}"])
    return table


def write_csv(path, rows):
    with open(path, "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["output", "path", "level", "events", "bytes", "latency"])
        w.writerows(rows)
