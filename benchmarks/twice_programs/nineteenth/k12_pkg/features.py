"""Measurements on chains of atoms; xyz is (frames, atoms, 3)."""
import numpy as np


def pair_distance(xyz, atoms):
    i, j = atoms
    return np.linalg.norm(xyz[:, i] - xyz[:, j], axis=1)


def end_to_end(xyz, atoms):
    return pair_distance(xyz, atoms) ** 2


def gyration(xyz, atoms):
    part = xyz[:, list(atoms)]
    return np.sqrt(((part - part.mean(axis=1, keepdims=True)) ** 2).sum(axis=2).mean(axis=1))


def _torsion(xyz, atoms):
    a, b, c, d = (xyz[:, k] for k in atoms)
    b1, b2, b3 = b - a, c - b, d - c
    n1, n2 = np.cross(b1, b2), np.cross(b2, b3)
    m = np.cross(n1, b2 / np.linalg.norm(b2, axis=1, keepdims=True))
    return np.arctan2((m * n2).sum(axis=1), (n1 * n2).sum(axis=1))


def torsion_sin(xyz, atoms):
    return np.sin(_torsion(xyz, atoms))


def torsion_cos(xyz, atoms):
    return np.cos(_torsion(xyz, atoms))
