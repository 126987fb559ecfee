from .game import Match
from .players import GreedyPlayer, RandomPlayer, ValuePlayer

__all__ = ["Match", "GreedyPlayer", "RandomPlayer", "ValuePlayer"]
