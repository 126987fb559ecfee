"""Step 3: percentiles of the volumes and rank correlation with the parameters."""
import argparse
import json
from pathlib import Path

import pandas as pd


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("design")
    ap.add_argument("volumes")
    ap.add_argument("output")
    args = ap.parse_args()
    design = pd.read_csv(args.design).set_index("REAL").drop(columns="RMS_SEED")
    volumes = pd.read_csv(args.volumes).set_index("REAL")
    percentiles = {c: {"P90": round(float(volumes[c].quantile(0.1)), 4),
                       "P50": round(float(volumes[c].quantile(0.5)), 4),
                       "P10": round(float(volumes[c].quantile(0.9)), 4)} for c in volumes}
    ranks = design.rank().corrwith(volumes["FOPT_20Y"].rank()).round(4)
    Path(args.output).write_text(json.dumps(
        {"percentiles": percentiles, "rank_correlation": ranks.to_dict()}, indent=1))
    for c, p in percentiles.items():
        print(f"{c:9s} " + "  ".join(f"{k}={v:.3f}" for k, v in p.items()))
    for name, r in ranks.items():
        print(f"tornado {name:6s} {r:+.4f}")


if __name__ == "__main__":
    main()
