"""Tune the thresholds of an overlapped speech detection pipeline on a
development set and evaluate the tuned pipeline on a test set.

Modelled on: https://github.com/pyannote/pyannote-pipeline/issues/43
"""
import json
import logging
from pathlib import Path

import numpy as np
import optuna

SEED = 20
FRAME = 0.02
N_TRIALS = 100
logger = logging.getLogger("osd")


def make_recording(rng, n_frames=6000):
    """Frame-wise reference labels and the noisy scores of a segmentation net."""
    reference = np.zeros(n_frames, dtype=bool)
    t = 0
    while t < n_frames:
        t += int(rng.exponential(90)) + 10
        length = int(rng.gamma(3.0, 15.0)) + 5
        reference[t:t + length] = True
        t += length
    logits = np.where(reference, 1.1, -1.2) + rng.normal(0, 1.0, n_frames)
    kernel = np.hanning(9) / np.hanning(9).sum()
    scores = 1 / (1 + np.exp(-1.8 * np.convolve(logits, kernel, mode="same")))
    return {"reference": reference, "scores": scores}


def make_protocol(seed):
    rng = np.random.default_rng(seed)
    return {
        "development": [make_recording(rng) for _ in range(8)],
        "test": [make_recording(rng) for _ in range(6)],
    }


class OverlapDetection:
    """Hysteresis thresholding followed by gap filling and pruning."""

    search_space = {
        "onset": (0.0, 1.0),
        "offset": (0.0, 1.0),
        "min_duration_on": (0.0, 1.0),
        "min_duration_off": (0.0, 1.0),
    }

    def __init__(self, **params):
        self.params = params

    @staticmethod
    def _runs(active):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], active.astype(int), [0]])))
        return list(zip(edges[::2], edges[1::2]))

    def __call__(self, scores):
        p = self.params
        active = np.zeros(len(scores), dtype=bool)
        state = False
        for i, s in enumerate(scores):
            state = s > (p["offset"] if state else p["onset"])
            active[i] = state
        for start, end in self._runs(~active):
            if (end - start) * FRAME < p["min_duration_off"] and 0 < start and end < len(active):
                active[start:end] = True
        for start, end in self._runs(active):
            if (end - start) * FRAME < p["min_duration_on"]:
                active[start:end] = False
        return active


def f_measure(pipeline, recordings):
    tp = fp = fn = 0
    for r in recordings:
        hyp = pipeline(r["scores"])
        tp += int((hyp & r["reference"]).sum())
        fp += int((hyp & ~r["reference"]).sum())
        fn += int((~hyp & r["reference"]).sum())
    return 2 * tp / max(2 * tp + fp + fn, 1)


class Optimizer:
    def __init__(self, pipeline_class, sampler="TPESampler", study_name="osd"):
        self.pipeline_class = pipeline_class
        if isinstance(sampler, str):
            self.sampler = getattr(optuna.samplers, sampler)()  # cause
        else:
            self.sampler = sampler
        self.study = optuna.create_study(
            study_name=study_name, direction="maximize", sampler=self.sampler)

    def objective(self, recordings):
        def run(trial):
            params = {name: trial.suggest_float(name, low, high)
                      for name, (low, high) in self.pipeline_class.search_space.items()}
            return f_measure(self.pipeline_class(**params), recordings)
        return run

    def tune(self, recordings, n_iterations):
        self.study.optimize(self.objective(recordings), n_trials=n_iterations)
        return {"loss": self.study.best_value, "params": self.study.best_params}


def write_trials(study, path):
    names = sorted(OverlapDetection.search_space)
    with open(path, "w") as handle:
        handle.write("number,value," + ",".join(names) + "\n")
        for t in study.trials:
            handle.write(f"{t.number},{t.value:.6f}," + ",".join(f"{t.params[n]:.6f}" for n in names) + "\n")


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(message)s")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    np.random.seed(SEED)
    out = Path("exp")
    out.mkdir(exist_ok=True)

    protocol = make_protocol(SEED)
    default = OverlapDetection(onset=0.5, offset=0.5, min_duration_on=0.0, min_duration_off=0.0)
    before = f_measure(default, protocol["test"])
    logger.info("baseline on test: %.4f", before)

    optimizer = Optimizer(OverlapDetection)
    best = optimizer.tune(protocol["development"], N_TRIALS)
    after = f_measure(OverlapDetection(**best["params"]), protocol["test"])
    write_trials(optimizer.study, out / "trials.csv")

    result = {
        "baseline": round(before, 5),
        "development": round(best["loss"], 5),
        "test": round(after, 5),
        "params": {k: round(v, 5) for k, v in sorted(best["params"].items())},
    }
    (out / "params.json").write_text(json.dumps(result, indent=2))
    print(f"development F1 {result['development']:.4f}")
    print(f"test F1        {result['test']:.4f}")
    for name, value in result["params"].items():
        print(f"  {name:18s} {value:.3f}")


if __name__ == "__main__":
    main()
