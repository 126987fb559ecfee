"""Score toy weather forecasts against a reanalysis, from Zarr to figures.

Modelled on: google-research/weatherbench2 (weatherbench2/evaluation.py, metrics.py, scripts/evaluate.py)
and dask/dask progress reports: truth and forecast as Zarr stores (attrs with history and creation date),
results as Zarr and CSV, an SVG and a PDF of the scores by matplotlib (which put a date and random
ids in), an evaluation log with chunk timings and memory. lead_time and init_time are model times.
"""
import datetime
import logging
import os
import tempfile
import time
import uuid
import warnings
from pathlib import Path

import dask
import dask.array as da
import matplotlib
import numpy as np
import psutil
import xarray as xr
from dask.diagnostics import Callback

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

warnings.filterwarnings("ignore", category=UserWarning, module="zarr")
NLAT, NLON, NT, LEADS = 24, 48, 40, [6, 12, 24, 48, 72]
VARIABLES = ["t2m", "z500"]
log = logging.getLogger("evaluate")


class ChunkTimer(Callback):
    """Time spent per graph."""

    def _start(self, dsk):
        self.t0 = time.perf_counter()

    def _finish(self, dsk, state, failed):
        log.info("computed graph in %.4f s, rss %.1f MiB", time.perf_counter() - self.t0,
                 psutil.Process().memory_info().rss / 2 ** 20)


def stamp(ds, what):
    now = datetime.datetime.now(datetime.timezone.utc)
    return ds.assign_attrs(title=what, date_created=now.isoformat(), uuid=str(uuid.uuid4()),
                           history=f"{now:%a %b %d %H:%M:%S %Y}: evaluate.py pid {os.getpid()}: {what}")


def make_truth(seed):
    rng = np.random.default_rng(seed)
    lat, lon = np.linspace(-86.25, 86.25, NLAT), np.arange(NLON) * 360 / NLON
    time_ = np.datetime64("2020-01-01") + np.arange(NT) * np.timedelta64(6, "h")
    base = 288 - 40 * np.sin(np.deg2rad(lat))[None, :, None] ** 2
    phase = rng.uniform(0, 2 * np.pi, 4)
    waves = sum(3 / k * np.cos(k * np.deg2rad(lon)[None, None, :] + phase[k - 1] + 0.05 * k * np.arange(NT)[:, None, None])
                for k in range(1, 5)) * np.cos(np.deg2rad(lat))[None, :, None]
    t2m = base + waves + rng.normal(0, 0.4, (NT, NLAT, NLON))
    z500 = 54000 + 60 * (t2m - 270) + rng.normal(0, 40, t2m.shape)
    return xr.Dataset({"t2m": (("time", "lat", "lon"), t2m.astype("f4")),
                       "z500": (("time", "lat", "lon"), z500.astype("f4"))},
                      {"time": time_, "lat": lat, "lon": lon})


def make_forecast(truth, seed):
    rng = np.random.default_rng(seed)
    out = []
    for lead in LEADS:
        shift = truth.roll(lon=1 + lead // 24).drop_vars("lon").assign_coords(lon=truth.lon)
        a = 1 - np.exp(-lead / 60)
        f = (1 - a) * truth + a * shift
        noise = {v: (("time", "lat", "lon"), (rng.normal(0, 1, truth[v].shape) * s * np.sqrt(lead / 24)).astype("f4"))
                 for v, s in [("t2m", 0.8), ("z500", 60.0)]}
        out.append((f + xr.Dataset(noise, truth.coords)).astype("f4"))
    return xr.concat(out, xr.Variable("lead_time", LEADS, {"units": "hours"}))


def weights(lat):
    w = np.cos(np.deg2rad(lat))
    return w / w.mean()


METRICS = {
    "rmse": lambda f, t, w: np.sqrt((((f - t) ** 2) * w).mean(("lat", "lon"))).mean("time"),
    "mae": lambda f, t, w: (abs(f - t) * w).mean(("lat", "lon", "time")),
    "bias": lambda f, t, w: ((f - t) * w).mean(("lat", "lon", "time")),
    "acc": lambda f, t, w: _acc(f, t, w),
}


def _acc(f, t, w):
    clim = t.mean("time")
    fa, ta = f - clim, t - clim
    num = (fa * ta * w).mean(("lat", "lon"))
    return (num / np.sqrt((fa ** 2 * w).mean(("lat", "lon")) * (ta ** 2 * w).mean(("lat", "lon")))).mean("time")


def figure(res):
    fig, axes = plt.subplots(1, 2, figsize=(7, 3))
    for ax, v in zip(axes, ("t2m", "z500")):
        ax.plot(LEADS, res[v].sel(metric="rmse"), "o-", label="rmse")
        ax.plot(LEADS, res[v].sel(metric="mae"), "s--", label="mae")
        ax.set(title=v, xlabel="lead time (h)")
        ax.grid(True)
        ax.legend()
    fig.tight_layout()
    fig.savefig("figures/scores.svg")
    fig.savefig("figures/scores.pdf")
    plt.close(fig)


def main():
    for d in ("logs", "figures"):
        Path(d).mkdir()
    logging.basicConfig(level=logging.INFO, filename=f"logs/evaluate_{datetime.datetime.now():%Y%m%dT%H%M%S}.log",
                        format="I%(asctime)s %(process)d %(filename)s:%(lineno)d] %(message)s", datefmt="%m%d %H:%M:%S")
    log.setLevel(logging.INFO)
    for name in ("matplotlib", "fontTools"):
        logging.getLogger(name).setLevel(logging.WARNING)
    t0 = time.time()
    with tempfile.TemporaryDirectory(prefix="wb2_") as tmp:
        truth = make_truth(1959)
        stamp(truth, "truth").chunk(time=10).to_zarr(f"{tmp}/era5.zarr", consolidated=False)
        stamp(make_forecast(truth, 2020), "forecast").chunk(time=10, lead_time=1).to_zarr(
            f"{tmp}/forecast.zarr", consolidated=False)
        log.info("wrote inputs to %s in %.3f s", tmp, time.time() - t0)
        # a group lists its arrays in the order of the folder: name the variables in a fixed order
        obs = xr.open_zarr(f"{tmp}/era5.zarr", consolidated=False)[VARIABLES].astype("f8")
        fc = xr.open_zarr(f"{tmp}/forecast.zarr", consolidated=False)[VARIABLES].astype("f8")
        w = weights(obs.lat)
        out = []
        with dask.config.set(scheduler="threads", num_workers=2), ChunkTimer():
            for name, metric in METRICS.items():
                t = time.time()
                out.append(metric(fc, obs, w).compute())
                log.info("metric %s done in %.3f s", name, time.time() - t)
                print(f"\r{name}: {len(out)}/{len(METRICS)} [{'#' * (10 * len(out)):40s}] | {time.time() - t0:.1f}s", end="")
            total = float(da.from_array(fc["t2m"].values, chunks=(1, 10, NLAT, NLON)).sum().compute())
    print()
    res = xr.concat(out, xr.Variable("metric", list(METRICS)))
    res = stamp(res.drop_attrs() if hasattr(res, "drop_attrs") else res, "scores")
    res.to_zarr("results.zarr", consolidated=False)
    frame = res.to_dataframe()[VARIABLES].reset_index().sort_values(["metric", "lead_time"])
    frame.to_csv("scores.csv", index=False)
    figure(res)
    print(frame.to_string(index=False, float_format=lambda v: f"{v:.8f}"))
    print(f"checksum of the t2m forecasts {total:.6f}")
    log.info("finished after %.2f s", time.time() - t0)


if __name__ == "__main__":
    main()
