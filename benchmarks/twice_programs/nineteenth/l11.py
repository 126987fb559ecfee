"""Ensemble of a surface temperature field with observation noise.

Builds a seasonal temperature cube with xarray, perturbs it into an ensemble
with dask, computes anomalies, trends and the ensemble spread in blocks, and
writes the area means.

Modelled on: https://github.com/dask/dask/issues/311
"""
import argparse
import json
import time
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pandas as pd
import xarray as xr


def base_climate(n_months, n_lat, n_lon, rng):
    time_axis = pd.date_range("1990-01-01", periods=n_months, freq="MS")
    lat = np.linspace(-85.0, 85.0, n_lat)
    lon = np.linspace(0.0, 360.0, n_lon, endpoint=False)
    month = np.arange(n_months)
    mean = 28.0 - 45.0 * np.sin(np.deg2rad(lat)) ** 2
    season = np.cos(2 * np.pi * (month[:, None] - 6.5) / 12.0) * (lat / 9.0)[None, :]
    trend = 0.0016 * month
    pattern = rng.normal(0.0, 1.5, size=(n_lat, n_lon))
    field = (
        mean[None, :, None]
        + season[:, :, None]
        + trend[:, None, None]
        + pattern[None, :, :]
        + rng.normal(0.0, 0.6, size=(n_months, n_lat, n_lon))
    )
    return xr.DataArray(
        field,
        coords={"time": time_axis, "lat": lat, "lon": lon},
        dims=("time", "lat", "lon"),
        name="tas",
        attrs={"units": "degC"},
    )


def make_ensemble(tas, members, sigma, chunk):
    """Add an independent observation error for each member."""
    shape = (members, *tas.shape)
    error = da.random.normal(0.0, sigma, size=shape, chunks=(1, chunk, *tas.shape[1:]))  # cause
    error = xr.DataArray(error, dims=("member", *tas.dims), coords={**tas.coords, "member": np.arange(members)})
    return (tas.chunk({"time": chunk}) + error).rename("tas")


def weights(lat):
    return np.cos(np.deg2rad(lat)).rename("weights")


def anomalies(ens, reference=("1990-01-01", "1999-12-31")):
    ref = ens.sel(time=slice(*reference))
    clim = ref.groupby("time.month").mean("time").compute()
    return ens.compute().groupby("time.month") - clim


def linear_trend(series):
    """Degrees per decade along time."""
    t = np.arange(series.sizes["time"]) / 120.0
    t = t - t.mean()
    values = series.transpose("time", ...).to_numpy()
    slope = np.tensordot(t, values - values.mean(axis=0), axes=(0, 0)) / (t ** 2).sum()
    return xr.DataArray(slope, dims=[d for d in series.dims if d != "time"])


def zonal_bands(field, edges=(-90, -60, -30, 0, 30, 60, 90)):
    rows = []
    for lo, hi in zip(edges[:-1], edges[1:]):
        part = field.where((field.lat >= lo) & (field.lat < hi), drop=True)
        value = part.weighted(weights(part.lat)).mean()
        rows.append({"band": f"{lo}..{hi}", "spread": float(value)})
    return pd.DataFrame(rows)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--years", type=int, default=20)
    ap.add_argument("--members", type=int, default=8)
    ap.add_argument("--sigma", type=float, default=0.35)
    ap.add_argument("--seed", type=int, default=101)
    ap.add_argument("--out", default="ensemble")
    args = ap.parse_args()

    t0 = time.perf_counter()
    dask.config.set(scheduler="synchronous")
    np.random.seed(args.seed)
    rng = np.random.default_rng(args.seed)
    out = Path(args.out)
    out.mkdir(exist_ok=True)

    tas = base_climate(args.years * 12, 36, 48, rng)
    ens = make_ensemble(tas, args.members, args.sigma, chunk=60)
    print(f"ensemble {dict(ens.sizes)}, {ens.data.numblocks} blocks")

    anom = anomalies(ens)
    area_mean = anom.weighted(weights(anom.lat)).mean(("lat", "lon"))
    trend = linear_trend(area_mean)
    spread = anom.std("member").mean("time")
    bands = zonal_bands(spread)

    frame = area_mean.transpose("time", "member").to_pandas()
    frame.to_csv(out / "area_mean.csv", float_format="%.6f")
    bands.to_csv(out / "spread_by_band.csv", index=False, float_format="%.6f")
    np.save(out / "spread.npy", spread.transpose("lat", "lon").to_numpy())
    summary = {
        "members": args.members,
        "trend_per_decade": [round(float(v), 6) for v in trend],
        "trend_mean": round(float(trend.mean()), 6),
        "spread_mean": round(float(spread.mean()), 6),
    }
    (out / "summary.json").write_text(json.dumps(summary, indent=2))
    print(json.dumps(summary, indent=2))
    print(bands.to_string(index=False))
    print(f"finished after {time.perf_counter() - t0:.1f} s")


if __name__ == "__main__":
    main()
