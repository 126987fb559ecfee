"""Defaults with key=value overrides."""
from dataclasses import dataclass, fields


@dataclass
class Config:
    seed: int = 1
    dataloader_seed: int = 17
    batch_size: int = 32
    epochs: int = 5
    learning_rate: float = 2e-3
    weight_decay: float = 1e-4
    num_workers: int = 0


def load_config(overrides=()):
    cfg = Config()
    types = {f.name: type(getattr(cfg, f.name)) for f in fields(cfg)}
    for item in overrides:
        key, value = item.split("=", 1)
        if key not in types:
            raise KeyError(f"unknown option {key}")
        setattr(cfg, key, types[key](value))
    return cfg
