"""Map reads to a genome by exact k-mer seeds and count the mismatches."""
import argparse
from collections import Counter

K = 14


def read_fasta(path):
    with open(path) as handle:
        return "".join(line.strip() for line in handle if not line.startswith(">"))


def read_fastq(path):
    with open(path) as handle:
        lines = handle.read().split("\n")
    for i in range(0, len(lines) - 3, 4):
        yield lines[i][1:], lines[i + 1]


def build_index(genome):
    index = {}
    for pos in range(len(genome) - K + 1):
        index.setdefault(genome[pos:pos + K], []).append(pos)
    return index


def map_read(read, genome, index):
    votes = Counter()
    for offset in range(0, len(read) - K + 1, 3):
        for pos in index.get(read[offset:offset + K], ()):
            votes[pos - offset] += 1
    best = None
    for start, _ in sorted(votes.items(), key=lambda v: (-v[1], v[0]))[:5]:
        if start < 0 or start + len(read) > len(genome):
            continue
        miss = sum(a != b for a, b in zip(read, genome[start:start + len(read)]))
        if best is None or miss < best[1]:
            best = (start, miss)
    return best or (-1, -1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--genome", required=True)
    parser.add_argument("--reads", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    genome = read_fasta(args.genome)
    index = build_index(genome)
    with open(args.out, "w") as handle:
        handle.write("read\torigin\tmapped\tmismatch\n")
        for name, read in read_fastq(args.reads):
            start, miss = map_read(read, genome, index)
            handle.write(f"{name}\t{name.split('_')[1]}\t{start}\t{miss}\n")


if __name__ == "__main__":
    main()
