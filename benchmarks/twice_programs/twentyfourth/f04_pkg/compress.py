"""Compress one file with gzip at the highest level."""
import gzip
import shutil
import sys


def compress(source, target):
    with open(source, "rb") as src, gzip.open(target, "wb", compresslevel=9) as dst:  # cause
        shutil.copyfileobj(src, dst, 1 << 20)


if __name__ == "__main__":
    compress(sys.argv[1], sys.argv[2])
