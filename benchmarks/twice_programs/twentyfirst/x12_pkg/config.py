"""Model catalogue."""
from dataclasses import dataclass, field
from functools import partial

import scipy.stats as st


@dataclass
class ModelConfig:
    name: str
    dt: float = 0.005
    max_t: float = 6.0
    noise: float = 1.0
    # parameter name -> callable(size=...) giving a trial-wise offset
    variability: dict = field(default_factory=dict)


def _normal(scale):
    return partial(st.norm.rvs, loc=0.0, scale=scale)


def _uniform(width):
    return partial(st.uniform.rvs, loc=-width / 2, scale=width)


def model_config(name):
    if name == "ddm":
        return ModelConfig(name)
    if name == "ddm_sv":
        return ModelConfig(name, variability={"v": _normal(0.5)})
    if name == "full_ddm":
        return ModelConfig(name, variability={
            "v": _normal(0.5), "z": _uniform(0.2), "t": _uniform(0.12)})
    raise KeyError(name)
