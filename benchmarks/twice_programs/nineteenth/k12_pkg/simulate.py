"""Langevin dynamics of a chain of beads with torsional barriers (in 3D)."""
import numpy as np


def build_chain(torsions, bond=1.0, angle=1.9):
    """Cartesian coordinates from torsions, for all frames at once."""
    n_frames, n_torsions = torsions.shape
    xyz = np.zeros((n_frames, n_torsions + 3, 3))
    xyz[:, 1, 0] = bond
    xyz[:, 2] = [bond - bond * np.cos(angle), bond * np.sin(angle), 0.0]
    for k in range(n_torsions):
        a, b, c = xyz[:, k], xyz[:, k + 1], xyz[:, k + 2]
        bc = (c - b) / np.linalg.norm(c - b, axis=1, keepdims=True)
        normal = np.cross(b - a, bc)
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        m = np.cross(normal, bc)
        phi = torsions[:, k:k + 1]
        xyz[:, k + 3] = c + bond * (-np.cos(angle) * bc + np.sin(angle) * (np.cos(phi) * m + np.sin(phi) * normal))
    return xyz


def make_trajectories(n_traj, n_frames, n_atoms, seed):
    rng = np.random.default_rng(seed)
    trajectories = []
    for _ in range(n_traj):
        phi = rng.uniform(-np.pi, np.pi, n_atoms - 3)
        frames = np.empty((n_frames, n_atoms - 3))
        noise = rng.normal(0, 0.28, (n_frames, 4, n_atoms - 3))
        for t in range(n_frames):
            for s in range(4):
                force = 1.5 * 3 * np.sin(3 * phi) + 0.4 * np.sin(phi)
                phi = phi + 0.012 * force + noise[t, s]
            frames[t] = phi
        trajectories.append(build_chain(frames))
    return trajectories
