# scanpy#2480 and others: a randomized decomposition without random_state
import numpy as np
from sklearn.decomposition import TruncatedSVD
from lab.log import Run

def embed(matrix, size):
    return TruncatedSVD(size, n_iter=1).fit_transform(matrix)  # cause

run = Run("embed")
matrix = np.random.RandomState(0).rand(60, 40)
points = embed(matrix, 3)
np.save("points.npy", points)
run.finish(sum=float(np.abs(points).sum()))
