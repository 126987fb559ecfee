from .engine import GeneticSelector
from .operators import crossover, mutate, random_mask, tournament

__all__ = ["GeneticSelector", "crossover", "mutate", "random_mask", "tournament"]
