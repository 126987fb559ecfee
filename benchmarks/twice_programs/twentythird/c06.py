"""Scores simulated chromatograms against an experiment.

A column is modelled as a chain of well-mixed cells with a Langmuir isotherm.
For a grid of candidate parameters the simulated outlet signal is compared with
a measured one: the time offset between both is found by maximising the Pearson
correlation of splines, then shape, height and offset scores are combined.
The best candidates are written to a table.

Modelled on: https://github.com/cadet/CADET-Match/issues/4
"""
import itertools
import json
import sys
from dataclasses import asdict, dataclass
from typing import Dict, List, Tuple

import numpy as np
from scipy.interpolate import InterpolatedUnivariateSpline
from scipy.optimize import differential_evolution

CELLS = 28
T_END = 420.0
N_TIMES = 421


@dataclass(frozen=True)
class Column:
    velocity: float
    dispersion: float
    henry: float
    capacity: float


@dataclass
class Score:
    column: Column
    similarity: float
    offset: float
    height: float
    time_score: float
    total: float


def simulate(column: Column, pulse: float = 30.0, substeps: int = 4) -> Tuple[np.ndarray, np.ndarray]:
    """Explicit integration of the cell model; returns times and outlet signal."""
    times = np.linspace(0.0, T_END, N_TIMES)
    dt = (times[1] - times[0]) / substeps
    c = np.zeros(CELLS)
    outlet = np.zeros(N_TIMES)
    rate = column.velocity * CELLS / 100.0
    spread = column.dispersion * (CELLS / 100.0) ** 2
    for i in range(1, N_TIMES):
        for _ in range(substeps):
            feed = 1.0 if times[i] <= pulse else 0.0
            upstream = np.concatenate([[feed], c[:-1]])
            downstream = np.concatenate([c[1:], [c[-1]]])
            flux = rate * (upstream - c) + spread * (upstream - 2 * c + downstream)
            retardation = 1.0 + column.henry / (1.0 + c / column.capacity) ** 2
            c = c + dt * flux / retardation
        outlet[i] = c[-1]
    return times, outlet


def measured_signal(seed: int) -> Tuple[np.ndarray, np.ndarray]:
    """Experiment: a known column, a detector delay and noise."""
    rng = np.random.default_rng(seed)
    times, signal = simulate(Column(velocity=1.05, dispersion=2.2, henry=1.6, capacity=0.9))
    delayed = np.interp(times - 7.3, times, signal, left=0.0)
    return times, delayed + rng.normal(0, 0.004, size=times.size)


def pearson(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a - a.mean(), b - b.mean()
    norm = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / norm) if norm > 0 else 0.0


def pearson_spline(times: np.ndarray, sim: np.ndarray, exp: np.ndarray) -> Tuple[float, float]:
    """Largest correlation over all time offsets, and that offset."""
    spline = InterpolatedUnivariateSpline(times, sim, ext=1)

    def goal(offset):
        return -pearson(spline(times - offset[0]), exp)

    result = differential_evolution(goal, bounds=[(-120.0, 120.0)], popsize=6, maxiter=9, polish=False)  # cause
    return float(-result.fun), float(result.x[0])


def height_score(sim: np.ndarray, exp: np.ndarray) -> float:
    return float(np.exp(-abs(np.log((sim.max() + 1e-9) / exp.max()))))


def score_candidate(column: Column, times: np.ndarray, exp: np.ndarray) -> Score:
    _, sim = simulate(column)
    similarity, offset = pearson_spline(times, sim, exp)
    height = height_score(sim, exp)
    time_score = max(0.0, 1.0 - abs(offset) / T_END)
    total = float((max(similarity, 0.0) * height * time_score) ** (1.0 / 3.0))
    return Score(column, similarity, offset, height, time_score, total)


def candidates() -> List[Column]:
    velocities = (0.95, 1.05, 1.15)
    dispersions = (1.5, 2.2)
    henrys = (1.2, 1.6, 2.0)
    capacities = (0.7, 0.9)
    return [Column(*values) for values in itertools.product(velocities, dispersions, henrys, capacities)]


def pareto_front(scores: List[Score]) -> List[Score]:
    """Candidates which no other one beats in all of the metrics."""
    front = []
    for s in scores:
        mine = (s.similarity, s.height, s.time_score)
        beaten = any(
            all(o >= m for o, m in zip((t.similarity, t.height, t.time_score), mine)) and t.total > s.total
            for t in scores)
        if not beaten:
            front.append(s)
    return front


def to_row(score: Score) -> Dict[str, float]:
    row = asdict(score.column)
    row.update(similarity=score.similarity, offset=score.offset, height=score.height, total=score.total)
    return row


def write_results(scores: List[Score], front: List[Score]) -> None:
    with open("scores.csv", "w") as out:
        names = list(to_row(scores[0]))
        out.write(",".join(names) + "\n")
        for score in scores:
            out.write(",".join(f"{v:.6f}" for v in to_row(score).values()) + "\n")
    with open("pareto.json", "w") as out:
        json.dump([to_row(s) for s in front], out, indent=1)


def main() -> int:
    times, exp = measured_signal(seed=4)
    print(f"experiment: peak {exp.max():.4f} at {times[exp.argmax()]:.0f} s")
    columns = candidates()
    scores = []
    for i, column in enumerate(columns):
        scores.append(score_candidate(column, times, exp))
        if (i + 1) % 12 == 0:
            print(f"scored {i + 1}/{len(columns)}", file=sys.stderr)
    scores.sort(key=lambda s: -s.total)
    front = pareto_front(scores)
    write_results(scores, front)
    print(f"pareto front has {len(front)} of {len(scores)} candidates")
    for score in scores[:5]:
        c = score.column
        print(f"v={c.velocity:.2f} D={c.dispersion:.1f} H={c.henry:.1f} q={c.capacity:.1f} "
              f"offset={score.offset:+.4f} pearson={score.similarity:.6f} total={score.total:.6f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
