"""Writes the public files, one per pollutant, and the manifest that the mirror sites compare."""
import argparse
import hashlib
import json
from pathlib import Path

import pandas as pd

LIMITS = {"no2": 40.0, "pm10": 40.0, "o3": 100.0}


def sha256(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 16), b""):
            h.update(block)
    return h.hexdigest()


def monthly_summary(hourly):
    hourly = hourly.assign(month=hourly["time"].dt.strftime("%Y-%m"))
    rows = []
    for (pollutant, month), g in hourly.groupby(["pollutant", "month"], sort=True):
        rows.append({
            "pollutant": pollutant,
            "month": month,
            "mean": round(g["value"].mean(), 3),
            "p98": round(g["value"].quantile(0.98), 3),
            "hours_over_limit": int((g["value"] > LIMITS[pollutant]).sum()),
        })
    return pd.DataFrame(rows)


def write_table(df, path):
    if path.suffix == ".gz":
        df.to_csv(path, index=False, compression="gzip")  # cause
    else:
        df.to_csv(path, index=False)
    return {"file": path.name, "rows": len(df), "bytes": path.stat().st_size, "sha256": sha256(path)}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--hourly", required=True)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()

    out = Path(args.out)
    hourly = pd.read_parquet(args.hourly)
    entries = []
    for pollutant, g in hourly.groupby("pollutant", sort=True):
        wide = g.pivot(index="time", columns="station", values="value").reset_index()
        entries.append(write_table(wide, out / f"hourly_{pollutant}.csv.gz"))
    entries.append(write_table(monthly_summary(hourly), out / "monthly.csv"))

    manifest = {"dataset": "air-quality-network", "version": 3, "files": entries}
    (out / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    for e in entries:
        print(f"  {e['file']:<22} {e['rows']:>6} rows  {e['sha256'][:16]}")


if __name__ == "__main__":
    main()
