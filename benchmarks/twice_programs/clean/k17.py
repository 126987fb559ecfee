"""Nearest-neighbour benchmark.

Modelled on erikbern/ann-benchmarks (ann_benchmarks/runner.py, results.py, plotting/metrics.py): each algorithm is
built and queried, an HDF5 file per run keeps times, neighbors, distances and the attrs build_time, best_search_time,
candidates; then recall / qps / p50 / p95 are tabulated and exported to CSV. Index memory via psutil.
"""
import argparse
import os
import re
import time

import h5py
import numpy as np
import pandas as pd
import psutil
from sklearn.cluster import MiniBatchKMeans
from sklearn.neighbors import BallTree, KDTree

parser = argparse.ArgumentParser()
parser.add_argument('--dataset', default='random-s-24-euclidean')
parser.add_argument('--count', type=int, default=10)
parser.add_argument('--runs', type=int, default=2)
args = parser.parse_args()


def get_dataset(n=12000, nq=120, d=24):
    rng = np.random.RandomState(42)
    centers = rng.randn(60, d) * 2
    X = (centers[rng.randint(60, size=n)] + rng.randn(n, d)).astype(np.float32)
    Q = (centers[rng.randint(60, size=nq)] + rng.randn(nq, d)).astype(np.float32)
    dist = np.sqrt(((Q[:, None].astype(np.float64) - X[None].astype(np.float64)) ** 2).sum(-1))
    order = np.argsort(dist, axis=1, kind='stable')[:, :100]
    with h5py.File(f'{args.dataset}.hdf5', 'w') as f:
        f.attrs['type'], f.attrs['distance'], f.attrs['dimension'] = 'dense', 'euclidean', d
        f['train'], f['test'], f['neighbors'], f['distances'] = X, Q, order, np.take_along_axis(dist, order, 1)
    return X, Q, np.take_along_axis(dist, order, 1)


class BaseANN:
    def get_memory_usage(self):
        return psutil.Process().memory_info().rss / 1024

    def set_query_arguments(self, *a):
        pass

    def __str__(self):
        return self.name


class BruteForce(BaseANN):
    name = 'BruteForceBLAS()'

    def fit(self, X):
        self.X, self.n = X, (X ** 2).sum(1)

    def query(self, q, k):
        d = self.n - 2 * (self.X @ q)
        i = np.argpartition(d, k)[:k]
        return i[np.argsort(d[i])]


class Tree(BaseANN):
    def __init__(self, cls, leaf):
        self.cls, self.leaf, self.name = cls, leaf, f'{cls.__name__}(leaf_size={leaf})'

    def fit(self, X):
        self.tree = self.cls(X, leaf_size=self.leaf)

    def query(self, q, k):
        return self.tree.query(q[None], k=k)[1][0]


class IVF(BaseANN):
    def __init__(self, n_list):
        self.n_list, self.n_probe = n_list, 1

    def fit(self, X):
        km = MiniBatchKMeans(self.n_list, random_state=0, n_init=1, batch_size=2048, max_iter=15).fit(X)
        self.X, self.c = X, km.cluster_centers_
        self.lists = [np.where(km.labels_ == i)[0] for i in range(self.n_list)]

    def set_query_arguments(self, n_probe):
        self.n_probe, self.name = n_probe, f'IVF(n_list={self.n_list}, n_probe={n_probe})'

    name = 'IVF'

    def query(self, q, k):
        near = np.argsort(((self.c - q) ** 2).sum(1))[:self.n_probe]
        cand = np.concatenate([self.lists[i] for i in near])
        d = ((self.X[cand] - q) ** 2).sum(1)
        return cand[np.argsort(d, kind='stable')[:k]]


class LSH(BaseANN):
    def __init__(self, n_tables, bits):
        self.n_tables, self.bits, self.name = n_tables, bits, f'LSH(tables={n_tables}, bits={bits})'

    def fit(self, X):
        self.X, rng = X, np.random.RandomState(7)
        self.planes = rng.randn(self.n_tables, X.shape[1], self.bits).astype(np.float32)
        self.tables = []
        for p in self.planes:
            codes = ((X @ p) > 0) @ (1 << np.arange(self.bits))
            o = np.argsort(codes, kind='stable')
            self.tables.append((codes[o], o))

    def query(self, q, k):
        cand = [o[np.searchsorted(c, h):np.searchsorted(c, h, 'right')] for p, (c, o) in zip(self.planes, self.tables)
                for h in [int(((q @ p) > 0) @ (1 << np.arange(self.bits)))]]
        cand = np.unique(np.concatenate(cand))
        d = ((self.X[cand] - q) ** 2).sum(1)
        return cand[np.argsort(d, kind='stable')[:k]]


def run(algo, X, Q, k, build_time, index_size, qargs):
    best_search_time, times, found = float('inf'), None, None
    for i in range(args.runs):
        print('Run %d/%d...' % (i + 1, args.runs))
        res, t = [], []
        for q in Q:
            s = time.perf_counter()
            res.append(algo.query(q, k))
            t.append(time.perf_counter() - s)
        total = sum(t) / len(t)
        if times is None or total < best_search_time:
            times = t
        best_search_time, found = min(best_search_time, total), res
    fn = os.path.join('results', args.dataset, str(k), algo.__class__.__name__, re.sub(r'\W+', '_', str(algo)).strip('_') + '.hdf5')
    os.makedirs(os.path.dirname(fn), exist_ok=True)
    with h5py.File(fn, 'w') as f:
        for a, v in {'batch_mode': False, 'best_search_time': best_search_time, 'build_time': build_time, 'index_size': index_size, 'candidates': float(np.mean([len(r) for r in found])),
                     'name': str(algo), 'run_count': args.runs, 'dataset': args.dataset, 'count': k}.items():
            f.attrs[a] = v
        f['times'] = np.array(times)
        nb, ds = np.full((len(Q), k), -1), np.full((len(Q), k), np.inf)
        for j, r in enumerate(found):
            nb[j, :len(r)] = r
            ds[j, :len(r)] = np.sqrt(((X[r].astype(np.float64) - Q[j]) ** 2).sum(1))
        f['neighbors'], f['distances'] = nb, ds
    return fn


def main():
    X, Q, true_d = get_dataset()
    print(f'got a train set of size ({X.shape[0]} * {X.shape[1]})')
    print(f'got {len(Q)} queries')
    files = []
    for algo, qlist in [(BruteForce(), [()]), (Tree(KDTree, 40), [()]), (Tree(BallTree, 20), [()]), (IVF(64), [(1,), (4,), (16,)]), (LSH(8, 12), [()]), (LSH(16, 10), [()])]:
        m0, t0 = algo.get_memory_usage(), time.time()
        algo.fit(X)
        build_time, index_size = time.time() - t0, algo.get_memory_usage() - m0
        print('Built index in', build_time)
        print('Index size: ', index_size)
        for i, qa in enumerate(qlist, 1):
            algo.set_query_arguments(*qa)
            print('Running query argument group %d of %d...' % (i, len(qlist)))
            files.append(run(algo, X, Q, args.count, build_time, index_size, qa))
    rows = []
    for fn in files:
        with h5py.File(fn) as f:
            t = f['distances'][:]
            thr = true_d[:, args.count - 1] + 1e-3
            recall = float((t <= thr[:, None]).sum() / t.size)
            rows.append({'algorithm': f.attrs['name'], 'k-nn': recall, 'epsilon': float((t <= thr[:, None] * 1.01).sum() / t.size), 'qps': 1 / f.attrs['best_search_time'],
                         'p50': np.percentile(f['times'], 50) * 1e3, 'p95': np.percentile(f['times'], 95) * 1e3, 'build': f.attrs['build_time'], 'indexsize': f.attrs['index_size']})
    df = pd.DataFrame(rows)
    df.to_csv('out.csv', index=False)
    for r in rows:
        print('%40s %12.3f %12.3f' % (r['algorithm'], r['k-nn'], r['qps']))
    print(df.round(4).to_string())


if __name__ == '__main__':
    main()
