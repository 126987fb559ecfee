import json
import sys

index = json.load(open(sys.argv[1]))
tokens = sys.argv[2].split()
hits = None
for token in tokens:
    found = set(index["postings"].get(token, []))
    hits = found if hits is None else hits & found
ranked = sorted(hits, key=lambda d: (-index["docs"][d]["population"], d))[:12]
print(sys.argv[2], [(index["docs"][d]["id"], index["docs"][d]["parent"]) for d in ranked])
