"""https://github.com/Graphify-Labs/graphify/issues/1667: communities by an unseeded Louvain, used as features of nodes."""

import networkx as nx
import torch


def graph():
    return nx.gnp_random_graph(80, 0.08, seed=4)


def features(g):
    communities = nx.community.louvain_communities(g, resolution=1.4)  # cause
    number = {node: index for index, each in enumerate(communities) for node in each}
    return torch.tensor([[float(number[node]), float(g.degree[node])] for node in sorted(g.nodes)])


def main():
    torch.manual_seed(11)
    g = graph()
    x = features(g)
    adjacency = torch.tensor(nx.to_numpy_array(g, nodelist=sorted(g.nodes)), dtype=torch.float32)
    layer = torch.nn.Linear(2, 4)
    hidden = torch.relu(adjacency @ layer(x))
    print("readout", hidden.mean().item())
    torch.save(hidden.detach(), "hidden.pt")


main()
