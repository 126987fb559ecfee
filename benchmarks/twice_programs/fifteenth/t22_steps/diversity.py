"""Diversity measures of a table of counts per depth."""
import json
import math
import sys


def measures(counts):
    total = sum(counts)
    probs = [c / total for c in counts if c]
    shannon = -sum(q * math.log(q) for q in probs)
    simpson = 1 - sum(q * q for q in probs)
    return {"observed": len(probs), "shannon": round(shannon, 8), "simpson": round(simpson, 8),
            "dominance": round(max(probs), 8)}


def main():
    result = {}
    for path in sys.argv[1:]:
        with open(path) as fh:
            rows = [line.split("\t") for line in fh]
        result[path.rsplit("/", 1)[-1]] = measures([int(n) for name, n in rows if name != "unassigned"])
    print(json.dumps(result, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
