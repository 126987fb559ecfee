"""Adds to each line the length of the lines around it."""
import argparse
import csv


def read(path):
    with open(path) as fh:
        for row in csv.reader(fh, delimiter="\t"):
            page, n, tag, words, chars, text = row
            yield {"page": page, "n": int(n), "tag": tag, "words": int(words),
                   "chars": int(chars), "text": text}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--lines", required=True)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    rows = list(read(args.lines))
    for k, row in enumerate(rows):
        row["prev_words"] = rows[k - 1]["words"] if k else 0
        row["next_words"] = rows[k + 1]["words"] if k + 1 < len(rows) else 0
    with open(args.out, "w", newline="") as fh:
        w = csv.DictWriter(fh, fieldnames=list(rows[0]))
        w.writeheader()
        w.writerows(rows)
    print(f"{len(rows)} lines from {len({r['page'] for r in rows})} pages")


if __name__ == "__main__":
    main()
