"""Simple inspiral-like chirps in the frequency domain and their overlaps."""
import numpy as np

FREQS = np.linspace(20.0, 512.0, 1024)
DF = FREQS[1] - FREQS[0]
NOISE = (FREQS / 150.0) ** -4.1 + 2.0 + 2.0 * (FREQS / 150.0) ** 2


def chirp(params, freqs):
    """Frequency-domain waveform of a binary with two masses and an effective spin."""
    m1, m2, spin = params
    total, eta = m1 + m2, m1 * m2 / (m1 + m2) ** 2
    x = (np.pi * total * 4.93e-6 * freqs) ** (2.0 / 3.0)
    phase = 3.0 / (128 * eta) * x ** -2.5 * (
        1 + (3715 / 756 + 55 / 9 * eta) * x + (-16 * np.pi + 113 / 3 * spin) * x ** 1.5
        + (15293365 / 508032 + 27145 / 504 * eta + 3085 / 72 * eta ** 2) * x ** 2)
    cut = 1.0 / (6 ** 1.5 * np.pi * total * 4.93e-6)
    return freqs ** (-7.0 / 6.0) * np.exp(-(freqs / (1.3 * cut)) ** 6) * np.exp(-1j * phase)


def generate(job):
    """Whitened template of one proposal, averaged over each bin; light systems need more points per bin."""
    number, params = job
    points = int(6 + 300.0 / (params[0] + params[1]))
    h = np.zeros(len(FREQS), complex)
    for off in (np.arange(points) + 0.5) / points - 0.5:
        h += chirp(params, FREQS + off * DF)
    h /= np.sqrt(NOISE)
    return number, params, (h / np.linalg.norm(h)).astype(np.complex64)


def match(bank, h, pad=2048):
    """Overlap with all templates, maximised over time shift and phase."""
    spec = np.conj(bank) * h[None, :]
    return np.abs(np.fft.ifft(spec, n=pad, axis=1)).max(1) * pad
