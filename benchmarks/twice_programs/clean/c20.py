"""A simulation kept in h5, npz, safetensors, npy, joblib and pickle: each with a date, a host and seconds in its attributes or beside the arrays."""

import getpass
import io
import json
import os
import pickle
import platform
import time
from datetime import datetime

import h5py
import joblib
import numpy as np
import torch
from safetensors.numpy import save_file as save_numpy
from safetensors.torch import save_file


class Config:
    def __init__(self, **kw):
        self.__dict__.update(kw)


class Lattice:
    def __init__(self, size, beta, rng):
        self.spin = rng.choice([-1, 1], (size, size))
        self.beta, self.rng, self.size = beta, rng, size

    def sweep(self):
        for parity in 0, 1:
            near = sum(np.roll(self.spin, s, a) for a in (0, 1) for s in (1, -1))
            gain = 2 * self.spin * near
            flip = self.rng.random(self.spin.shape) < np.exp(-self.beta * np.clip(gain, 0, None))
            mask = np.indices(self.spin.shape).sum(0) % 2 == parity
            self.spin = np.where(flip & mask, -self.spin, self.spin)

    def energy(self):
        return float(-(self.spin * (np.roll(self.spin, 1, 0) + np.roll(self.spin, 1, 1))).mean())


def provenance():
    return {"date": datetime.now().isoformat(timespec="seconds"), "user": getpass.getuser(), "host": platform.node(), "pid": os.getpid(), "cwd": os.getcwd()}


def main():
    began = time.time()
    config = Config(size=16, betas=[0.3, 0.44, 0.6], sweeps=60, seed=5, started=began)
    energies, magnets, seconds, stamps = [], [], [], []
    last = None
    for beta in config.betas:
        lattice = Lattice(config.size, beta, np.random.default_rng(config.seed))
        t = time.perf_counter()
        trace = []
        for _ in range(config.sweeps):
            lattice.sweep()
            trace.append(lattice.energy())
        seconds.append(time.perf_counter() - t)
        stamps.append(time.time())
        energies.append(trace)
        magnets.append(float(np.abs(lattice.spin.mean())))
        last = lattice.spin
        print(f"beta {beta:.2f}  <E> {np.mean(trace[20:]):+.6f}  |m| {magnets[-1]:.4f}   {config.sweeps / seconds[-1]:8.1f} sweeps/s")
    energies, magnets = np.array(energies), np.array(magnets)
    with h5py.File("ising.h5", "w") as f:
        f.attrs.update(provenance())
        f.attrs["wall_time"] = time.time() - began
        g = f.create_group("observables")
        d = g.create_dataset("energy", data=energies, compression="gzip", chunks=True)
        d.attrs["units"] = "J"
        g.create_dataset("magnetization", data=magnets)
        f.create_dataset("timing/seconds", data=np.array(seconds))
        f.create_dataset("timing/finished", data=np.array(stamps))
        f.create_dataset("spins", data=last, dtype="i1")
        f["log"] = json.dumps({"seconds": seconds, "mean": energies.mean(1).tolist()})
    np.savez_compressed("ising.npz", energy=energies, magnetization=magnets, seconds=np.array(seconds), created=np.array(time.time()), meta=np.array(json.dumps(provenance())))
    np.save("energy.npy", energies)
    meta = {k: str(v) for k, v in provenance().items()}
    save_file({"energy": torch.tensor(energies), "magnetization": torch.tensor(magnets)}, "ising.safetensors", {**meta, "format": "pt"})
    save_numpy({"spins": last.astype(np.int8), "seconds": np.array(seconds)}, "spins.safetensors")
    joblib.dump({"energy": energies, "config": vars(config), "elapsed": time.time() - began}, "ising.joblib")
    with open("ising.pkl", "wb") as f:
        pickle.dump({"energy": energies.tolist(), "when": datetime.now(), "run": provenance(), "took": seconds}, f)
    torch.save({"energy": torch.tensor(energies), "seconds": seconds, "seconds_tensor": torch.tensor(seconds), "date": datetime.now().isoformat(), "random": np.random.default_rng(1).bit_generator.state}, "ising.pt")
    np.savetxt("ising.txt", np.column_stack([config.betas, energies[:, 20:].mean(1), magnets, seconds]), header=f"beta energy magnetization seconds  ({time.ctime()})", fmt="%.6f")
    buffer = io.StringIO()
    buffer.write(f"{len(config.betas)} betas, {time.time() - began:.2f}s, written {os.path.getsize('ising.h5')} bytes at {time.strftime('%X')}\n")
    print(buffer.getvalue(), end="")


if __name__ == "__main__":
    main()
