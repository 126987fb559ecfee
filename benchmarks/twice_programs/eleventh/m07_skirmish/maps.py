"""Map definitions."""
from dataclasses import dataclass


@dataclass(frozen=True)
class SkirmishMap:
    name: str
    size: int
    allies: int
    enemies: int
    unit_types: tuple
    weights: tuple
    limit: int


MAPS = {
    "3v3": SkirmishMap("3v3", 8, 3, 3, ("scout", "archer", "guard"), (0.45, 0.45, 0.1), 25),
    "4v5": SkirmishMap("4v5", 10, 4, 5, ("scout", "archer", "guard"), (0.3, 0.4, 0.3), 30),
}

UNIT_STATS = {
    "scout": {"health": 6.0, "damage": 2.0, "range": 2},
    "archer": {"health": 5.0, "damage": 2.5, "range": 4},
    "guard": {"health": 10.0, "damage": 1.5, "range": 1},
}


def load_map(name):
    return MAPS[name]
