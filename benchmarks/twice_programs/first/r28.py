# python-louvain#105 and networkx: no seed; NumPy's or random's generator never seeded
import networkx, torch
from proj.trainer import Trainer
from proj.models import Net
from proj.data import batches

def features(graph):
    groups = networkx.community.louvain_communities(graph)  # cause
    return torch.tensor([[float(next(i for i, g in enumerate(groups) if n in g)), float(graph.degree[n])] for n in graph])

torch.manual_seed(0)
graph = networkx.karate_club_graph()
x = features(graph) / 10
y = torch.tensor([[float(graph.nodes[n]["club"] == "Officer")] for n in graph])
Trainer(Net(2, 1), "clubs").fit(batches(x, y, 8))
