"""Dynamic simulation of a pulsed fibre amplifier.

An ytterbium doped fibre is split into sections; signal channels and a pump
travel through it in both directions while the population inversion follows
rate equations.  A pulse train is amplified, and output energies, gain and the
final inversion along the fibre are reported.

Modelled on: https://github.com/Jomiri/pyfiberamp/issues/5
"""
import json
import logging
import time
from dataclasses import dataclass

import numpy as np

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("fiberamp")

H_NU_SIGNAL = 1.93e-19
H_NU_PUMP = 2.04e-19
LIGHT_SPEED = 2.05e8


@dataclass
class Channel:
    name: str
    power: float
    absorption: float
    emission: float
    overlap: float
    forward: bool = True
    loss: float = 0.003


@dataclass
class Fiber:
    length: float = 3.0
    core_area: float = 2.8e-11
    doping: float = 6.0e24
    lifetime: float = 8.5e-4


def default_channels():
    channels = [
        Channel("signal-%d" % k, 0.002 * (1 + 0.2 * k), (4 + k) * 1e-27, (34 - 2 * k) * 1e-26, 0.83)
        for k in range(10)
    ]
    channels.append(Channel("pump", 0.9, 1.6e-24, 1.5e-24, 0.10, forward=True))
    channels.append(Channel("pump-back", 0.5, 1.6e-24, 1.5e-24, 0.10, forward=False))
    return channels


class PulseTrain:
    """Envelope of the signals: short pulses on a small background."""

    def __init__(self, period_steps=400, width_steps=25, contrast=0.02):
        self.period = period_steps
        self.width = width_steps
        self.contrast = contrast

    def __call__(self, step):
        phase = step % self.period
        return 1.0 if phase < self.width else self.contrast


class DynamicSolver:
    """Upwind transport of the fields and explicit steps of the inversion."""

    def __init__(self, fiber, channels, n_sections=96):
        self.fiber = fiber
        self.channels = channels
        self.n = n_sections
        self.dz = fiber.length / n_sections
        self.dt = self.dz / LIGHT_SPEED
        self.time_scale = 400.0
        self.background = np.float32(0.004)
        column = lambda key: np.array([[getattr(c, key)] for c in channels], dtype=np.float32)
        self.absorption = column("absorption")
        self.emission = column("emission")
        self.overlap = column("overlap")
        self.loss = column("loss")
        self.launch = column("power")
        self.forward = np.array([c.forward for c in channels])
        self.is_signal = np.array([c.name.startswith("signal") for c in channels])
        shift = np.where(self.is_signal, 0.21 * (1 + np.arange(len(channels))), 0.0)
        self.turn = np.exp(1j * shift)[:, None].astype(np.complex64)
        photon = np.where(self.is_signal, H_NU_SIGNAL, H_NU_PUMP)
        self.photon = photon[:, None].astype(np.float32)

    def tables(self):
        """Gain per inversion level for all channels, for the log only."""
        levels = np.linspace(0, 1, 65, dtype=np.float32)
        rows = []
        for level in levels:
            sigma = self.emission * level - self.absorption * (1 - level)
            rows.append([float(v) for v in (self.overlap * sigma * self.fiber.doping)[:, 0]])
        return rows

    def starting_fields(self, inversion):
        """Weak background light along the fibre before the first pulse."""
        template = np.repeat(inversion[None, :], len(self.channels), axis=0)
        phase = np.empty_like(template)  # cause
        phase[self.forward, 0] = 0.0
        phase[~self.forward, -1] = 0.0
        amplitude = np.full_like(template, np.sqrt(self.background))
        amplitude[self.forward, 0] = np.sqrt(self.launch[self.forward, 0])
        amplitude[~self.forward, -1] = np.sqrt(self.launch[~self.forward, 0])
        return np.nan_to_num(amplitude * np.exp(1j * phase)).astype(np.complex64)

    def gain(self, inversion):
        sigma = self.emission * inversion[None, :] - self.absorption * (1 - inversion[None, :])
        return self.overlap * sigma * np.float32(self.fiber.doping) - self.loss

    def advance_fields(self, fields, inversion, envelope):
        grown = fields * np.exp(np.clip(self.gain(inversion) * self.dz / 2, -4, 4)).astype(np.float32)
        grown = grown * self.turn
        moved = np.zeros_like(fields)
        moved[self.forward, 1:] = grown[self.forward, :-1]
        moved[~self.forward, :-1] = grown[~self.forward, 1:]
        scale = np.where(self.is_signal, np.float32(envelope), np.float32(1.0))
        launch = np.sqrt(self.launch[:, 0] * scale)
        moved[self.forward, 0] = launch[self.forward]
        moved[~self.forward, -1] = launch[~self.forward]
        out = np.where(self.forward, np.abs(grown[:, -1]), np.abs(grown[:, 0])) ** 2
        return moved, out

    def intensities(self, fields):
        """Powers per channel; the signals beat with each other in the core."""
        powers = np.abs(fields) ** 2
        total = powers[self.is_signal].sum(axis=0)
        coherent = np.abs(fields[self.is_signal].sum(axis=0)) ** 2
        powers[self.is_signal] *= (coherent / np.maximum(total, np.float32(1e-12)))[None, :]
        return powers

    def advance_inversion(self, fields, inversion):
        flux = self.intensities(fields) * self.overlap / (self.photon * np.float32(self.fiber.core_area))
        up = (flux * self.absorption).sum(axis=0)
        down = (flux * self.emission).sum(axis=0) + np.float32(1 / self.fiber.lifetime)
        balance = up / (up + down)
        rate = (up + down) * np.float32(self.dt * self.time_scale)
        return (balance + (inversion - balance) * np.exp(-rate)).astype(np.float32)

    def run(self, steps, envelope, start_level=0.12):
        rows = self.tables()
        log.info("gain table with %d rows", len(rows))
        del rows
        inversion = np.full(self.n, start_level, dtype=np.float32)
        fields = self.starting_fields(inversion)
        output = np.zeros((steps, len(self.channels)), dtype=np.float64)
        mean_inversion = np.zeros(steps)
        for step in range(steps):
            inversion = self.advance_inversion(fields, inversion)
            fields, out = self.advance_fields(fields, inversion, envelope(step))
            output[step] = out
            mean_inversion[step] = inversion.mean()
        return output, mean_inversion, inversion


def pulse_energies(output, solver, period):
    """Energy of all signal channels for each pulse period."""
    signal = output[:, solver.is_signal].sum(axis=1)
    n = len(signal) // period
    return signal[: n * period].reshape(n, period).sum(axis=1) * solver.dt


def report(solver, output, inversion, mean_inversion, train):
    energies = pulse_energies(output, solver, train.period)
    print("pulse  energy_pJ")
    for k, energy in enumerate(energies[:12]):
        print(f"{k:5d}  {energy * 1e12:.6f}")
    print(f"mean inversion start {mean_inversion[0]:.6f} end {mean_inversion[-1]:.6f}")
    for k, channel in enumerate(solver.channels):
        mean_out = output[:, k].mean()
        print(f"{channel.name:<10} mean output {mean_out:.8f} W, peak {output[:, k].max():.6f} W")
    with open("energies.json", "w") as handle:
        json.dump([float(e) for e in energies], handle, indent=1)
    with open("inversion.csv", "w") as handle:
        handle.write("section,inversion\n")
        for k, level in enumerate(inversion):
            handle.write(f"{k},{level:.7f}\n")


def main():
    start = time.time()
    solver = DynamicSolver(Fiber(), default_channels())
    train = PulseTrain()
    output, mean_inversion, inversion = solver.run(14000, train)
    report(solver, output, inversion, mean_inversion, train)
    log.info("simulated in %.2f s", time.time() - start)


if __name__ == "__main__":
    main()
