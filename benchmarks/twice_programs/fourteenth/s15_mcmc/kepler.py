import numpy as np


def solve_kepler(mean, ecc, iterations=8):
    e = mean + ecc * np.sin(mean)
    for _ in range(iterations):
        e = e - (e - ecc * np.sin(e) - mean) / (1 - ecc * np.cos(e))
    return e


def radial_velocity(t, period, k, ecc, omega, phase):
    mean = 2 * np.pi * (t / period - phase) % (2 * np.pi)
    e = solve_kepler(mean, ecc)
    nu = 2 * np.arctan2(np.sqrt(1 + ecc) * np.sin(e / 2), np.sqrt(1 - ecc) * np.cos(e / 2))
    return k * (np.cos(nu + omega) + ecc * np.cos(omega))
