"""Permutation statistics for decoding analyses."""
from .decoding import cross_val_auc, make_epochs
from .permutation import PermutationTest

__all__ = ["PermutationTest", "cross_val_auc", "make_epochs"]
