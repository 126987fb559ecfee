"""Figures for training material, with an index of their digests.

Report: https://github.com/matplotlib/matplotlib/issues/23693
A set of vector figures is rendered from simulated sensor data and kept under version control.
"""
import argparse
import hashlib
import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection

log = logging.getLogger("figures")


@dataclass
class FigureConfig:
    stations: int = 6
    days: int = 730
    seed: int = 8
    out: str = "figures"
    dpi: int = 100


def station_data(cfg: FigureConfig) -> pd.DataFrame:
    rng = np.random.default_rng(cfg.seed)
    index = pd.date_range("2021-01-01", periods=cfg.days, freq="D")
    frame = pd.DataFrame(index=index)
    for s in range(cfg.stations):
        season = 10 + 9 * np.sin(2 * np.pi * (np.arange(cfg.days) - 100 + 8 * s) / 365)
        walk = np.zeros(cfg.days)
        for d in range(1, cfg.days):
            walk[d] = 0.8 * walk[d - 1] + rng.normal(0, 1.6)
        frame[f"st{s}"] = season + walk
    return frame


class Gallery:
    def __init__(self, cfg: FigureConfig):
        self.cfg = cfg
        self.root = Path(cfg.out)
        self.root.mkdir(exist_ok=True)
        self.index = {}
        plt.rcParams.update({"figure.figsize": (6.4, 3.6), "font.size": 9, "path.simplify": True})

    def save(self, fig, name: str):
        vector = self.root / f"{name}.svg"
        fig.savefig(vector, metadata={"Date": None})  # cause
        raster = self.root / f"{name}.png"
        fig.savefig(raster, dpi=self.cfg.dpi, metadata={"Software": None})
        plt.close(fig)
        for path in (vector, raster):
            self.index[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
        log.info("saved %s", name)

    def lines(self, frame: pd.DataFrame):
        fig, ax = plt.subplots()
        for column in frame:
            ax.plot(frame.index, frame[column], lw=0.8, label=column)
        ax.set_ylabel("temperature")
        ax.legend(ncol=3, fontsize=7)
        self.save(fig, "lines")

    def histogram(self, frame: pd.DataFrame):
        fig, axes = plt.subplots(2, 3, sharex=True, sharey=True)
        for ax, column in zip(axes.flat, frame):
            ax.hist(frame[column], bins=24, color="tab:blue", alpha=0.7)
            ax.axvline(frame[column].mean(), color="k", lw=0.7)
            ax.set_title(column)
        fig.tight_layout()
        self.save(fig, "histogram")

    def scatter(self, frame: pd.DataFrame):
        fig, ax = plt.subplots()
        season = frame.index.month.to_numpy() % 12 // 3
        for s, marker in zip(range(4), "os^D"):
            rows = season == s
            ax.scatter(frame.loc[rows, "st0"], frame.loc[rows, "st3"], s=9, marker=marker, label=f"q{s}")
        ax.legend()
        self.save(fig, "scatter")

    def ridges(self, frame: pd.DataFrame):
        fig, ax = plt.subplots()
        grid = np.linspace(-15, 35, 200)
        for k, column in enumerate(frame):
            kernel = np.exp(-0.5 * ((grid[:, None] - frame[column].to_numpy()[None, :]) / 1.5) ** 2).mean(1)
            ax.fill_between(grid, k, k + 3 * kernel, alpha=0.6, lw=0.5, edgecolor="k")
        ax.set_yticks(range(len(frame.columns)), list(frame.columns))
        self.save(fig, "ridges")

    def trails(self, frame: pd.DataFrame):
        pts = frame[["st1", "st4"]].rolling(7, min_periods=1).mean().to_numpy()
        segments = np.stack([pts[:-1], pts[1:]], axis=1)
        fig, ax = plt.subplots(subplot_kw={"aspect": "equal"})
        lc = LineCollection(segments, cmap="viridis", array=np.arange(len(segments)), linewidths=1)
        ax.add_collection(lc)
        ax.autoscale()
        self.save(fig, "trails")

    def polar(self, frame: pd.DataFrame):
        monthly = frame.groupby(frame.index.month).mean()
        angle = np.linspace(0, 2 * np.pi, len(monthly), endpoint=False)
        fig = plt.figure()
        ax = fig.add_subplot(projection="polar")
        for column in monthly:
            ax.plot(np.append(angle, angle[0]), np.append(monthly[column], monthly[column].iloc[0]), lw=1)
        self.save(fig, "polar")


def statistics(frame: pd.DataFrame) -> dict:
    return {
        "mean": frame.mean().round(5).to_dict(),
        "sd": frame.std().round(5).to_dict(),
        "corr": frame.corr().round(5).iloc[0].to_dict(),
    }


def main():
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    log.setLevel(logging.INFO)
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=FigureConfig.seed)
    ap.add_argument("--out", default=FigureConfig.out)
    ns = ap.parse_args()
    cfg = FigureConfig(seed=ns.seed, out=ns.out)
    t0 = time.time()
    frame = station_data(cfg)
    gallery = Gallery(cfg)
    for draw in (gallery.lines, gallery.histogram, gallery.scatter, gallery.ridges, gallery.trails, gallery.polar):
        draw(frame)
    (gallery.root / "index.json").write_text(json.dumps(gallery.index, indent=1, sort_keys=True))
    (gallery.root / "statistics.json").write_text(json.dumps(statistics(frame), indent=1))
    for name in sorted(gallery.index):
        print(gallery.index[name][:16], name)
    log.info("%.1fs", time.time() - t0)


if __name__ == "__main__":
    main()
