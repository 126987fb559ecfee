"""Smooth functional volumes and write a derivative dataset with checksums.

Report: https://github.com/nipy/nibabel/issues/1023
Compressed NIfTI images of a few subjects are written next to a manifest of their digests.
"""
import argparse
import gzip
import hashlib
import json
import logging
import struct
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import ndimage

log = logging.getLogger("derivatives")


@dataclass
class StudyConfig:
    subjects: int = 9
    shape: tuple = (40, 48, 40)
    volumes: int = 14
    fwhm: float = 6.0
    voxel: float = 3.0
    level: int = 6
    seed: int = 1023
    out: str = "derivatives"


class NiftiImage:
    """Just enough of a single file NIfTI-1 image."""

    CODES = {np.dtype("float32"): (16, 32), np.dtype("int16"): (4, 16), np.dtype("uint8"): (2, 8)}

    def __init__(self, data: np.ndarray, voxel: float):
        self.data = data
        self.voxel = voxel

    def header(self) -> bytes:
        code, bits = self.CODES[self.data.dtype]
        dims = [self.data.ndim] + list(self.data.shape) + [1] * (7 - self.data.ndim)
        pix = [1.0] + [self.voxel] * 3 + [2.0] + [0.0] * 3
        head = bytearray(348)
        struct.pack_into("<i", head, 0, 348)
        struct.pack_into("<8h", head, 40, *dims)
        struct.pack_into("<hh", head, 70, code, bits)
        struct.pack_into("<8f", head, 76, *pix)
        struct.pack_into("<f", head, 108, 352.0)
        struct.pack_into("<f", head, 112, 1.0)
        head[344:348] = b"n+1\0"
        return bytes(head) + b"\0\0\0\0"

    def to_bytes(self) -> bytes:
        return self.header() + self.data.tobytes(order="F")

    def to_filename(self, path: Path, level: int):
        payload = self.to_bytes()
        if path.suffix != ".gz":
            path.write_bytes(payload)
            return
        with gzip.open(path, "wb", compresslevel=level) as fh:  # cause
            fh.write(payload)


class Subject:
    def __init__(self, number: int, cfg: StudyConfig):
        self.label = f"sub-{number:02d}"
        self.rng = np.random.default_rng([cfg.seed, number])
        self.cfg = cfg

    def bold(self) -> np.ndarray:
        shape = self.cfg.shape + (self.cfg.volumes,)
        grid = np.indices(self.cfg.shape)
        centre = np.array(self.cfg.shape)[:, None, None, None] / 2
        brain = (((grid - centre) / (centre * 0.8)) ** 2).sum(0) < 1
        signal = 800 * brain[..., None] + self.rng.normal(0, 30, shape)
        wave = np.sin(np.arange(self.cfg.volumes) / 2.0)
        signal[18:24, 20:26, 18:24] += 25 * wave
        return signal.astype(np.float32)


def smooth(data: np.ndarray, cfg: StudyConfig) -> np.ndarray:
    sigma = cfg.fwhm / cfg.voxel / 2.3548
    return ndimage.gaussian_filter(data, (sigma, sigma, sigma, 0)).astype(np.float32)


def quality(data: np.ndarray) -> dict:
    mean, sd = data.mean(-1), data.std(-1)
    mask = mean > 400
    return {
        "tsnr": round(float((mean[mask] / sd[mask]).mean()), 4),
        "gm_voxels": int(mask.sum()),
        "dvars": round(float(np.sqrt((np.diff(data[mask], axis=-1) ** 2).mean())), 4),
    }


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def process(cfg: StudyConfig) -> dict:
    root = Path(cfg.out)
    manifest = {}
    for number in range(1, cfg.subjects + 1):
        subject = Subject(number, cfg)
        folder = root / subject.label / "func"
        folder.mkdir(parents=True, exist_ok=True)
        data = smooth(subject.bold(), cfg)
        target = folder / f"{subject.label}_task-rest_desc-smooth_bold.nii.gz"
        NiftiImage(data, cfg.voxel).to_filename(target, cfg.level)
        mask = (data.mean(-1) > 400).astype(np.uint8)
        plain = folder / f"{subject.label}_desc-brain_mask.nii"
        NiftiImage(mask, cfg.voxel).to_filename(plain, cfg.level)
        for path in (target, plain):
            manifest[path.relative_to(root).as_posix()] = digest(path)
        manifest[f"{subject.label}/metrics"] = quality(data)
        log.info("%s written", subject.label)
    return manifest


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    ap = argparse.ArgumentParser()
    ap.add_argument("--subjects", type=int, default=StudyConfig.subjects)
    ap.add_argument("--out", default=StudyConfig.out)
    ns = ap.parse_args()
    cfg = StudyConfig(subjects=ns.subjects, out=ns.out)
    t0 = time.time()
    manifest = process(cfg)
    text = json.dumps(manifest, indent=1, sort_keys=True)
    (Path(cfg.out) / "manifest.json").write_text(text)
    print("dataset digest", hashlib.sha256(text.encode()).hexdigest())
    print("sub-01", manifest["sub-01/metrics"])
    log.info("%.1fs", time.time() - t0)


if __name__ == "__main__":
    main()
