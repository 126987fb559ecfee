import json
import sys
from collections import defaultdict
from pathlib import Path

source, out = sys.argv[1], Path(sys.argv[2])
docs, names, postings = [], {}, defaultdict(list)
for line in open(source):
    rec = json.loads(line)
    parent = names.get(rec["name"])
    rec["doc"] = len(docs)
    rec["parent"] = docs[parent]["id"] if parent is not None else None
    if parent is None:
        names[rec["name"]] = rec["doc"]
    docs.append(rec)
    for token in rec["name"].split():
        postings[token].append(rec["doc"])
index = {"docs": docs, "postings": dict(sorted(postings.items()))}
(out / "index.json").write_text(json.dumps(index))
canonical = {name: docs[d]["id"] for name, d in sorted(names.items())}
(out / "canonical.json").write_text(json.dumps(canonical, indent=1))
