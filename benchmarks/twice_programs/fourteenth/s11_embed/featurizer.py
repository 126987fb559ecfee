import multiprocessing as mp

import numpy as np

ELEMENTS = {"C": 0, "N": 1, "O": 2, "S": 3}


def parse(smiles):
    atoms, bonds, stack, last = [], [], [], None
    for ch in smiles:
        if ch == "(":
            stack.append(last)
        elif ch == ")":
            last = stack.pop()
        else:
            atoms.append(ELEMENTS[ch])
            if last is not None:
                bonds.append((last, len(atoms) - 1))
            last = len(atoms) - 1
    return np.array(atoms), np.array(bonds)


def predict_structure(atoms, bonds, iterations=80, step=0.05):
    n = len(atoms)
    xyz = np.random.normal(scale=1.5, size=(n, 3))  # cause
    for _ in range(iterations):
        force = np.zeros_like(xyz)
        diff = xyz[:, None] - xyz[None]
        r2 = (diff ** 2).sum(-1) + np.eye(n)
        force += (diff / r2[..., None] ** 2).sum(1)
        if len(bonds):
            i, j = bonds.T
            d = xyz[i] - xyz[j]
            r = np.linalg.norm(d, axis=1, keepdims=True)
            pull = 2.0 * (r - 1.5) * d / r
            np.add.at(force, i, -pull)
            np.add.at(force, j, pull)
        xyz = xyz + step * force
    return xyz - xyz.mean(0)


def distance_features(atoms, xyz, bins=16):
    d = np.linalg.norm(xyz[:, None] - xyz[None], axis=-1)
    centers = np.linspace(0.5, 8.0, bins)
    soft = np.exp(-((d[..., None] - centers) ** 2))
    onehot = np.eye(len(ELEMENTS))[atoms]
    return np.concatenate([onehot, soft.sum(1)], axis=1).astype(np.float32)


def _init(seed):
    np.random.seed(seed)


def _featurize(smiles):
    atoms, bonds = parse(smiles)
    return distance_features(atoms, predict_structure(atoms, bonds))


class Featurizer:
    def __init__(self, n_workers=2, chunk=2, seed=0):
        self.n_workers = n_workers
        self.chunk = chunk
        self.seed = seed

    def __call__(self, smiles):
        with mp.get_context("fork").Pool(self.n_workers, _init, (self.seed,)) as pool:
            return list(pool.imap(_featurize, smiles, chunksize=self.chunk))  # cause
