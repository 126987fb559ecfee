"""Summary numbers of a replay."""
import csv


def summarise(results, store):
    chunks = sum(r.chunks for r in results)
    hits = sum(r.hits for r in results)
    loads = [len(s.blocks) + s.evictions for s in store.shards]
    saved = sum(r.seconds_without_store - r.seconds for r in results)
    return {
        "chunks": chunks,
        "hits": hits,
        "hit_rate": round(hits / chunks, 8),
        "evictions": store.evictions,
        "imbalance": round(max(loads) / (sum(loads) / len(loads)), 6),
        "seconds_saved": round(saved, 6),
        "engines": {
            r.engine: {
                "hit_rate": round(r.hit_rate, 8),
                "computed": r.computed,
                "hit_rate_by_turn": {str(t): round(h / n, 6) for t, (h, n) in sorted(r.per_turn_hits.items())},
            }
            for r in results
        },
    }


def shard_table(store, path):
    with open(path, "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["shard", "blocks", "lookups", "hits", "evictions"])
        for s in store.shards:
            writer.writerow([s.index, len(s.blocks), s.lookups, s.hits, s.evictions])
