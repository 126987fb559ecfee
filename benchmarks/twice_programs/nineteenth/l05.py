"""Citation network report: centralities, communities and a figure.

Grows a small citation network, ranks the papers, finds communities and writes
a table, a JSON summary and the figure for the report.

Modelled on: https://github.com/networkx/networkx/issues/5920
"""
import argparse
import csv
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

TOPICS = ["vision", "language", "robotics", "theory"]
COLOURS = {"vision": "#4477aa", "language": "#ee6677", "robotics": "#228833", "theory": "#ccbb44"}


def grow_network(n_papers, refs_per_paper, rng):
    """Preferential attachment with a preference for the own topic."""
    g = nx.DiGraph()
    for i in range(n_papers):
        topic = TOPICS[int(rng.integers(len(TOPICS)))]
        g.add_node(i, topic=topic, year=1995 + i * 28 // n_papers)
        if i == 0:
            continue
        cited = np.array([g.in_degree(j) + 1.0 for j in range(i)])
        same = np.array([3.0 if g.nodes[j]["topic"] == topic else 1.0 for j in range(i)])
        weight = cited * same
        k = min(i, refs_per_paper)
        for j in rng.choice(i, size=k, replace=False, p=weight / weight.sum()):
            g.add_edge(i, int(j))
    return g


def rank_papers(g):
    pr = nx.pagerank(g, alpha=0.85)
    hubs, authorities = nx.hits(g, max_iter=500, tol=1e-10)
    core = nx.core_number(g.to_undirected())
    rows = []
    for n in g.nodes:
        rows.append({
            "paper": n,
            "topic": g.nodes[n]["topic"],
            "year": g.nodes[n]["year"],
            "cited": g.in_degree(n),
            "pagerank": round(pr[n], 8),
            "authority": round(abs(authorities[n]), 6),
            "core": core[n],
        })
    rows.sort(key=lambda r: (-r["pagerank"], r["paper"]))
    return rows


def communities(g, seed):
    parts = nx.community.louvain_communities(g.to_undirected(), seed=seed)
    parts = sorted((sorted(p) for p in parts), key=lambda p: (-len(p), p[0]))
    q = nx.community.modularity(g.to_undirected(), parts)
    return parts, q


def purity(g, parts):
    hits = 0
    for part in parts:
        counts = {}
        for n in part:
            t = g.nodes[n]["topic"]
            counts[t] = counts.get(t, 0) + 1
        hits += max(counts.values())
    return hits / g.number_of_nodes()


def draw(g, rows, path, top=60):
    keep = sorted(r["paper"] for r in rows[:top])
    sub = g.subgraph(keep).copy()
    score = {r["paper"]: r["pagerank"] for r in rows}
    sizes = [6000 * score[n] for n in sub.nodes]
    colours = [COLOURS[sub.nodes[n]["topic"]] for n in sub.nodes]
    labels = {n: f"P{n}" for n in keep if score[n] >= rows[9]["pagerank"]}
    fig, ax = plt.subplots(figsize=(7, 6), dpi=90)
    nx.draw_networkx(sub, ax=ax, labels=labels, node_size=sizes, node_color=colours, width=0.4, arrowsize=5)  # cause
    for topic in TOPICS:
        ax.scatter([], [], c=COLOURS[topic], label=topic)
    ax.legend(loc="upper right", fontsize=7, frameon=False)
    ax.set_axis_off()
    fig.savefig(path, metadata={"Software": None})
    plt.close(fig)


def degree_histogram(g, path):
    deg = np.array([d for _, d in g.in_degree()])
    fig, ax = plt.subplots(figsize=(4, 3), dpi=90)
    ax.hist(deg, bins=np.arange(0, deg.max() + 2), color="#888888")
    ax.set_yscale("log")
    ax.set_xlabel("times cited")
    ax.set_ylabel("papers")
    fig.tight_layout()
    fig.savefig(path, metadata={"Software": None})
    plt.close(fig)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--papers", type=int, default=350)
    ap.add_argument("--refs", type=int, default=4)
    ap.add_argument("--seed", type=int, default=7)
    ap.add_argument("--out", default="report")
    args = ap.parse_args()

    rng = np.random.default_rng(args.seed)
    out = Path(args.out)
    out.mkdir(exist_ok=True)

    g = grow_network(args.papers, args.refs, rng)
    rows = rank_papers(g)
    with open(out / "papers.csv", "w", newline="") as fh:
        writer = csv.DictWriter(fh, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)

    parts, q = communities(g, args.seed)
    summary = {
        "papers": g.number_of_nodes(),
        "citations": g.number_of_edges(),
        "communities": [len(p) for p in parts],
        "modularity": round(q, 6),
        "topic_purity": round(purity(g, parts), 6),
        "most_cited": [r["paper"] for r in sorted(rows, key=lambda r: (-r["cited"], r["paper"]))[:10]],
    }
    (out / "summary.json").write_text(json.dumps(summary, indent=2))
    degree_histogram(g, out / "cited.png")
    draw(g, rows, out / "network.png")
    print(json.dumps(summary, indent=2))


if __name__ == "__main__":
    main()
