"""Makes the report of a run from the documents of all files."""
import json
import sys


def read_documents(path):
    with open(path) as fh:
        return [json.loads(line) for line in fh if line.strip()]


def trend(documents, weight=0.2):
    """Smoothed complexity per function over the documents."""
    level = None
    out = []
    for doc in documents:
        value = doc["cyclomatic"] / doc["functions"]
        level = value if level is None else weight * value + (1 - weight) * level
        out.append(round(level, 5))
    return out


def worst_files(documents, k):
    """The k files with the most complex function."""
    return sorted(documents, key=lambda d: d["worst"], reverse=True)[:k]


def main(source, target):
    documents = read_documents(source)
    total = {key: sum(d[key] for d in documents) for key in ("lines", "functions", "cyclomatic", "documented")}
    smooth = trend(documents)
    print("files:", len(documents), "lines:", total["lines"], "functions:", total["functions"])
    print("documented: %.2f %%" % (100 * total["documented"] / total["functions"]))
    print("trend at the end:", smooth[-1])
    for doc in worst_files(documents, 5):
        print(f"  {doc['file']} worst {doc['worst']} maintainability {doc['maintainability']}")
    with open(target, "w") as fh:
        json.dump({"total": total, "trend": smooth, "order": [d["file"] for d in documents]}, fh, indent=1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
