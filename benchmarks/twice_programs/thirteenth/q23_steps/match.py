"""Print the matches of one file, one JSON object per line."""
import json
import re
import sys
from pathlib import Path

pattern, path = re.compile(sys.argv[1]), Path(sys.argv[2])
rows = []
for number, line in enumerate(path.read_text().splitlines(), 1):
    m = pattern.search(line)
    if m:
        rows.append(json.dumps({"file": path.name, "line": number, "name": m.group(1), "type": m.group(2)}))
if rows:
    sys.stdout.write("\n".join(rows) + "\n")
    sys.stdout.flush()
