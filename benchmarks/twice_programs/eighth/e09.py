"""https://github.com/HKUDS/LightRAG/pull/3512 : extract_entities loops over the `done` set of asyncio.wait(); tasks hash by
address, so chunk results come in another order in each process. The fix loops over the list of tasks."""
import asyncio
import json
import logging
import math
import time
from collections import OrderedDict

import numpy as np
import torch

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("graph")

TOPICS = ["river", "bridge", "mayor", "harbour", "market", "museum", "tower", "garden", "station", "library", "castle", "mill"]
VERBS = ["near", "owns", "visits", "builds", "crosses", "paints"]


def make_document(seed=5, sentences=2400):
    rs = np.random.RandomState(seed)
    p = np.arange(1, len(TOPICS) + 1, dtype=float) ** -0.8
    p /= p.sum()
    out = []
    for _ in range(sentences):
        a, b = rs.choice(len(TOPICS), size=2, replace=False, p=p)
        out.append(f"{TOPICS[a]} {rs.choice(VERBS)} {TOPICS[b]} {rs.randint(100)}")
    return out


def chunked(sentences, size):
    return [sentences[i:i + size] for i in range(0, len(sentences), size)]


class FakeLLM:
    """Stands for the extraction model: reads the triples from the text."""

    def __init__(self, concurrency=8):
        self.gate = asyncio.Semaphore(concurrency)
        self.calls = 0

    async def extract(self, chunk):
        async with self.gate:
            self.calls += 1
            await asyncio.sleep(0)
            triples = []
            for s in chunk:
                a, verb, b, weight = s.split()
                triples.append((a, verb, b, float(weight) / 100))
            return triples


async def extract_entities(llm, chunks):
    tasks = [asyncio.create_task(llm.extract(c)) for c in chunks]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)  # cause
    for p in pending:
        p.cancel()
    chunk_results = []
    for task in done:  # cause
        if task.exception():
            raise task.exception()
        chunk_results.append(task.result())
    return chunk_results


class Graph:
    def __init__(self):
        self.nodes = OrderedDict()
        self.edges = OrderedDict()
        self.descriptions = {}

    def merge(self, triples, keep=40, decay=0.97):
        for a, verb, b, w in triples:
            for n in (a, b):
                self.nodes.setdefault(n, len(self.nodes))
                d = self.descriptions.setdefault(n, [])
                if len(d) < keep:
                    d.append(verb)
            key = (a, b)
            self.edges[key] = self.edges.get(key, 0.0) * decay + w

    def matrix(self):
        m = np.zeros((len(self.nodes), len(self.nodes)))
        for (a, b), w in self.edges.items():
            m[self.nodes[a], self.nodes[b]] += w
        return m


def pagerank(m, damping=0.85, rounds=60):
    n = len(m)
    out = m.sum(1, keepdims=True)
    trans = np.where(out > 0, m / np.where(out == 0, 1, out), 1.0 / n)
    r = np.full(n, 1.0 / n)
    for _ in range(rounds):
        r = (1 - damping) / n + damping * (r @ trans)
    return r


class Embedding(torch.nn.Module):
    def __init__(self, n, dim):
        super().__init__()
        self.left = torch.nn.Embedding(n, dim)
        self.right = torch.nn.Embedding(n, dim)

    def forward(self):
        return self.left.weight @ self.right.weight.T


def embed(m, dim=4, seed=3, epochs=300):
    torch.manual_seed(seed)
    model = Embedding(len(m), dim)
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    target = torch.as_tensor(np.log1p(m), dtype=torch.float32)
    for _ in range(epochs):
        loss = ((model() - target) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model.left.weight.detach().numpy(), math.sqrt(loss.item())


async def run():
    t = time.time()
    chunks = chunked(make_document(), 3)
    llm = FakeLLM()
    results = await extract_entities(llm, chunks)
    graph = Graph()
    for triples in results:
        graph.merge(triples)
    m = graph.matrix()
    rank = pagerank(m)
    vectors, rmse = embed(m)
    log.info("%d calls, %d nodes, %d edges, rmse %.6f, %.3f s", llm.calls, len(graph.nodes), len(graph.edges), rmse, time.time() - t)
    by_name = {n: {"rank": float(rank[i]), "norm": float(np.linalg.norm(vectors[i])), "desc": graph.descriptions[n]}
               for n, i in graph.nodes.items()}
    with open("graph.json", "w") as f:
        json.dump(by_name, f, indent=1, sort_keys=True)


if __name__ == "__main__":
    np.random.seed(0)
    asyncio.run(run())
