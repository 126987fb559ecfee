"""Barcode universe, called cells, and the list of all barcodes seen in short reads."""
import argparse
import gzip
from pathlib import Path

import numpy as np

BASES = np.array(list("ACGT"))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--cells", type=int, required=True)
    ap.add_argument("--raw", type=int, required=True)
    ap.add_argument("--seed", type=int, required=True)
    ap.add_argument("--out", type=Path, required=True)
    args = ap.parse_args()
    rng = np.random.default_rng(args.seed)

    seen, order = set(), []
    while len(order) < args.raw:
        code = "".join(BASES[rng.integers(0, 4, 12)])
        if code not in seen:
            seen.add(code)
            order.append(code)
    (args.out / "whitelist.txt").write_text("\n".join(order[:args.cells]) + "\n")
    with gzip.GzipFile(args.out / "bk_barcodes.tsv.gz", "wb", mtime=0) as fh:
        fh.write(("\n".join(order[args.cells:]) + "\n").encode())
    print(f"  {args.cells} cells, {len(order) - args.cells} further barcodes")


if __name__ == "__main__":
    main()
