"""Keeps the first read of each group of reads with equal prefix."""
import sys

from align import read_fastq

PREFIX = 12


def main():
    seen = {}
    for name, seq, quality in read_fastq(sys.argv[1]):
        key = seq[:PREFIX]
        if key in seen:
            continue
        seen[key] = name
        print(f"{name}\n{seq}\n+\n{quality}")


if __name__ == "__main__":
    main()
