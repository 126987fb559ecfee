import json
import sys

DIM = 256


def tokens(text):
    words = text.lower().split()
    yield from words
    for a, b in zip(words, words[1:]):
        yield a + "_" + b


def vectorize(text):
    counts = {}
    for tok in tokens(text):
        slot = hash(tok) % DIM  # cause
        counts[slot] = counts.get(slot, 0) + 1
    return sorted(counts.items())


def main():
    source, target = sys.argv[1:3]
    with open(source) as src, open(target, "w") as dst:
        for line in src:
            row = json.loads(line)
            dst.write(json.dumps({"y": row["label"], "x": vectorize(row["text"])}) + "\n")


if __name__ == "__main__":
    main()
