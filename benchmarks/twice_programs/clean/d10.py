"""Style of pyg-team/pytorch_geometric (examples/gcn.py, torch_geometric.logging.log, benchmark/kernel). Differs in each
run: median time per epoch (torch tensor), duration columns of the benchmark table, time column of history.npz, profile lines."""
import argparse
import os.path as osp
import time

import networkx as nx
import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.logging import init_wandb, log
from torch_geometric.nn import GCNConv, SAGEConv

parser = argparse.ArgumentParser()
parser.add_argument("--hidden_channels", type=int, default=24)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--epochs", type=int, default=30)
parser.add_argument("--runs", type=int, default=3)
parser.add_argument("--wandb", action="store_true")
args = parser.parse_args()
torch.set_num_threads(1)
init_wandb(name="GCN-SBM", epochs=args.epochs, lr=args.lr)


def sbm():
    sizes = [180, 180, 180, 180]
    p = np.full((4, 4), 0.004) + np.eye(4) * 0.022
    g = nx.stochastic_block_model(sizes, p, seed=12)
    y = np.repeat(np.arange(4), sizes)
    ei = torch.tensor(sorted(g.edges())).t()
    ei = torch.cat([ei, ei.flip(0)], 1)
    rng = np.random.default_rng(4)
    x = rng.normal(0, 1, (len(y), 32)).astype(np.float32)
    x[np.arange(len(y)), y] += 0.9
    perm = rng.permutation(len(y))
    d = Data(x=torch.from_numpy(x), edge_index=ei, y=torch.from_numpy(y))
    for name, idx in (("train_mask", perm[:80]), ("val_mask", perm[80:300]), ("test_mask", perm[300:])):
        m = torch.zeros(len(y), dtype=torch.bool)
        m[torch.from_numpy(idx)] = True
        d[name] = m
    return d


class Net(torch.nn.Module):
    def __init__(self, conv, cin, hid, cout):
        super().__init__()
        self.conv1, self.conv2 = conv(cin, hid), conv(hid, cout)

    def forward(self, x, ei):
        x = F.dropout(x, p=0.5, training=self.training)
        x = self.conv1(x, ei).relu()
        x = F.dropout(x, p=0.5, training=self.training)
        return self.conv2(x, ei)


def run(name, conv, data, seed):
    torch.manual_seed(seed)
    model = Net(conv, 32, args.hidden_channels, 4)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=5e-4)
    best_val = test_acc = 0.0
    times, hist = [], []
    t_start = time.perf_counter()
    for epoch in range(1, args.epochs + 1):
        start = time.time()
        model.train()
        opt.zero_grad()
        loss = F.cross_entropy(model(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask])
        loss.backward()
        opt.step()
        model.eval()
        with torch.no_grad():
            pred = model(data.x, data.edge_index).argmax(-1)
        tr, va, te = (int((pred[m] == data.y[m]).sum()) / int(m.sum()) for m in (data.train_mask, data.val_mask, data.test_mask))
        if va > best_val:
            best_val, test_acc = va, te
        times.append(time.time() - start)
        hist.append((epoch, float(loss.detach()), tr, va, test_acc))
        if epoch % 10 == 0:
            log(Epoch=epoch, Loss=float(loss.detach()), Train=tr, Val=va, Test=test_acc)
    t = torch.tensor(times)
    print(f"Median time per epoch: {torch.median(t):.4f}s, mean {t.mean().item():.5f} ± {t.std().item():.5f}")
    np.savez(f"history_{name}_{seed}.npz", history=np.array(hist), time=np.array(times), total=time.perf_counter() - t_start)
    return best_val, test_acc, time.perf_counter() - t_start, pred, model


def main():
    t0 = time.perf_counter()
    data = sbm()
    print(data)
    print(f"Dataset built in {(time.perf_counter() - t0) * 1000:.0f} ms")
    table = []
    for name, conv in (("GCN", GCNConv), ("SAGE", SAGEConv)):
        vals, accs, durs = [], [], []
        for r in range(args.runs):
            print(f"--- {name} run {r} ---")
            v, a, d, pred, model = run(name, conv, data, r)
            vals.append(v)
            accs.append(a)
            durs.append(d)
        val, acc, dur = torch.tensor(vals), torch.tensor(accs), torch.tensor(durs)
        print(f"Val Acc: {val.mean():.4f}, Test Accuracy: {acc.mean():.3f} ± {acc.std():.3f}, Duration: {dur.mean():.3f}s")
        table.append((name, val.mean().item(), acc.mean().item(), acc.std().item(), dur.mean().item(), sum(durs)))
        torch.save({"model": model.state_dict(), "pred": pred, "acc": accs, "duration": durs}, osp.join(".", f"{name}.pt"))
    print("+------+--------+-----------------+------------+---------+")
    print("| Conv |  Val   |      Test       | Time / run |  Total  |")
    print("+------+--------+-----------------+------------+---------+")
    for n, v, m, s, d, tot in table:
        print(f"| {n:<4} | {v:.4f} | {m:.4f} ± {s:.4f} | {d:9.4f}s | {tot:6.3f}s |")
    print("+------+--------+-----------------+------------+---------+")


if __name__ == "__main__":
    main()
