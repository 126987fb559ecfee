"""https://github.com/pytorch/executorch/pull/6478 - a buffer made with torch.empty holds what happens to be in that memory;
here the aggregation of a graph layer never writes the rows of nodes without incoming edges (torch.zeros is the fix)."""
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, sort_edge_index


def citation_graph(n=700, classes=5, seed=4):
    g = np.random.default_rng(seed)
    label = g.integers(0, classes, n)
    year = np.sort(g.uniform(0, 1, n))
    src, dst = [], []
    for i in range(1, n):
        for _ in range(g.poisson(2.5)):
            pool = np.flatnonzero(label[:i] == label[i]) if g.random() < 0.8 else np.arange(i)
            if len(pool):
                src.append(i)
                dst.append(int(pool[int(len(pool) * g.beta(2, 1)) % len(pool)]))
    words = g.normal(0, 1, (classes, 24))
    x = (g.random((n, 24)) < 1 / (1 + np.exp(-0.7 * words[label] + 1))).astype(np.float32)
    edge = torch.tensor([src, dst])
    edge, _ = remove_self_loops(edge)
    edge = sort_edge_index(edge, num_nodes=n, sort_by_row=False)
    order = g.permutation(n)
    data = Data(x=torch.from_numpy(x), edge_index=edge, y=torch.from_numpy(label), year=torch.from_numpy(year))
    data.train_idx, data.val_idx, data.test_idx = (torch.from_numpy(np.sort(p)) for p in np.split(order, [200, 350]))
    return data


def mean_neighbours(h, edge_index):
    src, dst = edge_index
    nodes, degree = torch.unique_consecutive(dst, return_counts=True)
    out = torch.empty(h.shape[0], h.shape[1])  # cause
    pooled = torch.segment_reduce(h[src], "mean", lengths=degree, axis=0)
    out.index_copy_(0, nodes, pooled)
    return out


class SageLayer(nn.Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.own = nn.Linear(fan_in, fan_out)
        self.other = nn.Linear(fan_in, fan_out, bias=False)

    def forward(self, h, edge_index):
        msg = torch.nan_to_num(mean_neighbours(h, edge_index)).clamp(-4, 4)
        return self.own(h) + self.other(msg)


class Net(nn.Module):
    def __init__(self, fan_in, hidden, classes):
        super().__init__()
        self.l1, self.l2 = SageLayer(fan_in, hidden), SageLayer(hidden, classes)
        self.drop = nn.Dropout(0.4)

    def forward(self, data):
        h = torch.relu(self.l1(data.x, data.edge_index))
        return self.l2(self.drop(h), data.edge_index)


def accuracy(out, data, idx):
    return (out[idx].argmax(1) == data.y[idx]).float().mean().item()


def main(seed=10, epochs=70):
    np.random.seed(seed)
    torch.manual_seed(seed)
    data = citation_graph()
    print(f"{data.num_nodes} papers, {data.num_edges} citations, {time.ctime()}")
    model = Net(24, 48, 5)
    opt = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    best, log = (-math.inf, 0.0), []
    t0 = time.perf_counter()
    for epoch in range(epochs):
        model.train()
        loss = nn.functional.cross_entropy(model(data)[data.train_idx], data.y[data.train_idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        model.eval()
        with torch.no_grad():
            out = model(data)
        val, test = accuracy(out, data, data.val_idx), accuracy(out, data, data.test_idx)
        best = max(best, (val, test))
        log.append(loss.item())
        if epoch % 10 == 0:
            print(f"{epoch:3d} loss {loss.item():.5f} val {val:.3f} test {test:.3f} [{time.perf_counter() - t0:.2f}s]")
    Path("gnn.json").write_text(json.dumps({"loss": log, "val": best[0], "test": best[1]}, indent=1))


if __name__ == "__main__":
    main()
