"""Build a prompt from the first matches that fit the budget."""
import hashlib
import json
import sys

budget = int(sys.argv[2])
picked, used, by_type = [], 0, {}
for line in open(sys.argv[1]):
    row = json.loads(line)
    cost = len(line) // 4
    if used + cost > budget:
        break
    used += cost
    picked.append(f"{row['file']}:{row['line']} {row['name']} -> {row['type']}")
    by_type[row["type"]] = by_type.get(row["type"], 0) + 1
text = "\n".join(picked)
with open(sys.argv[3], "w") as fh:
    fh.write(text + "\n")
print("matches in prompt", len(picked), "tokens", used)
print("types", dict(sorted(by_type.items())))
print("prompt key", hashlib.sha256(text.encode()).hexdigest()[:16])
