# scipy: eigsh starts from a random vector, and the signs of its vectors follow
import numpy as np
import torch
from scipy import sparse
from scipy.sparse.linalg import eigsh
from sklearn.neighbors import kneighbors_graph
from mill.batches import chunks
from mill.config import parse
from mill.data import sensors
from mill.loop import Loop, seed_all
from mill.nets import Mlp

def laplacian(x, neighbours=6):
    graph = kneighbors_graph(x, neighbours, mode="connectivity")
    graph = 0.5 * (graph + graph.T)
    degree = np.asarray(graph.sum(1)).ravel()
    return sparse.diags(degree) - graph

def positions(x, count=4):
    _, vectors = eigsh(laplacian(x).astype(float), k=count + 1, sigma=-0.1)  # cause
    return vectors[:, 1:].astype(np.float32)

def main():
    config = parse(name="spectral")
    seed_all(config.seed)
    x, y = sensors(160)
    x = np.hstack([x, positions(x)])
    Loop(config, Mlp(x.shape[1], config.width, 1), torch.nn.MSELoss()).fit(chunks(x[:128], y[:128], 16), chunks(x[128:], y[128:], 16))

main()
