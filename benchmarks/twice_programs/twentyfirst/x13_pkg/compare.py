"""Compare the fee rules block by block."""
import argparse
import json
from pathlib import Path

import pandas as pd


def describe(frame):
    tail = frame[frame.block >= 20]
    return {
        "mean_fee": float(tail.mean_fee.mean()),
        "fee_volatility": float(tail.price.pct_change().std()),
        "mean_delay": float(tail.mean_delay.mean()),
        "included": int(tail.included.sum()),
        "gas_share": float(tail.gas.mean() / 20_000_000),
        "pool": float(tail.pool.mean()),
    }


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("files", nargs="+", type=Path)
    ap.add_argument("--out", type=Path, required=True)
    args = ap.parse_args()
    result = {p.stem: describe(pd.read_csv(p)) for p in args.files}
    args.out.write_text(json.dumps(result, indent=1, sort_keys=True))
    for name, row in sorted(result.items()):
        print(f"{name:8s} fee {row['mean_fee']:.6f} volatility "
              f"{row['fee_volatility']:.6f} delay {row['mean_delay']:.5f} "
              f"included {row['included']}")


if __name__ == "__main__":
    main()
