"""A strip of overlapping views over a hilly surface."""
from dataclasses import dataclass

import numpy as np


@dataclass
class Match:
    left: np.ndarray
    right: np.ndarray
    pose_left: np.ndarray
    pose_right: np.ndarray


@dataclass
class Scene:
    intrinsics: np.ndarray
    matches: list


def _rotation(angles):
    rx, ry, rz = angles
    cx, sx, cy, sy, cz, sz = (np.cos(rx), np.sin(rx), np.cos(ry), np.sin(ry),
                              np.cos(rz), np.sin(rz))
    x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    return z @ y @ x


def _project(k, pose, pts):
    cam = pts @ pose[:, :3].T + pose[:, 3]
    pix = cam @ k.T
    return pix[:, :2] / pix[:, 2:]


def make_scene(n_views, n_points, outlier_ratio, seed):
    rng = np.random.default_rng(seed)
    k = np.array([[900.0, 0, 512], [0, 900.0, 384], [0, 0, 1]])
    poses = []
    for v in range(n_views):
        r = _rotation(rng.normal(0, 0.03, 3))
        centre = np.array([v * 4.0, rng.normal(0, 0.3), rng.normal(0, 0.3)])
        poses.append(np.column_stack([r, -r @ centre]))
    matches = []
    for v in range(n_views - 1):
        xy = rng.uniform([v * 4 - 6, -8], [v * 4 + 10, 8], (n_points, 2))
        z = 18 + 2.5 * np.sin(xy[:, 0] / 3) + rng.normal(0, 0.8, n_points)
        pts = np.column_stack([xy, z])
        left = _project(k, poses[v], pts) + rng.normal(0, 0.6, (n_points, 2))
        right = _project(k, poses[v + 1], pts) + rng.normal(0, 0.6, (n_points, 2))
        bad = rng.random(n_points) < outlier_ratio
        right[bad] = rng.uniform(0, 1000, (int(bad.sum()), 2))
        matches.append(Match(left, right, poses[v], poses[v + 1]))
    return Scene(k, matches)
