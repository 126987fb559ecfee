"""https://github.com/dipy/dipy/issues/4092 : the simulation workers are seeded with base_seed + os.getpid(), so the simulated library
and the matched parameters can not be repeated; the fix derives the seeds from the worker number."""
import json
import multiprocessing as mp
import os
import time

import numpy as np

N_DIRS = 30


def gradients(n=N_DIRS):
    i = np.arange(n) + 0.5
    phi = np.arccos(1 - 2 * i / n)
    theta = np.pi * (1 + 5 ** 0.5) * i
    return np.stack([np.cos(theta) * np.sin(phi), np.sin(theta) * np.sin(phi), np.cos(phi)], 1)


def tensor_signal(direction, md, fa, b, grad):
    par = md * (1 + 2 * fa)
    perp = md * (1 - fa)
    cos2 = (grad @ direction) ** 2
    return np.exp(-b * (perp + (par - perp) * cos2))


def simulate_voxel(grad, b):
    k = np.random.choice([1, 2, 3], p=[0.5, 0.35, 0.15])
    frac = np.random.dirichlet(np.full(k, 2.0))
    fa = np.random.uniform(0.3, 0.9, k)
    md = np.random.uniform(0.5, 1.2, k)
    iso = np.random.uniform(0, 0.4)
    signal = np.zeros(len(grad))
    for j in range(k):
        d = np.random.randn(3)
        signal += frac[j] * tensor_signal(d / np.linalg.norm(d), md[j], fa[j], b, grad)
    signal = (1 - iso) * signal + iso * np.exp(-b * 3.0)
    return signal, np.array([k, iso, float(frac @ fa), float(frac @ md)])


def init_worker(base_seed, worker):
    np.random.seed((base_seed + os.getpid()) % 2 ** 32)  # cause


def worker_main(worker, count, base_seed, b, queue):
    init_worker(base_seed, worker)
    grad = gradients()
    pairs = [simulate_voxel(grad, b) for _ in range(count)]
    queue.put((worker, np.stack([p[0] for p in pairs]), np.stack([p[1] for p in pairs])))


def generate_force_simulations(total, base_seed, b=1.0, num_cpus=2):
    ctx = mp.get_context("fork")
    queue = ctx.Queue()
    share = [total // num_cpus + (w < total % num_cpus) for w in range(num_cpus)]
    procs = [ctx.Process(target=worker_main, args=(w, share[w], base_seed, b, queue)) for w in range(num_cpus)]
    for p in procs:
        p.start()
    parts = {}
    while len(parts) < num_cpus:
        worker, sig, par = queue.get()
        parts[worker] = (sig, par)
    for p in procs:
        p.join()
    return np.concatenate([parts[w][0] for w in range(num_cpus)]), np.concatenate([parts[w][1] for w in range(num_cpus)])


class Matcher:
    def __init__(self, signals, params, k=12):
        self.mean = signals.mean(0)
        s = signals - self.mean
        self.signals = s / np.linalg.norm(s, axis=1, keepdims=True)
        self.params, self.k = params, k

    def predict(self, y):
        y = y - self.mean
        y = y / np.linalg.norm(y, axis=1, keepdims=True)
        sim = y @ self.signals.T
        best = np.argpartition(-sim, self.k, axis=1)[:, :self.k]
        w = np.take_along_axis(sim, best, 1)
        w = np.exp(40 * (w - w.max(1, keepdims=True)))
        w /= w.sum(1, keepdims=True)
        return np.einsum("nk,nkp->np", w, self.params[best])


def phantom(n, seed):
    state = np.random.get_state()
    np.random.seed(seed)
    grad = gradients()
    pairs = [simulate_voxel(grad, 1.0) for _ in range(n)]
    noise = 0.01 * np.random.randn(n, N_DIRS)
    np.random.set_state(state)
    return np.stack([p[0] for p in pairs]) + noise, np.stack([p[1] for p in pairs])


def main():
    np.random.seed(12)
    t = time.time()
    signals, params = generate_force_simulations(30000, base_seed=12)
    print("library", signals.shape, "in %.2f s, parent %d" % (time.time() - t, os.getpid()))
    y, truth = phantom(300, 99)
    est = Matcher(signals, params).predict(y)
    err = np.abs(est - truth).mean(0)
    names = ["fibers", "iso", "fa", "md"]
    for n, e in zip(names, err):
        print("  %-7s mae %.5f" % (n, e))
    np.save("estimates.npy", est)
    with open("errors.json", "w") as f:
        json.dump(dict(zip(names, map(float, err))), f)
    print("%.2f s" % (time.time() - t))


if __name__ == "__main__":
    main()
