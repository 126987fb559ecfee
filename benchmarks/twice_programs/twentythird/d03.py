"""Map of the product space as a minimum spanning tree.

Takes a table of relatedness between product codes, builds the weighted graph
and its spanning tree, places the products on a plane, cuts the plane into
sectors and writes coordinates, sector members and a picture in SVG.

Modelled on: https://stackoverflow.com/questions/63485894
"""
import csv
import logging
import math
from collections import defaultdict

import networkx as nx
import numpy as np

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("product-space")

N_PRODUCTS = 220
N_CHAPTERS = 8
SECTORS = 6


def make_relatedness(seed=5):
    """Rows (product1, product2, relatedness) for products of some chapters."""
    rng = np.random.default_rng(seed)
    chapter = rng.integers(0, N_CHAPTERS, size=N_PRODUCTS)
    skill = rng.normal(size=(N_CHAPTERS, 12))
    profile = skill[chapter] + 0.8 * rng.normal(size=(N_PRODUCTS, 12))
    codes = [f"{chapter[i] + 1:02d}{i:03d}" for i in range(N_PRODUCTS)]
    rows = []
    for i in range(N_PRODUCTS):
        for j in range(i + 1, N_PRODUCTS):
            d = float(np.linalg.norm(profile[i] - profile[j]))
            rel = round(math.exp(-d / 3.0), 6)
            if rel > 0.05:
                rows.append((codes[i], codes[j], rel))
    return rows


def write_relatedness(rows, path):
    with open(path, "w", newline="") as fh:
        out = csv.writer(fh)
        out.writerow(["product1", "product2", "relatedness"])
        out.writerows(rows)


class ProductSpace:
    def __init__(self, path):
        self.graph = nx.Graph()
        with open(path, newline="") as fh:
            for row in csv.DictReader(fh):
                self.graph.add_edge(row["product1"], row["product2"],
                                    weight=1.0 - float(row["relatedness"]),
                                    relatedness=float(row["relatedness"]))
        self.tree = None
        self.pos = None

    def spanning_tree(self):
        self.tree = nx.minimum_spanning_tree(self.graph, algorithm="kruskal")
        return self.tree

    def place(self, iterations=150):
        self.pos = nx.spring_layout(self.tree, weight="relatedness", iterations=iterations)  # cause
        return self.pos

    def sectors(self):
        """Products by the angle of their place around the centre."""
        centre = np.mean([self.pos[n] for n in sorted(self.tree)], axis=0)
        members = defaultdict(list)
        for node in sorted(self.tree):
            x, y = self.pos[node] - centre
            angle = (math.atan2(y, x) + math.pi) / (2 * math.pi)
            members[min(int(angle * SECTORS), SECTORS - 1)].append(node)
        return members

    def edge_lengths(self):
        return np.array([np.linalg.norm(self.pos[a] - self.pos[b])
                         for a, b in sorted(self.tree.edges)])


def chapter_mix(nodes):
    """How mixed the chapters of a sector are (entropy in bits)."""
    count = defaultdict(int)
    for node in nodes:
        count[node[:2]] += 1
    total = sum(count.values())
    return -sum(c / total * math.log2(c / total) for c in count.values())


def write_positions(space, path):
    with open(path, "w", newline="") as fh:
        out = csv.writer(fh)
        out.writerow(["product", "chapter", "degree", "x", "y"])
        for node in sorted(space.tree):
            x, y = space.pos[node]
            out.writerow([node, node[:2], space.tree.degree[node], f"{x:.5f}", f"{y:.5f}"])


def write_svg(space, path, size=800):
    def to_px(p):
        return (size / 2 * (1 + 0.95 * p[0]), size / 2 * (1 - 0.95 * p[1]))

    colours = ["#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#bbbbbb", "#222222"]
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}">']
    for a, b in sorted(space.tree.edges):
        (x1, y1), (x2, y2) = to_px(space.pos[a]), to_px(space.pos[b])
        lines.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#999"/>')
    for node in sorted(space.tree):
        x, y = to_px(space.pos[node])
        r = 2 + space.tree.degree[node]
        colour = colours[(int(node[:2]) - 1) % len(colours)]
        lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill="{colour}"/>')
    lines.append("</svg>")
    with open(path, "w") as fh:
        fh.write("\n".join(lines) + "\n")


def main():
    rows = make_relatedness()
    write_relatedness(rows, "relatedness.csv")
    log.info("%d pairs of products", len(rows))
    space = ProductSpace("relatedness.csv")
    tree = space.spanning_tree()
    log.info("tree has %d nodes and %d edges", tree.number_of_nodes(), tree.number_of_edges())
    space.place()
    write_positions(space, "positions.csv")
    write_svg(space, "tree.svg")
    lengths = space.edge_lengths()
    print("products:", tree.number_of_nodes())
    print("tree weight: %.6f" % tree.size(weight="weight"))
    hubs = sorted(tree.degree, key=lambda nd: (-nd[1], nd[0]))[:5]
    print("hubs:", ", ".join(f"{n} ({d})" for n, d in hubs))
    print("edge length: mean %.4f, max %.4f" % (lengths.mean(), lengths.max()))
    with open("sectors.txt", "w") as fh:
        for sector, nodes in sorted(space.sectors().items()):
            print(f"sector {sector}: {len(nodes):3d} products, mix {chapter_mix(nodes):.3f}")
            fh.write(f"{sector}\t{' '.join(nodes)}\n")


if __name__ == "__main__":
    main()
