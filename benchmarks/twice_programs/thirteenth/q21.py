"""Cell tree reconstruction with interchange moves.

Report: https://github.com/dhdegroot/Bonsai-data-representation/pull/82
A tree over noisy expression vectors is built greedily and then improved move by move.
"""
import argparse
import json
import logging
import os
import pickle
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

log = logging.getLogger("bonsai")


@dataclass
class BonsaiConfig:
    cells: int = 60
    genes: int = 30
    moves: int = 2600
    temperature: float = 4.0
    seed: int = 82
    results: str = "bonsai_results"
    tmp_folder: str = os.path.join(tempfile.gettempdir(), "bonsai_q21_tmp")


@dataclass
class TreeState:
    parent: np.ndarray
    loss: float
    round: int = 0


def simulate(cfg: BonsaiConfig):
    rng = np.random.default_rng(cfg.seed)
    values = [np.zeros(cfg.genes)]
    while len(values) < cfg.cells:
        mother = values[int(rng.integers(max(1, len(values) // 2)))]
        values.append(mother + rng.normal(0, 0.8, cfg.genes))
    return np.array(values) + rng.normal(0, 0.5, (cfg.cells, cfg.genes))


def pairwise(x: np.ndarray) -> np.ndarray:
    return np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1))


def greedy_tree(dist: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Attach every cell to the closest of the cells attached before it."""
    parent = np.full(len(dist), -1)
    for k in range(1, len(order)):
        cell, placed = order[k], order[:k]
        parent[cell] = placed[int(dist[cell, placed].argmin())]
    return parent


def depth_of(parent: np.ndarray) -> np.ndarray:
    depth = np.zeros(len(parent), dtype=int)
    for i in range(len(parent)):
        j = i
        while parent[j] >= 0:
            depth[i] += 1
            j = parent[j]
    return depth


def tree_loss(parent: np.ndarray, dist: np.ndarray) -> float:
    child = np.flatnonzero(parent >= 0)
    return float(dist[child, parent[child]].sum() + 0.35 * depth_of(parent).sum())


def is_ancestor(parent, a, b) -> bool:
    while b >= 0:
        if b == a:
            return True
        b = parent[b]
    return False


class Recovery:
    """Intermediate results of the last finished round."""

    def __init__(self, folder: str):
        self.path = Path(folder) / "tree_round.pkl"

    def load(self):
        if self.path.exists():  # cause
            log.info("picking up from %s", self.path)
            return pickle.loads(self.path.read_bytes())  # cause
        return None

    def save(self, state: TreeState):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".part")
        partial.write_bytes(pickle.dumps(state))
        partial.replace(self.path)


class Optimiser:
    def __init__(self, cfg: BonsaiConfig, data: np.ndarray):
        self.cfg = cfg
        self.dist = pairwise(data)
        self.recovery = Recovery(cfg.tmp_folder)

    def initial(self) -> TreeState:
        state = self.recovery.load()
        if state is None:
            order = np.arange(len(self.dist))
            parent = greedy_tree(self.dist, order)
            state = TreeState(parent, tree_loss(parent, self.dist))
        return state

    def anneal(self, state: TreeState) -> TreeState:
        rng = np.random.default_rng([self.cfg.seed, state.round])
        parent, loss = state.parent.copy(), state.loss
        accepted = 0
        for m in range(self.cfg.moves):
            cell = int(rng.integers(1, len(parent)))
            target = int(rng.integers(len(parent)))
            heat = self.cfg.temperature * (1 - m / self.cfg.moves) + 1e-3
            roll = rng.random()
            if parent[cell] < 0 or is_ancestor(parent, cell, target):
                continue
            old = parent[cell]
            parent[cell] = target
            new = tree_loss(parent, self.dist)
            if roll < np.exp(min(0.0, (loss - new) / heat)):
                loss = new
                accepted += 1
            else:
                parent[cell] = old
        log.info("round %d accepted %d moves, loss %.4f", state.round, accepted, loss)
        return TreeState(parent, loss, state.round + 1)

    def run(self, rounds: int) -> TreeState:
        state = self.initial()
        for _ in range(rounds):
            state = self.anneal(state)
        self.recovery.save(state)
        return state


def newick(parent: np.ndarray, dist: np.ndarray) -> str:
    children = {i: [] for i in range(len(parent))}
    for i, p in enumerate(parent):
        if p >= 0:
            children[p].append(i)

    def render(i):
        inner = ",".join(render(c) for c in children[i])
        length = dist[i, parent[i]] if parent[i] >= 0 else 0.0
        return (f"({inner})" if inner else "") + f"cell{i}:{length:.4f}"

    return render(int(np.flatnonzero(parent < 0)[0])) + ";"


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    ap = argparse.ArgumentParser()
    ap.add_argument("--rounds", type=int, default=12)
    ap.add_argument("--tmp_folder", default=BonsaiConfig.tmp_folder)
    ap.add_argument("--results", default=BonsaiConfig.results)
    ns = ap.parse_args()
    cfg = BonsaiConfig(tmp_folder=ns.tmp_folder, results=ns.results)
    t0 = time.time()
    data = simulate(cfg)
    optimiser = Optimiser(cfg, data)
    state = optimiser.run(ns.rounds)
    out = Path(cfg.results)
    out.mkdir(exist_ok=True)
    (out / "tree.nwk").write_text(newick(state.parent, optimiser.dist) + "\n")
    summary = {"loss": round(state.loss, 6), "max_depth": int(depth_of(state.parent).max())}
    (out / "summary.json").write_text(json.dumps(summary))
    print(summary)
    log.info("%.1fs", time.time() - t0)


if __name__ == "__main__":
    main()
