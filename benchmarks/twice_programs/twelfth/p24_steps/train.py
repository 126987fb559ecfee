"""Averaged perceptron that tells headings, paragraphs and list items apart."""
import argparse
import csv
import json
from collections import defaultdict

TAGS = ["h2", "p", "li"]


def features(row):
    f = {"bias": 1.0}
    for name in ("words", "chars", "prev_words", "next_words"):
        f[name] = int(row[name]) / 20
    for w in row["text"].split():
        f["w=" + w] = f.get("w=" + w, 0.0) + 0.2
    return f


class Perceptron:
    def __init__(self):
        self.w = {t: defaultdict(float) for t in TAGS}
        self.total = {t: defaultdict(float) for t in TAGS}
        self.count = 0

    def scores(self, f, weights=None):
        weights = weights or self.w
        return {t: sum(weights[t].get(k, 0.0) * v for k, v in f.items()) for t in TAGS}

    def update(self, f, gold):
        s = self.scores(f)
        guess = max(TAGS, key=lambda t: s[t])
        self.count += 1
        if guess != gold:
            for k, v in f.items():
                self.w[gold][k] += v
                self.w[guess][k] -= v
                self.total[gold][k] += v * self.count
                self.total[guess][k] -= v * self.count
        return guess != gold

    def averaged(self):
        return {t: {k: v - self.total[t][k] / self.count for k, v in self.w[t].items()}
                for t in TAGS}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--table", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--epochs", type=int, default=3)
    args = ap.parse_args()
    with open(args.table, newline="") as fh:
        rows = list(csv.DictReader(fh))
    train = [r for r in rows if int(r["page"][4:]) % 4]
    test = [r for r in rows if int(r["page"][4:]) % 4 == 0]
    model = Perceptron()
    for epoch in range(args.epochs):
        errors = sum(model.update(features(r), r["tag"]) for r in train)
        print(f"epoch {epoch} errors {errors}")
    avg = model.averaged()
    hits = 0
    for r in test:
        s = model.scores(features(r), avg)
        hits += max(TAGS, key=lambda t: s[t]) == r["tag"]
    acc = hits / len(test)
    print(f"accuracy {acc:.4f} on {len(test)} lines")
    for t in TAGS:
        top = sorted(avg[t].items(), key=lambda kv: (-kv[1], kv[0]))[:4]
        print(t, " ".join(f"{k}:{v:.4f}" for k, v in top))
    with open(args.out, "w") as fh:
        json.dump({"accuracy": acc, "weights": avg}, fh, indent=1, sort_keys=True)


if __name__ == "__main__":
    main()
