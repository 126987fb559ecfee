"""Monthly climatology and anomalies of a made-up sea surface temperature field with xarray and dask.

Modelled on: pangeo-data / pydata/xarray workflows and the CMOR and NCO/CDO habit of stamping
creation_date, tracking_id and an appended ``history`` attribute into every output (zarr, netCDF).
"""
import getpass
import os
import platform
import resource
import shutil
import sys
import tempfile
import time
import uuid
from datetime import datetime, timezone

import dask
import numpy as np
import pandas as pd
import xarray as xr
from dask.diagnostics import ProgressBar

SEED = 1982
YEARS = range(1995, 2005)
NLAT, NLON = 24, 48


def utcnow():
    return datetime.now(timezone.utc)


def stamp(ds, command):
    line = f"{utcnow():%a %b %d %H:%M:%S %Y}: {command}"
    ds.attrs["history"] = line + ("\n" + ds.attrs["history"] if ds.attrs.get("history") else "")
    return ds


def say(text):
    print(f"[{utcnow():%Y-%m-%dT%H:%M:%SZ}] {text}", flush=True)


class Step:
    def __init__(self, name, table):
        self.name, self.table = name, table

    def __enter__(self):
        self.t = time.perf_counter()
        self.c = time.process_time()
        return self

    def __exit__(self, *exc):
        dt = time.perf_counter() - self.t
        mem = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        self.table.append((self.name, dt, time.process_time() - self.c, mem))
        say(f"{self.name}: {dt:.2f} s wall, peak memory {mem:.0f} MiB")


def field(year, lat, lon):
    rng = np.random.default_rng([SEED, year])
    days = pd.date_range(f"{year}-01-01", f"{year}-12-31", freq="D")
    doy = days.dayofyear.to_numpy()
    base = 28 * np.cos(np.deg2rad(lat))[None, :, None] - 1.5
    season = -4 * np.sin(np.deg2rad(lat))[None, :, None] * np.cos(2 * np.pi * (doy - 50) / 365.25)[:, None, None]
    trend = 0.018 * (year - 1995 + doy / 365.25)[:, None, None]
    pattern = np.cos(np.deg2rad(lon))[None, None, :] * np.exp(-(lat / 20.0) ** 2)[None, :, None]
    enso = np.cumsum(rng.normal(0, 0.05, len(days)))[:, None, None] * pattern
    noise = rng.normal(0, 0.4, (len(days), len(lat), len(lon)))
    data = (base + season + trend + enso + noise).astype("float32")
    ds = xr.Dataset({"tos": (("time", "lat", "lon"), data, {"units": "degC", "long_name": "sea surface temperature"})},
                    coords={"time": days, "lat": ("lat", lat, {"units": "degrees_north"}), "lon": ("lon", lon, {"units": "degrees_east"})})
    ds.attrs.update(title="synthetic SST", institution="none", creation_date=utcnow().strftime("%Y-%m-%dT%H:%M:%SZ"),
                    tracking_id=f"hdl:21.14100/{uuid.uuid4()}", source=f"field.py on {platform.node()}")
    return stamp(ds, f"field.py --year {year} --seed {SEED}")


def main():
    t0 = time.perf_counter()
    steps = []
    say(f"xarray {xr.__version__}, dask {dask.__version__}, python {platform.python_version()}, user {getpass.getuser()}, pid {os.getpid()}")
    scratch = tempfile.mkdtemp(prefix="sst_")
    say(f"scratch directory {scratch}")
    lat = np.linspace(-82.5, 82.5, NLAT)
    lon = np.linspace(0, 352.5, NLON)
    try:
        with Step("write input", steps):
            for year in YEARS:
                field(year, lat, lon).to_netcdf(f"{scratch}/tos_{year}.nc", engine="scipy")
        with Step("open and concatenate", steps):
            parts = [xr.open_dataset(f"{scratch}/tos_{y}.nc", engine="scipy").chunk(time=92) for y in YEARS]
            ds = xr.concat(parts, "time", combine_attrs="drop_conflicts")
            ds.attrs["history"] = parts[-1].attrs["history"]
            say(f"{ds.sizes['time']} days, {ds.tos.nbytes / 2 ** 20:.1f} MiB in {ds.tos.data.npartitions} chunks")
        with dask.config.set(scheduler="synchronous"), ProgressBar(out=sys.stderr, dt=0.2):
            with Step("climatology", steps):
                monthly = ds.tos.astype("float64").resample(time="MS").mean().compute()
                clim = monthly.groupby("time.month").mean("time")
                anom = monthly.groupby("time.month") - clim
        with Step("indices", steps):
            w = np.cos(np.deg2rad(ds.lat))
            glob = anom.weighted(w).mean(("lat", "lon"))
            nino = anom.sel(lat=slice(-10, 10), lon=slice(150, 270)).weighted(w.sel(lat=slice(-10, 10))).mean(("lat", "lon"))
            x = np.arange(glob.size) / 120.0
            slope, icept = np.polyfit(x, glob.values, 1)
            a = (anom * np.sqrt(w)).transpose("time", "lat", "lon").values.reshape(glob.size, -1)
            cov = np.einsum("ik,jk->ij", a, a) / a.shape[1]
            vals = np.sort(np.linalg.eigvalsh(cov))[::-1]
        with Step("write output", steps):
            out = xr.Dataset({"clim": clim, "anom": anom.astype("float32")})
            out.attrs.update(ds.attrs, creation_date=utcnow().strftime("%Y-%m-%dT%H:%M:%SZ"), tracking_id=f"hdl:21.14100/{uuid.uuid4()}", Conventions="CF-1.8")
            for v in out.variables.values():
                v.encoding.clear()
            stamp(out, f"climatology.py {scratch}/tos_*.nc sst_climatology.nc")
            out.to_netcdf("sst_climatology.nc", engine="scipy")
            idx = xr.Dataset({"global_mean": glob, "nino": nino})
            idx.attrs["history"] = out.attrs["history"]
            stamp(idx, "indices.py sst_climatology.nc indices.zarr")
            for v in idx.variables.values():
                v.encoding.clear()
            idx.to_zarr("indices.zarr", mode="w", consolidated=False)
    finally:
        shutil.rmtree(scratch)
    frame = pd.DataFrame({"time": glob.time.dt.strftime("%Y-%m").values, "global_mean": glob.values, "nino": nino.values})
    with open("indices.csv", "w") as f:
        f.write(f"# created {utcnow():%Y-%m-%d %H:%M:%S} UTC by {getpass.getuser()}@{platform.node()}\n")
        frame.to_csv(f, index=False, float_format="%.7f")
    say(f"trend {slope:+.6f} K a decade, intercept {icept:+.6f}")
    say("variance of the leading patterns: " + ", ".join(f"{100 * v / vals.sum():.3f}%" for v in vals[:4]))
    say(f"nino index: min {float(nino.min()):.5f} in {frame.time[int(nino.argmin())]}, max {float(nino.max()):.5f} in {frame.time[int(nino.argmax())]}")
    total = time.perf_counter() - t0
    print(f"\n{'step':22s}{'wall [s]':>10s}{'cpu [s]':>10s}{'peak MiB':>10s}{'share':>8s}")
    for name, wall, cpu, mem in steps:
        print(f"{name:22s}{wall:10.3f}{cpu:10.3f}{mem:10.1f}{100 * wall / total:7.1f}%")
    print(f"{'total':22s}{total:10.3f}")


if __name__ == "__main__":
    main()
