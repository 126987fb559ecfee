"""Modelled on https://github.com/taynaud/python-louvain/issues/25

Builds a co-authorship network from synthetic papers, finds its communities and profiles them for a thesis chapter.
"""
import argparse
import csv
import itertools
import json
import logging
from collections import Counter, defaultdict
from pathlib import Path

import networkx as nx
import numpy as np

log = logging.getLogger("coauthors")

TOPICS = ["ecology", "genomics", "imaging", "policy", "statistics", "robotics"]
WORDS = {
    "ecology": ["forest", "species", "habitat", "river", "pollen"],
    "genomics": ["allele", "sequence", "variant", "assembly", "exome"],
    "imaging": ["contrast", "tomography", "voxel", "scanner", "lesion"],
    "policy": ["budget", "survey", "welfare", "reform", "housing"],
    "statistics": ["bayes", "kernel", "likelihood", "bootstrap", "prior"],
    "robotics": ["gripper", "lidar", "planner", "torque", "swarm"],
}

SETTINGS = {
    "seed": 2018,
    "n_authors": 131,
    "n_papers": 300,
    "mixing": 0.68,
    "min_weight": 1,
    "resolution": 1.1,
    "top_members": 5,
}


def make_authors(rng, n):
    authors = []
    for i in range(n):
        authors.append({"id": f"A{i:03d}", "topic": TOPICS[int(rng.integers(len(TOPICS)))], "activity": float(rng.gamma(2.0, 1.0)) + 0.2})
    return authors


def make_papers(rng, authors, n, mixing):
    weights = np.array([a["activity"] for a in authors])
    weights = weights / weights.sum()
    by_topic = defaultdict(list)
    for i, a in enumerate(authors):
        by_topic[a["topic"]].append(i)
    papers = []
    for k in range(n):
        lead = int(rng.choice(len(authors), p=weights))
        topic = authors[lead]["topic"]
        team = {lead: None}
        for _ in range(int(rng.integers(1, 5))):
            if rng.random() < mixing:
                j = int(rng.integers(len(authors)))
            else:
                pool = by_topic[topic]
                j = pool[int(rng.integers(len(pool)))]
            team[j] = None
        words = rng.choice(WORDS[topic], size=2, replace=False)
        papers.append({"id": f"P{k:04d}", "year": int(2005 + rng.integers(0, 13)), "team": [authors[j]["id"] for j in team], "title": " ".join(words)})
    return papers


def save_papers(papers, path):
    with open(path, "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["paper", "year", "authors", "title"])
        for p in papers:
            w.writerow([p["id"], p["year"], ";".join(p["team"]), p["title"]])


def read_papers(path):
    with open(path, newline="") as fh:
        for row in csv.DictReader(fh):
            yield row["paper"], int(row["year"]), row["authors"].split(";"), row["title"]


def build_graph(path, min_weight):
    pairs = Counter()
    words = defaultdict(Counter)
    papers_of = Counter()
    for _, _, team, title in read_papers(path):
        for a in team:
            papers_of[a] += 1
            words[a].update(title.split())
        for a, b in itertools.combinations(sorted(team), 2):
            pairs[(a, b)] += 1
    g = nx.Graph()
    for a in sorted(papers_of):
        g.add_node(a, papers=papers_of[a], words=words[a])
    for (a, b), w in sorted(pairs.items()):
        if w >= min_weight:
            g.add_edge(a, b, weight=w)
    return g


def largest_component(g):
    comps = sorted(nx.connected_components(g), key=lambda c: (-len(c), min(c)))
    keep = set(comps[0])
    return g.subgraph([n for n in g.nodes if n in keep]).copy()


def detect(g, resolution):
    parts = nx.community.louvain_communities(g, weight="weight", resolution=resolution)  # cause
    parts = sorted((sorted(p) for p in parts), key=lambda p: (-len(p), p[0]))
    return parts


def describe(g, members, top):
    sub = g.subgraph(members)
    strength = dict(sub.degree(weight="weight"))
    leaders = sorted(members, key=lambda n: (-strength[n], n))[:top]
    words = Counter()
    for n in members:
        words.update(g.nodes[n]["words"])
    inside = sub.size(weight="weight")
    total = sum(d for _, d in g.degree(members, weight="weight"))
    return {
        "size": len(members),
        "leaders": leaders,
        "keywords": [w for w, _ in sorted(words.items(), key=lambda t: (-t[1], t[0]))[:4]],
        "density": round(nx.density(sub), 4),
        "internal_share": round(2 * inside / total, 4) if total else 0.0,
    }


def topic_purity(parts, authors):
    topic = {a["id"]: a["topic"] for a in authors}
    hits = 0
    for p in parts:
        hits += Counter(topic[n] for n in p).most_common(1)[0][1]
    return hits / sum(len(p) for p in parts)


def bridges(g, parts, top=8):
    home = {n: k for k, p in enumerate(parts) for n in p}
    rows = []
    for n in sorted(g.nodes):
        w = Counter()
        for m, d in g[n].items():
            w[home[m]] += d["weight"]
        tot = sum(w.values())
        part = 1.0 - sum((v / tot) ** 2 for v in w.values()) if tot else 0.0
        rows.append((n, round(part, 5), len(w)))
    return sorted(rows, key=lambda r: (-r[1], r[0]))[:top]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", default=".")
    ap.add_argument("--resolution", type=float, default=SETTINGS["resolution"])
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    cfg = dict(SETTINGS, resolution=args.resolution)
    out = Path(args.out)
    out.mkdir(exist_ok=True, parents=True)

    np.random.seed(cfg["seed"])
    rng = np.random.default_rng(cfg["seed"])
    authors = make_authors(rng, cfg["n_authors"])
    papers = make_papers(rng, authors, cfg["n_papers"], cfg["mixing"])
    save_papers(papers, out / "papers.csv")

    g = largest_component(build_graph(out / "papers.csv", cfg["min_weight"]))
    log.info("graph: %d authors, %d ties", g.number_of_nodes(), g.number_of_edges())
    print(f"average clustering {nx.average_clustering(g):.4f}")

    parts = detect(g, cfg["resolution"])
    q = nx.community.modularity(g, parts, weight="weight", resolution=cfg["resolution"])
    profiles = [describe(g, p, cfg["top_members"]) for p in parts]
    with open(out / "partition.csv", "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["author", "community"])
        for k, p in enumerate(parts):
            for n in p:
                w.writerow([n, k])
    bridge_rows = bridges(g, parts)
    with open(out / "communities.json", "w") as fh:
        json.dump({"settings": cfg, "modularity": q, "communities": profiles, "bridges": bridge_rows}, fh, indent=1)

    print(f"communities {len(parts)} modularity {q:.5f} purity {topic_purity(parts, authors):.3f}")
    for k, pr in enumerate(profiles):
        print(f"  C{k}: n={pr['size']:<3} density={pr['density']:.3f} internal={pr['internal_share']:.3f} {' '.join(pr['keywords'])}")
    print("bridging authors:", ", ".join(f"{n} ({p:.3f})" for n, p, _ in bridge_rows[:5]))


if __name__ == "__main__":
    main()
