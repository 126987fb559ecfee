"""Photon statistics of squeezed light in a lossy interferometer.

Computes Fock amplitudes of one-mode Gaussian states by the usual recurrence up
to a cutoff, applies beam splitter losses, and scans squeezing and loss for the
best phase sensitivity.  A small profiler records how long the parts of a scan
take.  The scan is written to a file and summed up on the terminal.

Modelled on: https://github.com/XanaduAI/MrMustard/pull/309
"""
import math
import time

import numpy as np

CUTOFF = 96
SQUEEZINGS = np.linspace(0.2, 1.1, 13)
LOSSES = np.linspace(0.0, 0.45, 12)
DISPLACEMENT = 0.9


class Profiler:
    """Durations of the laps of a computation."""

    def __init__(self):
        self.summary = []

    def __enter__(self):
        self.laps = []
        self.last = time.perf_counter()
        return self

    def lap(self):
        now = time.perf_counter()
        self.laps.append(now - self.last)
        self.last = now

    def __exit__(self, *exc):
        laps = np.array(self.laps)
        scaled = laps * 1e3
        self.summary.append((len(laps), float(scaled.mean()), float(scaled.max())))


def squeezed_amplitudes(r, alpha, cutoff):
    """Amplitudes <n|D(alpha)S(r)|0>, by the three-term recurrence."""
    nu, mu = math.tanh(r), math.cosh(r)
    amplitude = np.zeros(cutoff)
    amplitude[0] = math.exp(-0.5 * alpha * alpha * (1 + nu)) / math.sqrt(mu)
    b = alpha * (1 + nu)
    for n in range(1, cutoff):
        value = b * amplitude[n - 1]
        if n > 1:
            value -= nu * math.sqrt(n - 1) * amplitude[n - 2]
        amplitude[n] = value / math.sqrt(n)
    return amplitude


def support(amplitude, tolerance=1e-14):
    """Number of leading components that matter."""
    above = np.nonzero(amplitude ** 2 > tolerance)[0]
    return int(above[-1]) + 1


def log_factorials(count):
    return np.array([math.lgamma(k + 1.0) for k in range(count)])


LOG_FACTORIAL = log_factorials(CUTOFF + 1)


def binomial_row(n, eta):
    """Probabilities that k of n photons survive with transmission eta."""
    k = np.arange(n + 1)
    if eta >= 1.0:
        return (k == n).astype(float)
    logs = LOG_FACTORIAL[n] - LOG_FACTORIAL[k] - LOG_FACTORIAL[n - k]
    return np.exp(logs + k * math.log(eta) + (n - k) * math.log1p(-eta))


def lossy_distribution(amplitude, eta):
    """Photon number distribution behind the losses."""
    result = np.empty(CUTOFF)  # cause
    top = support(amplitude)
    result[:top] = 0.0
    for n in range(top):
        weight = amplitude[n] ** 2
        result[:n + 1] += weight * binomial_row(n, eta)
    return result


def moments(distribution):
    n = np.arange(CUTOFF)
    norm = distribution.sum()
    mean = float((n * distribution).sum() / norm)
    second = float((n * n * distribution).sum() / norm)
    return float(norm), mean, second - mean * mean


def parity(distribution):
    return float((distribution * (-1.0) ** np.arange(CUTOFF)).sum())


def scan(profiler):
    rows = []
    for r in SQUEEZINGS:
        for loss in LOSSES:
            with profiler:
                for phase in np.linspace(0.0, 0.4, CUTOFF):
                    alpha = DISPLACEMENT * math.cos(phase)
                    amplitude = squeezed_amplitudes(r, alpha, 64 if phase < 0.2 else CUTOFF)
                    profiler.lap()
            reference = squeezed_amplitudes(r, DISPLACEMENT, CUTOFF)
            before = moments(lossy_distribution(reference, 1.0 - loss))
            shifted = moments(lossy_distribution(amplitude, 1.0 - loss))
            slope = abs(shifted[1] - before[1]) / 0.4
            sensitivity = math.sqrt(max(before[2], 0.0)) / max(slope, 1e-6)
            rows.append((r, loss, *before, slope, sensitivity,
                         parity(lossy_distribution(reference, 1.0 - loss))))
    return np.array(rows)


def main():
    tick = time.perf_counter()
    profiler = Profiler()
    rows = scan(profiler)
    elapsed = time.perf_counter() - tick
    laps = np.array([item[1] for item in profiler.summary])
    print(f"scan took {elapsed:.2f} s, {laps.mean():.4f} ms per state")

    np.savetxt("scan.txt", rows, fmt="%.8g",
               header="squeezing loss norm mean variance slope sensitivity parity")
    best = rows[np.argmin(rows[:, 6])]
    print(f"best squeezing {best[0]:.2f} loss {best[1]:.2f} sensitivity {best[6]:.7f}")
    print(f"mean norm {rows[:, 2].mean():.9f}")
    print(f"mean photon number {rows[:, 3].mean():.8f}")
    print(f"mean parity {rows[:, 7].mean():.8f}")


if __name__ == "__main__":
    main()
