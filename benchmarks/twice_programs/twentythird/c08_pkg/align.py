"""Aligns the reads of one chunk to the host; prints those that do not map."""
import json
import sys


def read_fastq(path):
    with open(path) as f:
        while True:
            name = f.readline()
            if not name:
                return
            seq, _, quality = f.readline(), f.readline(), f.readline()
            yield name.strip(), seq.strip(), quality.strip()


def build_index(host, k=9):
    index = {}
    for i in range(len(host) - k + 1):
        index.setdefault(host[i:i + k], []).append(i)
    return index


def best_score(seq, host, index, k=9):
    """Ungapped extension of the seed hits."""
    best, tried = 0, {}
    for offset in range(0, len(seq) - k + 1):
        for hit in index.get(seq[offset:offset + k], ()):
            start = hit - offset
            if start < 0 or start in tried or start + len(seq) > len(host):
                continue
            tried[start] = sum(a == b for a, b in zip(seq, host[start:start + len(seq)]))
            best = max(best, tried[start])
    return best


def main():
    with open(sys.argv[1]) as f:
        host = json.load(f)["host"]
    index = build_index(host)
    records = []
    for name, seq, quality in read_fastq(sys.argv[2]):
        if best_score(seq, host, index) < 0.8 * len(seq):
            records.append(f"{name}\n{seq}\n+\n{quality}\n")
    sys.stdout.buffer.write("".join(records).encode())


if __name__ == "__main__":
    main()
