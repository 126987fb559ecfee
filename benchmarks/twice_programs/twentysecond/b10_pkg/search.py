"""Search one file for a pattern and print path, line number and text."""
import argparse
import re
import sys


def search(path, pattern):
    hits = []
    with open(path) as handle:
        for number, line in enumerate(handle, 1):
            if pattern.search(line):
                hits.append(f"{path}:{number}:{line.rstrip()}")
    return hits


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern")
    parser.add_argument("path")
    args = parser.parse_args()
    hits = search(args.path, re.compile(args.pattern))
    if hits:
        sys.stdout.write("\n".join(hits) + "\n")


if __name__ == "__main__":
    main()
