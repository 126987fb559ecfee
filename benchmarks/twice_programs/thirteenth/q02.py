"""Particle picking on a synthetic tomogram.

Report: https://github.com/MPI-Dortmund/tomotwin-cryoet/pull/143
Candidate boxes are suppressed by overlap and the best supported ones are written out.
"""
import argparse
import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import ndimage
from scipy.spatial import cKDTree

log = logging.getLogger("tomopick")


@dataclass
class PickConfig:
    size: int = 224
    particles: int = 900
    box: float = 8.0
    sigma: float = 1.8
    nms_threshold: float = 0.25
    max_picks: int = 400
    seed: int = 17
    out: str = "picks"


class Tomogram:
    def __init__(self, cfg: PickConfig):
        rng = np.random.default_rng(cfg.seed)
        vol = np.zeros((cfg.size,) * 3, dtype=np.float32)
        self.centres = rng.uniform(6, cfg.size - 6, size=(cfg.particles, 3))
        for c in self.centres:
            i, j, k = np.round(c).astype(int)
            vol[i, j, k] += rng.uniform(0.8, 1.4)
        vol = ndimage.gaussian_filter(vol, cfg.sigma)
        vol += rng.normal(0, vol.std() * 0.35, vol.shape).astype(np.float32)
        self.volume = vol


def correlate(volume: np.ndarray, cfg: PickConfig) -> np.ndarray:
    score = -ndimage.gaussian_laplace(volume, cfg.sigma)
    return (score - score.mean()) / score.std()


def candidates(score: np.ndarray) -> np.ndarray:
    peak = (score == ndimage.maximum_filter(score, size=3)) & (score > 0.9)
    zyx = np.argwhere(peak).astype(float)
    conf = score[peak]
    order = np.lexsort((zyx[:, 2], zyx[:, 1], zyx[:, 0], -conf))
    return np.column_stack([zyx[order], conf[order]])


def box_iou(center: np.ndarray, others: np.ndarray, box: float) -> np.ndarray:
    inter = np.clip(box - np.abs(others - center), 0, None).prod(axis=1)
    return inter / (2 * box**3 - inter)


class Locator:
    """Keeps candidate rows, with the tree used for neighbour queries."""

    def __init__(self, cand: np.ndarray, cfg: PickConfig):
        self.cfg = cfg
        self.cand = cand
        self.tree = cKDTree(cand[:, :3])

    def neighbourhoods(self) -> list:
        found = self.tree.query_ball_point(self.cand[:, :3], r=self.cfg.box)
        return [np.array(sorted(f), dtype=int) for f in found]

    def records(self) -> list:
        return [{"z": r[0], "y": r[1], "x": r[2], "conf": r[3]} for r in self.cand.tolist()]

    def report_strongest(self):
        rows = self.records()
        strong = sorted(rows, key=lambda r: -r["conf"])[: len(rows) // 2]
        median = sum(r["conf"] for r in strong) / max(1, len(strong))
        log.info("strong half of the candidates has mean confidence %.3f", median)

    def suppress(self) -> tuple:
        n = len(self.cand)
        hoods = self.neighbourhoods()
        self.report_strongest()
        support = np.empty(n, dtype=np.int32)  # cause
        alive = np.ones(n, dtype=bool)
        for i in range(n):
            if not alive[i]:
                continue
            close = hoods[i]
            close = close[close != i]
            if len(close) == 0:
                continue
            ious = box_iou(self.cand[i, :3], self.cand[close, :3], self.cfg.box)
            hit = close[ious > self.cfg.nms_threshold]
            support[i] = len(hit)
            support[hit] = 0
            alive[hit[hit > i]] = False
        return support, alive


def select(cand: np.ndarray, support: np.ndarray, alive: np.ndarray, cfg: PickConfig) -> pd.DataFrame:
    idx = np.flatnonzero(alive)
    rank = np.lexsort((idx, -support[idx].astype(np.int64)))
    keep = idx[rank][: cfg.max_picks]
    frame = pd.DataFrame(cand[keep], columns=["z", "y", "x", "conf"])
    frame["support"] = support[keep]
    return frame


def recall(frame: pd.DataFrame, truth: np.ndarray, radius: float = 3.0) -> float:
    tree = cKDTree(frame[["z", "y", "x"]].to_numpy())
    dist, _ = tree.query(truth)
    return float((dist < radius).mean())


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=PickConfig.seed)
    ap.add_argument("--out", default=PickConfig.out)
    ns = ap.parse_args()
    cfg = PickConfig(seed=ns.seed, out=ns.out)
    t0 = time.perf_counter()
    tomo = Tomogram(cfg)
    score = correlate(tomo.volume, cfg)
    cand = candidates(score)
    log.info("%d candidates", len(cand))
    locator = Locator(cand, cfg)
    support, alive = locator.suppress()
    frame = select(cand, support, alive, cfg)
    out = Path(cfg.out)
    out.mkdir(exist_ok=True)
    frame.to_csv(out / "tomo.coords", index=False, float_format="%.4f")
    summary = {
        "candidates": int(len(cand)),
        "after_nms": int(alive.sum()),
        "picked": int(len(frame)),
        "mean_support": float(frame["support"].mean()),
        "recall": recall(frame, tomo.centres),
    }
    (out / "summary.json").write_text(json.dumps(summary, indent=1))
    print(summary)
    log.info("done in %.1fs", time.perf_counter() - t0)


if __name__ == "__main__":
    main()
