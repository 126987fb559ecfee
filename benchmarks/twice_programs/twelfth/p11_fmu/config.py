"""Reader of the design input file."""
import json
from dataclasses import dataclass
from pathlib import Path


@dataclass
class DesignInput:
    repeats: int
    rms_seeds: int
    distribution_seed: object
    variables: dict
    correlations: list


def read(path):
    raw = json.loads(Path(path).read_text())
    general = raw["general_input"]
    return DesignInput(
        repeats=general["repeats"],
        rms_seeds=general.get("rms_seeds", 1000),
        distribution_seed=general.get("distribution_seed"),
        variables=raw["variables"],
        correlations=raw.get("correlations", []),
    )
