"""Stand-in for the loggers: raw readings of all stations, with gaps and spikes."""
import argparse

import numpy as np
import pandas as pd

POLLUTANTS = {"no2": (24.0, 9.0), "pm10": (19.0, 7.0), "o3": (48.0, 16.0)}


def readings(station, days, rng):
    stamps = pd.date_range("2024-01-01", periods=days * 24, freq="h")
    hours = stamps.hour.to_numpy()
    frames = []
    for name, (mean, spread) in POLLUTANTS.items():
        daily = np.sin((hours - 6) / 24 * 2 * np.pi)
        noise = np.convolve(rng.normal(0, 1, len(stamps) + 11), np.ones(12) / 12 ** 0.5, "valid")
        value = mean + spread * (0.6 * daily + 0.5 * noise) + rng.normal(0, 2)
        value[rng.random(len(stamps)) < 0.01] *= 12
        keep = rng.random(len(stamps)) > 0.04
        frames.append(pd.DataFrame({"station": station, "time": stamps, "pollutant": name,
                                    "value": value.round(2)})[keep])
    return pd.concat(frames)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--stations", type=int, required=True)
    ap.add_argument("--days", type=int, required=True)
    ap.add_argument("--seed", type=int, required=True)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()

    frames = []
    for i in range(args.stations):
        rng = np.random.default_rng([args.seed, i])
        frames.append(readings(f"ST{i + 1:03d}", args.days, rng))
    raw = pd.concat(frames, ignore_index=True)
    raw.to_csv(args.out, index=False)
    print(f"  {len(raw)} readings of {args.stations} stations")


if __name__ == "__main__":
    main()
