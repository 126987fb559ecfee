"""Combine a structure and run parameters to the input of a run."""
import sys
import time

import numpy as np

import common


def lattice(n_side, density=0.7):
    """Atoms on a cubic lattice with a small fixed displacement."""
    box = (n_side ** 3 / density) ** (1 / 3)
    axis = (np.arange(n_side) + 0.5) * box / n_side
    grid = np.array(np.meshgrid(axis, axis, axis)).reshape(3, -1).T
    rng = np.random.default_rng(73)
    return (grid + rng.normal(0, 0.02, grid.shape)).tolist(), box


def maxwell(n, temperature, seed):
    """Velocities of the Maxwell distribution, without drift."""
    if seed == -1:
        seed = time.time_ns() % (2 ** 32)  # cause
    print("velocities at temperature %.2f" % temperature)
    rng = np.random.default_rng(seed)
    v = rng.normal(0.0, temperature ** 0.5, size=(n, 3))
    v -= v.mean(axis=0)
    v *= (temperature / ((v ** 2).sum() / (3 * n))) ** 0.5
    return v.tolist()


def main():
    mdp, source, target = sys.argv[1:4]
    params = common.read_params(mdp)
    if source == "new":
        x, box = lattice(5)
        system = {"x": x, "v": [[0.0] * 3] * len(x), "box": box}
    else:
        system = common.read_system(source)
    if params["gen_vel"]:
        system["v"] = maxwell(len(system["x"]), params["gen_temp"], params["gen_seed"])
    system["params"] = params
    common.write_system(target, system)
    print("%s: %d atoms, box %.4f, %d steps" % (target, len(system["x"]), system["box"], params["nsteps"]))


if __name__ == "__main__":
    main()
