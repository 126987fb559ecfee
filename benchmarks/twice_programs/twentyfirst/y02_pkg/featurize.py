"""Synthetic complexes: coordinates, atom types, neighbour lists, labels."""
import argparse

import numpy as np
from scipy.spatial import cKDTree

from . import SEED

ATOM_TYPES = (6, 7, 8, 16)


def make_molecule(rng, n_atoms, centre, spread):
    xyz = rng.normal(0, spread, (n_atoms, 3)) + centre
    z = rng.choice(ATOM_TYPES, size=n_atoms, p=(0.6, 0.15, 0.2, 0.05))
    return xyz, z


def neighbours(xyz, k):
    d, i = cKDTree(xyz).query(xyz, k=k + 1)
    return d[:, 1:], i[:, 1:]


def radial(xyz, z, k=8, centers=(1.5, 2.5, 3.5, 5.0), width=0.8):
    """(n_types * n_centers) symmetry functions, summed over the atoms' shells."""
    d, i = neighbours(xyz, k)
    feats = []
    for t in ATOM_TYPES:
        mask = z[i] == t
        for c in centers:
            feats.append((np.exp(-((d - c) / width) ** 2) * mask).sum(axis=1))
    return np.stack(feats, axis=1).astype(np.float32)


def build(n, rng):
    frag1, frag2, both, y = [], [], [], []
    for _ in range(n):
        p_xyz, p_z = make_molecule(rng, 36, np.zeros(3), 3.2)
        shift = rng.normal(0, 1, 3)
        shift = shift / np.linalg.norm(shift) * rng.uniform(2.0, 6.0)
        l_xyz, l_z = make_molecule(rng, 12, shift, 1.6)
        frag1.append(radial(p_xyz, p_z))
        frag2.append(radial(l_xyz, l_z))
        both.append(radial(np.vstack([p_xyz, l_xyz]), np.concatenate([p_z, l_z])))
        contact = (cKDTree(p_xyz).query(l_xyz)[0] < 2.2).sum()
        polar = np.isin(l_z, (7, 8)).sum()
        y.append(4.0 + 0.35 * contact + 0.12 * polar + rng.normal(0, 0.15))
    return np.stack(frag1), np.stack(frag2), np.stack(both), np.array(y, np.float32)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", default="complexes.npz")
    ap.add_argument("--n", type=int, default=260)
    args = ap.parse_args()
    rng = np.random.default_rng(SEED)
    f1, f2, c, y = build(args.n, rng)
    order = rng.permutation(args.n)
    cut = int(0.8 * args.n)
    np.savez(args.out, frag1=f1, frag2=f2, both=c, y=y, train=order[:cut], test=order[cut:])
    print(f"{args.n} complexes, label mean {y.mean():.4f} sd {y.std():.4f}")


if __name__ == "__main__":
    main()
