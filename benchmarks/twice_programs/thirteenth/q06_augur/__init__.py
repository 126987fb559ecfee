"""Small toolkit for subsampling genomes by metadata."""
from q06_augur.metadata import Metadata, simulate_metadata
from q06_augur.subsample import Group, PriorityQueue, SubsampleOptions, Subsampler
from q06_augur.tree import mean_pairwise_distance, upgma_height

__all__ = [
    "Metadata",
    "simulate_metadata",
    "Group",
    "PriorityQueue",
    "SubsampleOptions",
    "Subsampler",
    "mean_pairwise_distance",
    "upgma_height",
]
