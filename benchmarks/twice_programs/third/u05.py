# scatseisnet#25: k-means has its random_state, FastICA before it does not
import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import FastICA
from sklearn.preprocessing import StandardScaler
from mill.config import parse
from mill.data import sensors
from mill.journal import Journal

class Features:
    def __init__(self, components=4):
        self.scale, self.model = StandardScaler(), FastICA(n_components=components, whiten="unit-variance", max_iter=500)

    def __call__(self, x):
        x = self.scale.fit_transform(x)
        return self.model.fit_transform(x)  # cause

def clusters(features, seed):
    model = KMeans(5, random_state=seed, n_init=3).fit(features)
    return model.labels_, model.inertia_

def main():
    config = parse(name="seismic", seed=4)
    journal = Journal(config)
    x, _ = sensors(columns=6)
    labels, inertia = clusters(Features()(x), config.seed)
    sizes = np.bincount(labels)
    journal.row(sizes="/".join(map(str, sizes)))
    np.savez(config.path("clusters.npz"), labels=labels, sizes=sizes)
    journal.close(inertia=float(inertia))

main()
