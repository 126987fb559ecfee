"""Latent features and their aggregation over spatial neighbours."""
import numpy as np
from scipy.spatial import cKDTree
from sklearn.decomposition import PCA


def reduce(expression, n_components, random_state):
    return PCA(n_components=n_components, random_state=random_state).fit_transform(expression)


def aggregate_neighbours(latent, xy, n_layers, k):
    """Appends the mean over growing neighbourhoods to the features of a cell."""
    tree = cKDTree(xy)
    blocks = [latent]
    for layer in range(1, n_layers + 1):
        _, index = tree.query(xy, k=1 + k * layer)
        blocks.append(latent[index[:, 1 + k * (layer - 1):]].mean(axis=1))
    features = np.hstack(blocks)
    return (features - features.mean(axis=0)) / features.std(axis=0)
