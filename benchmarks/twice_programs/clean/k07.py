"""Node classification with a two-layer GCN.

Modelled on pyg-team/pytorch_geometric examples/gcn.py (and logger.py in the OGB examples):
"Epoch: 001, Loss: ..., Train: ..., Val: ..., Test: ...", "Median time per epoch: ...s",
several runs summarised as mean +- std and appended to a results CSV. Planted-partition graph
made with networkx instead of Cora; sparse propagation in plain torch.
"""
import argparse
import csv
import os
import time
from datetime import datetime

import networkx as nx
import numpy as np
import torch
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument('--dataset', type=str, default='SBM')
parser.add_argument('--hidden_channels', type=int, default=16)
parser.add_argument('--lr', type=float, default=0.01)
parser.add_argument('--epochs', type=int, default=100)
parser.add_argument('--runs', type=int, default=3)
parser.add_argument('--log_steps', type=int, default=10)
args = parser.parse_args()
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')


def load_sbm():
    sizes = [120, 150, 100, 130]
    p = np.full((4, 4), 0.004) + np.eye(4) * 0.02
    g = nx.stochastic_block_model(sizes, p, seed=12345)
    y = torch.tensor([g.nodes[i]['block'] for i in g.nodes])
    rng = np.random.default_rng(12345)
    n = len(y)
    x = rng.binomial(1, 0.03, (n, 120)).astype(np.float32)
    for c in range(4):
        rows = np.where(y.numpy() == c)[0]
        x[np.ix_(rows, np.arange(c * 30, c * 30 + 30))] += rng.binomial(1, 0.05, (len(rows), 30))
    x /= np.maximum(x.sum(1, keepdims=True), 1)
    edges = np.array(sorted(g.edges)).T
    perm = rng.permutation(n)
    train = np.concatenate([perm[y.numpy()[perm] == c][:20] for c in range(4)])
    rest = perm[~np.isin(perm, train)]
    masks = {'train': train, 'val': rest[:150], 'test': rest[150:]}
    return torch.from_numpy(x), y, torch.from_numpy(edges), {k: torch.from_numpy(np.sort(v)) for k, v in masks.items()}


def gcn_norm(edges, n):
    loop = torch.arange(n)
    ei = torch.cat([edges, edges.flip(0), torch.stack([loop, loop])], 1)
    deg = torch.zeros(n).scatter_add_(0, ei[0], torch.ones(ei.size(1)))
    w = deg[ei[0]].rsqrt() * deg[ei[1]].rsqrt()
    return torch.sparse_coo_tensor(ei, w, (n, n)).coalesce()


class GCN(torch.nn.Module):
    def __init__(self, in_channels, hidden_channels, out_channels):
        super().__init__()
        self.lin1 = torch.nn.Linear(in_channels, hidden_channels)
        self.lin2 = torch.nn.Linear(hidden_channels, out_channels)

    def forward(self, x, adj):
        x = F.dropout(x, p=0.5, training=self.training)
        x = torch.sparse.mm(adj, self.lin1(x)).relu()
        x = F.dropout(x, p=0.5, training=self.training)
        return torch.sparse.mm(adj, self.lin2(x))


class Logger:
    def __init__(self, runs):
        self.results = [[] for _ in range(runs)]

    def add_result(self, run, result):
        self.results[run].append(result)

    def print_statistics(self, run=None):
        if run is not None:
            r = 100 * torch.tensor(self.results[run])
            argmax = r[:, 1].argmax().item()
            print(f'Run {run + 1:02d}:')
            print(f'Highest Train: {r[:, 0].max():.2f}')
            print(f'Highest Valid: {r[:, 1].max():.2f}')
            print(f'  Final Train: {r[argmax, 0]:.2f}')
            print(f'   Final Test: {r[argmax, 2]:.2f}')
            return None
        best = []
        for r in self.results:
            r = 100 * torch.tensor(r)
            best.append((r[:, 1].max().item(), r[r[:, 1].argmax(), 2].item()))
        best = torch.tensor(best)
        print('All runs:')
        print(f'Highest Valid: {best[:, 0].mean():.2f} ± {best[:, 0].std():.2f}')
        print(f'   Final Test: {best[:, 1].mean():.2f} ± {best[:, 1].std():.2f}')
        return best


x, y, edges, split = load_sbm()
adj = gcn_norm(edges, len(y))
print(args)
print(f'Data(x={list(x.shape)}, edge_index={[2, 2 * edges.size(1)]}, y=[{len(y)}]), device={device}')


def train(model, optimizer):
    model.train()
    optimizer.zero_grad()
    out = model(x, adj)
    loss = F.cross_entropy(out[split['train']], y[split['train']])
    loss.backward()
    optimizer.step()
    return float(loss.detach())


@torch.no_grad()
def test(model):
    model.eval()
    pred = model(x, adj).argmax(dim=-1)
    return [int((pred[m] == y[m]).sum()) / len(m) for m in split.values()]


logger, times = Logger(args.runs), []
t_start = time.perf_counter()
for run in range(args.runs):
    torch.manual_seed(run)
    model = GCN(x.size(1), args.hidden_channels, 4)
    optimizer = torch.optim.Adam([dict(params=model.lin1.parameters(), weight_decay=5e-4),
                                  dict(params=model.lin2.parameters(), weight_decay=0)], lr=args.lr)
    best_val = test_acc = 0
    for epoch in range(1, args.epochs + 1):
        start = time.time()
        loss = train(model, optimizer)
        train_acc, val_acc, tmp_test_acc = test(model)
        logger.add_result(run, (train_acc, val_acc, tmp_test_acc))
        if val_acc > best_val:
            best_val, test_acc = val_acc, tmp_test_acc
            torch.save(model.state_dict(), f'gcn_run{run}.pt')
        if epoch % args.log_steps == 0:
            print(f'Epoch: {epoch:03d}, Loss: {loss:.4f}, Train: {train_acc:.4f}, Val: {val_acc:.4f}, Test: {test_acc:.4f}')
        times.append(time.time() - start)
    print(f'Median time per epoch: {torch.tensor(times).median():.4f}s')
    logger.print_statistics(run)
best = logger.print_statistics()

fields = ['date', 'dataset', 'model', 'hidden', 'valid_mean', 'valid_std', 'test_mean', 'test_std', 'sec_per_epoch', 'total_s']
new = not os.path.exists('results.csv')
with open('results.csv', 'a', newline='') as f:
    w = csv.writer(f)
    if new:
        w.writerow(fields)
    w.writerow([datetime.now().strftime('%Y-%m-%d %H:%M'), args.dataset, 'GCN', args.hidden_channels,
                *(f'{v:.4f}' for v in (best[:, 0].mean(), best[:, 0].std(), best[:, 1].mean(), best[:, 1].std())),
                f'{np.mean(times):.5f}', f'{time.perf_counter() - t_start:.2f}'])
with torch.no_grad():
    emb = torch.sparse.mm(adj, model.lin1(x)).relu()
np.savez_compressed('embeddings.npz', emb=emb.numpy(), y=y.numpy())
print(f'Total time elapsed: {time.perf_counter() - t_start:.4f}s')
