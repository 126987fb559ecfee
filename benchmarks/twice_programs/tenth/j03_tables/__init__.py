from .table import Table
from .util import bootstrap_medians, percentile, proportions_from_counts, sample_proportions

__all__ = ["Table", "bootstrap_medians", "percentile", "proportions_from_counts",
           "sample_proportions"]
