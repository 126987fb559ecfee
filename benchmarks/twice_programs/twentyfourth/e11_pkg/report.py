"""Number the sessions, pick a subset for review and print a summary."""
import json
import random
import sys

FIELDS = ("host", "client", "first", "last", "hits", "bytes", "errors")


def load(path):
    rows = []
    with open(path) as handle:
        for line in handle:
            row = dict(zip(FIELDS, line.rstrip("\n").split("\t")))
            for name in FIELDS[2:]:
                row[name] = int(row[name])
            row["session"] = len(rows) + 1
            rows.append(row)
    return rows


def moving_anomalies(rows, alpha=0.02):
    """Sessions far above an exponentially weighted mean of the volume."""
    mean, var, flagged = 0.0, 1.0, []
    for row in rows:
        volume = row["bytes"] / 1000.0
        if row["session"] > 50 and volume > mean + 4.0 * var ** 0.5:
            flagged.append(row["session"])
        delta = volume - mean
        mean += alpha * delta
        var = (1 - alpha) * (var + alpha * delta * delta)
    return flagged, mean


def main():
    source, target, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rows = load(source)
    flagged, level = moving_anomalies(rows)
    review = random.Random(seed).sample(rows, 12)
    summary = {
        "sessions": len(rows),
        "hits": sum(r["hits"] for r in rows),
        "flagged": flagged[:40],
        "level": round(level, 4),
        "review": [{k: r[k] for k in ("session", "host", "client", "hits")} for r in review],
    }
    with open(target, "w") as handle:
        json.dump(summary, handle, indent=1)
    print("sessions", len(rows), "hits", summary["hits"])
    print("flagged", len(flagged), "level %.4f" % level)
    for r in review:
        print("review session %d of %s: %s, %d hits" % (r["session"], r["host"], r["client"], r["hits"]))


if __name__ == "__main__":
    main()
