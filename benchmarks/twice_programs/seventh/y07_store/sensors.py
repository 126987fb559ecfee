import numpy as np
import pyarrow as pa

STATIONS = ("north", "south", "harbour")


def simulate_day(day, seed):
    """One day of readings as an Arrow table, the same for the same day and seed."""
    rng = np.random.default_rng([seed, day])
    hours = np.arange(24).repeat(6)
    season = np.sin(2 * np.pi * day / 30)
    temp = 12 + 6 * season + 5 * np.sin(2 * np.pi * (hours - 9) / 24) + rng.normal(0, 0.8, len(hours))
    wind = rng.gamma(2.0, 2.0, len(hours))
    load = 80 - 1.5 * temp + 0.8 * wind + 10 * ((hours > 7) & (hours < 20)) + rng.normal(0, 2.0, len(hours))
    return pa.table({
        "day": np.full(len(hours), day),
        "hour": hours,
        "station": [STATIONS[i] for i in rng.integers(0, len(STATIONS), len(hours))],
        "temp": temp,
        "wind": wind,
        "load": load,
    })
