"""A small cooperative skirmish game."""
from .env import SkirmishEnv
from .learner import TeamLearner
from .maps import load_map

__all__ = ["SkirmishEnv", "TeamLearner", "load_map"]
