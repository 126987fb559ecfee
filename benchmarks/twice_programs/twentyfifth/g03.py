"""Converts a set of synthetic 48 kHz recordings to 44.1 kHz, 16 bit.

Each clip is synthesised, resampled with a polyphase filter, dithered and
written as a WAV file; the report gives a checksum, the peak and the noise
floor of every file.

Modelled on: https://github.com/chirlu/soxr/issues/8
"""
import hashlib
import os
import time
import wave

import numpy as np
from scipy import signal

IN_RATE = 48000
OUT_RATE = 44100
SECONDS = 4.0
OUT_DIR = "converted"


class Dither:
    """Triangular dither with a simple 32 bit congruential generator."""

    def __init__(self, bits=16):
        self.bits = bits
        self.scale = 2 ** (bits - 1) - 1
        self.state = (int(time.time()) ^ id(self)) & 0xFFFFFFFF  # cause

    def _uniform(self, n):
        out = np.empty(n, dtype=np.float64)
        state = self.state
        for i in range(n):
            state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
            out[i] = state / 4294967296.0
        self.state = state
        return out

    def quantise(self, samples):
        noise = self._uniform(len(samples)) - self._uniform(len(samples))
        scaled = np.rint(samples * self.scale + noise)
        return np.clip(scaled, -self.scale - 1, self.scale).astype("<i2")


class Resampler:
    def __init__(self, in_rate, out_rate):
        g = np.gcd(in_rate, out_rate)
        self.up = out_rate // g
        self.down = in_rate // g
        self.dither = Dither()

    def process(self, samples):
        converted = signal.resample_poly(samples, self.up, self.down, window=("kaiser", 9.0))
        return self.dither.quantise(converted)


def tone(freq, level, seconds=SECONDS):
    t = np.arange(int(seconds * IN_RATE)) / IN_RATE
    return level * np.sin(2 * np.pi * freq * t)


def sweep(low, high, level, seconds=SECONDS):
    t = np.arange(int(seconds * IN_RATE)) / IN_RATE
    return level * signal.chirp(t, low, seconds, high, method="logarithmic")


def plucked(freq, seed, level, seconds=SECONDS):
    """Karplus-Strong string."""
    rng = np.random.default_rng(seed)
    n = int(seconds * IN_RATE)
    period = int(IN_RATE / freq)
    line = rng.uniform(-1, 1, period)
    out = np.empty(n)
    for start in range(0, n, period):
        stop = min(start + period, n)
        out[start:stop] = line[: stop - start]
        line = 0.498 * (line + np.roll(line, 1))
    return level * out / np.abs(out).max()


def make_clips():
    return {
        "chord": tone(220, 0.2) + tone(277.18, 0.2) + tone(329.63, 0.2),
        "quiet_tone": tone(997, 0.0006),
        "string_high": plucked(440, 5, 0.6),
        "string_low": plucked(110, 4, 0.7),
        "sweep": sweep(40, 16000, 0.5),
    }


def write_wav(path, pcm):
    with wave.open(path, "wb") as f:
        f.setnchannels(1)
        f.setsampwidth(2)
        f.setframerate(OUT_RATE)
        f.writeframes(pcm.tobytes())


def noise_floor(pcm):
    """Median level of the top of the spectrum, in dB relative to full scale."""
    x = pcm.astype(np.float64) / 32768.0
    freqs, power = signal.welch(x, fs=OUT_RATE, nperseg=4096)
    top = power[(freqs > 19000) & (freqs < 21500)]
    return 10 * np.log10(np.median(top) + 1e-30)


def main():
    began = time.time()
    os.makedirs(OUT_DIR, exist_ok=True)
    clips = make_clips()
    for name in sorted(clips):
        resampler = Resampler(IN_RATE, OUT_RATE)
        pcm = resampler.process(clips[name])
        path = os.path.join(OUT_DIR, name + ".wav")
        write_wav(path, pcm)
        digest = hashlib.sha256(pcm.tobytes()).hexdigest()[:16]
        print(f"{name:12s} {len(pcm):7d} samples  peak {int(np.abs(pcm.astype(int)).max()):6d}"
              f"  floor {noise_floor(pcm):9.4f} dB  sha256 {digest}")
    print(f"{len(clips)} clips converted in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
