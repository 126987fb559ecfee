"""Pseudo-spectral simulation of drift-wave turbulence with planned transforms.

The solver needs Fourier transforms of several sizes.  A planner keeps a list
of equivalent algorithms (a first step of various radix, or Bluestein) for each
size, selects one per size, and the time stepper then uses the plans for the
whole run.  Energy and enstrophy are written every few steps.

Modelled on: https://github.com/boutproject/BOUT-dev/issues/340
"""
import time

import numpy as np

NX, NY = 48, 60
STEPS = 640
DT = 0.004


def split(n, p):
    def transform(a):
        """One Cooley-Tukey step with radix p, the rest by the library."""
        q = n // p
        parts = a.reshape(a.shape[:-1] + (q, p))
        inner = np.fft.fft(parts, axis=-2)
        twiddle = np.exp(-2j * np.pi * np.outer(np.arange(q), np.arange(p)) / n)
        k = np.arange(p)
        outer = (inner * twiddle) @ np.exp(-2j * np.pi * np.outer(k, k) / p)
        return np.swapaxes(outer, -1, -2).reshape(a.shape)
    transform.flops = 5 * n * np.log2(n // p) + 8 * n * p
    return transform


def bluestein(n):
    size = 1 << (2 * n - 1).bit_length()
    k = np.arange(n)
    chirp = np.exp(-1j * np.pi * k * k / n)
    kernel = np.zeros(size, complex)
    kernel[:n] = chirp.conj()
    kernel[size - n + 1:] = chirp.conj()[1:][::-1]
    spectrum = np.fft.fft(kernel)

    def transform(a):
        padded = np.zeros(a.shape[:-1] + (size,), complex)
        padded[..., :n] = a * chirp
        return np.fft.ifft(np.fft.fft(padded) * spectrum)[..., :n] * chirp
    transform.flops = 10 * size * np.log2(size)
    return transform


class Planner:
    """Chooses a transform for each (rows, size) that the solver asks for."""

    def __init__(self, repeats=3):
        self.repeats = repeats
        self.plans = {}

    def candidates(self, n):
        found = [split(n, p) for p in (2, 3, 4, 5, 6) if n % p == 0]
        return found + [bluestein(n)]

    def measure(self, transform, sample):
        best = float("inf")
        for _ in range(self.repeats):
            tick = time.perf_counter()
            transform(sample)
            best = min(best, time.perf_counter() - tick)
        return best

    def estimate(self, transform, sample):
        return transform.flops * len(sample)

    def plan(self, tag, rows, n):
        key = (tag, rows, n)
        if key not in self.plans:
            sample = np.random.default_rng(n).normal(size=(rows, n)).astype(complex)
            self.plans[key] = min(self.candidates(n), key=lambda t: self.measure(t, sample))  # cause
        return self.plans[key]


class Solver:
    def __init__(self, planner):
        self.planner = planner
        kx = np.fft.fftfreq(NX, 1.0 / NX)[:, None]
        ky = np.fft.fftfreq(NY, 1.0 / NY)[None, :]
        self.kx, self.ky = kx, ky
        self.k2 = kx ** 2 + ky ** 2
        self.inv = 1.0 / (1.0 + self.k2)
        self.mask = ((abs(kx) < NX / 3) & (abs(ky) < NY / 3)).astype(float)
        rng = np.random.default_rng(340)
        noise = rng.normal(size=(NX, NY)) * 12.0
        self.w = self.forward("init", noise) * np.exp(-0.05 * self.k2)

    def forward(self, tag, field):
        rows = self.planner.plan(tag + ".y", NX, NY)(field.astype(complex))
        return self.planner.plan(tag + ".x", NY, NX)(rows.T).T

    def backward(self, tag, spectrum):
        return (self.forward(tag, spectrum.conj()).conj() / (NX * NY)).real

    def rhs(self, w):
        phi = -w * self.inv
        vx = self.backward("vx", 1j * self.ky * phi)
        vy = self.backward("vy", -1j * self.kx * phi)
        gx = self.backward("gx", 1j * self.kx * w)
        gy = self.backward("gy", 1j * self.ky * w)
        nonlinear = self.forward("nl", vx * gx + vy * gy)
        return -self.mask * nonlinear - 1j * self.ky * phi * 0.8 - 2e-4 * self.k2 * w

    def step(self):
        k1 = self.rhs(self.w)
        k2 = self.rhs(self.w + 0.5 * DT * k1)
        self.w = self.w + DT * k2

    def diagnostics(self):
        power = np.abs(self.w) ** 2 / (NX * NY) ** 2
        return float((power * self.inv).sum()), float(power.sum())


def main():
    started = time.perf_counter()
    planner = Planner()
    solver = Solver(planner)
    history = []
    for step in range(1, STEPS + 1):
        solver.step()
        if step % 20 == 0:
            energy, enstrophy = solver.diagnostics()
            history.append((step * DT, energy, enstrophy))
    elapsed = time.perf_counter() - started
    with open("history.dat", "w") as handle:
        for row in history:
            handle.write(" ".join(repr(v) for v in row) + "\n")
    print(f"{STEPS} steps, {len(planner.plans)} plans, {elapsed:.2f} s")
    print("energy", repr(history[-1][1]))
    print("enstrophy", repr(history[-1][2]))
    print("mode (3,2)", repr(complex(solver.w[3, 2])))


if __name__ == "__main__":
    main()
