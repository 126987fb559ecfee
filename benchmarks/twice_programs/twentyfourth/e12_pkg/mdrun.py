"""Minimise or integrate a prepared system; write energies and the structure."""
import sys

import numpy as np

import common


def forces(x, box, cutoff=2.5):
    """Lennard-Jones forces and energy with minimum images."""
    d = x[:, None, :] - x[None, :, :]
    d -= box * np.round(d / box)
    r2 = (d ** 2).sum(axis=2)
    np.fill_diagonal(r2, np.inf)
    inv6 = np.where(r2 < cutoff ** 2, 1.0 / r2 ** 3, 0.0)
    energy = 2.0 * np.sum(inv6 * inv6 - inv6)
    scale = 24.0 * (2.0 * inv6 * inv6 - inv6) / r2
    return np.einsum("ij,ijk->ik", scale, d), float(energy)


def minimise(x, box, params, log):
    step = 0.001
    f, e = forces(x, box)
    for k in range(params["nsteps"]):
        trial = x + step * f / max(1e-9, np.abs(f).max())
        f_new, e_new = forces(trial, box)
        if e_new < e:
            x, f, e, step = trial, f_new, e_new, step * 1.2
        else:
            step *= 0.4
        log.append((k, e, 0.0))
    return x


def integrate(x, v, box, params, log):
    """Velocity Verlet with a Berendsen thermostat."""
    dt = params["dt"]
    f, e = forces(x, box)
    for k in range(params["nsteps"]):
        v = v + 0.5 * dt * f
        x = (x + dt * v) % box
        f, e = forces(x, box)
        v = v + 0.5 * dt * f
        temperature = float((v ** 2).sum() / (3 * len(v)))
        v = v * (1 + dt / params["tau_t"] * (params["ref_t"] / temperature - 1)) ** 0.5
        log.append((k, e, temperature))
    return x, v


def main():
    source, name = sys.argv[1:3]
    system = common.read_system(source)
    params, box = system["params"], system["box"]
    x, v = np.array(system["x"]), np.array(system["v"])
    log = []
    if params["integrator"] == "steep":
        x = minimise(x, box, params, log)
    else:
        x, v = integrate(x, v, box, params, log)
    common.write_system(name + ".gro", {"x": x.tolist(), "v": v.tolist(), "box": box})
    with open(name + ".xvg", "w") as handle:
        for k, e, t in log:
            handle.write("%d %.6f %.6f\n" % (k, e, t))
    tail = np.array(log[len(log) // 2:])
    print("%s: mean potential %.5f, mean temperature %.5f" % (name, tail[:, 1].mean(), tail[:, 2].mean()))


if __name__ == "__main__":
    main()
