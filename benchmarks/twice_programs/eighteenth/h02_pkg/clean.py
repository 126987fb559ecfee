"""Drops spikes, fills short gaps, brings all series to the hour."""
import argparse

import pandas as pd


def drop_spikes(s, window=25, limit=6.0):
    med = s.rolling(window, center=True, min_periods=5).median()
    mad = (s - med).abs().rolling(window, center=True, min_periods=5).median()
    return s.where((s - med).abs() <= limit * 1.4826 * mad.clip(lower=0.5))


def clean_series(group):
    s = group.set_index("time")["value"].sort_index()
    s = s.resample("h").mean()
    s = drop_spikes(s).clip(lower=0)
    return s.interpolate(limit=3)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--raw", required=True)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()

    raw = pd.read_csv(args.raw, parse_dates=["time"])
    parts = []
    for (station, pollutant), group in raw.groupby(["station", "pollutant"], sort=True):
        s = clean_series(group)
        parts.append(pd.DataFrame({"station": station, "pollutant": pollutant, "time": s.index,
                                   "value": s.to_numpy().round(2)}))
    hourly = pd.concat(parts, ignore_index=True)
    hourly.to_parquet(args.out, index=False)
    print(f"  {len(hourly)} hourly values, {hourly['value'].isna().mean():.2%} missing")


if __name__ == "__main__":
    main()
