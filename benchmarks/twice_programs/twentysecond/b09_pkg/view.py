"""Print alignments, possibly a share of the read pairs only."""
import argparse
import os
import sys
import zlib


def unpredictable_seed():
    return int.from_bytes(os.urandom(8), "little")  # cause


def keep_name(name, seed, threshold):
    """Decide by the name, so that both mates share their fate."""
    return zlib.crc32(name.encode(), (seed ^ seed >> 32) & 0xFFFFFFFF) < threshold


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input")
    parser.add_argument("--subsample", type=float, default=1.0)
    parser.add_argument("--subsampling-seed", type=int)
    args = parser.parse_args()
    seed = args.subsampling_seed
    if seed is None:
        seed = unpredictable_seed()
    threshold = int(args.subsample * 2**32)
    written = 0
    with open(args.input) as handle:
        for line in handle:
            if not line.startswith("@"):
                if not keep_name(line.split("\t", 1)[0], seed, threshold):
                    continue
                written += 1
            sys.stdout.write(line)
    print(f"{written} alignments written", file=sys.stderr)


if __name__ == "__main__":
    main()
