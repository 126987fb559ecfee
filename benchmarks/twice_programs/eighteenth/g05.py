"""Batch-segment a folder of nucleus images and collect the measurements.

Every image is smoothed, thresholded and labelled in a pool of workers; the
nuclei of all images go into one table with running numbers, and the numbered
nuclei are grouped into plates of 96 for the follow-up staining.

Modelled on: https://github.com/4DNucleome/PartSeg/issues/6
"""
import argparse
import json
import logging
import multiprocessing
import pathlib
import time

import numpy as np
import pandas as pd
from scipy import ndimage

log = logging.getLogger("batch")


def make_images(folder, count=40, seed=11):
    """Stand-in for the microscope: blobs of different size and number."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(seed)
    for k in range(count):
        side = int(rng.integers(140, 320))
        image = np.zeros((side, side), dtype="float32")
        for _ in range(int(rng.integers(6, 30))):
            cy, cx = rng.uniform(10, side - 10, size=2)
            r = rng.uniform(3, 8)
            y0, y1 = int(max(cy - 25, 0)), int(min(cy + 25, side))
            x0, x1 = int(max(cx - 25, 0)), int(min(cx + 25, side))
            yy, xx = np.mgrid[y0:y1, x0:x1]
            image[y0:y1, x0:x1] += rng.uniform(0.5, 1.0) * np.exp(
                -((yy - cy) ** 2 + (xx - cx) ** 2) / (2 * r**2)
            )
        image += rng.normal(scale=0.05, size=image.shape)
        np.save(folder / f"field_{k:03d}.npy", image)


def otsu(values, bins=128):
    """Threshold that separates two classes best."""
    counts, edges = np.histogram(values, bins=bins)
    centres = (edges[:-1] + edges[1:]) / 2
    w0 = np.cumsum(counts)
    w1 = w0[-1] - w0
    m0 = np.cumsum(counts * centres) / np.maximum(w0, 1)
    m1 = (np.sum(counts * centres) - np.cumsum(counts * centres)) / np.maximum(w1, 1)
    return centres[np.argmax(w0 * w1 * (m0 - m1) ** 2)]


def segment(path):
    """Label the nuclei of one image and measure them."""
    image = np.load(path)
    smooth = ndimage.gaussian_filter(image, 2.0)
    background = ndimage.median_filter(smooth[::2, ::2], size=15)
    background = np.kron(background, np.ones((2, 2)))[: image.shape[0], : image.shape[1]]
    mask = (smooth - 0.2 * background) > otsu(smooth)
    mask = ndimage.binary_opening(mask, iterations=2)
    labels, count = ndimage.label(mask)
    rows = []
    for label, window in enumerate(ndimage.find_objects(labels), start=1):
        part = labels[window] == label
        cy, cx = ndimage.center_of_mass(part)
        rows.append(
            {
                "image": path.stem,
                "area": int(part.sum()),
                "intensity": round(float(image[window][part].mean()), 5),
                "y": round(cy + window[0].start, 2),
                "x": round(cx + window[1].start, 2),
            }
        )
    return path.stem, count, rows


class BatchManager:
    """Runs the segmentation over all files of a folder."""

    def __init__(self, workers):
        self.workers = workers
        self.counts = {}
        self.rows = []

    def run(self, paths):
        with multiprocessing.get_context("fork").Pool(self.workers) as pool:
            for name, count, rows in pool.imap_unordered(segment, paths):  # cause
                self.counts[name] = count
                self.rows.extend(rows)
                log.info("%s: %d nuclei", name, count)

    def table(self, min_area):
        frame = pd.DataFrame(self.rows)
        frame = frame[frame.area >= min_area].reset_index(drop=True)
        frame.insert(0, "nucleus", np.arange(1, len(frame) + 1))
        frame["plate"] = (frame.nucleus - 1) // 96 + 1
        return frame


def summarise(frame):
    """Mean area and intensity of every plate."""
    plates = frame.groupby("plate")[["area", "intensity"]].agg(["mean", "std"]).round(4)
    plates.columns = ["_".join(c) for c in plates.columns]
    return plates.reset_index()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--min-area", type=int, default=20)
    args = parser.parse_args()
    logging.basicConfig(filename="batch.log", format="%(asctime)s %(message)s", level=logging.INFO)

    folder = pathlib.Path("images")
    make_images(folder)
    began = time.perf_counter()
    manager = BatchManager(args.workers)
    manager.run(sorted(folder.glob("*.npy")))
    frame = manager.table(args.min_area)
    plates = summarise(frame)

    frame.to_csv("nuclei.csv", index=False)
    plates.to_csv("plates.csv", index=False)
    totals = {"images": len(manager.counts), "nuclei": len(frame), "mean_area": round(float(frame.area.mean()), 3)}
    pathlib.Path("totals.json").write_text(json.dumps(totals, indent=1))
    print(totals)
    print(plates.to_string(index=False))
    log.info("finished in %.2f s", time.perf_counter() - began)


if __name__ == "__main__":
    main()
