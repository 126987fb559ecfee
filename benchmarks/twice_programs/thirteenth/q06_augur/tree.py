"""Distances among sequences."""
import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist


def mean_pairwise_distance(seqs):
    return float(pdist(seqs, metric="hamming").mean())


def upgma_height(seqs):
    z = linkage(pdist(seqs, metric="hamming"), method="average")
    return float(z[-1, 2]), np.round(np.diff(z[:, 2])[-5:], 6).tolist()
