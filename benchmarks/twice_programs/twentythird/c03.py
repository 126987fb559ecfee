"""Repeat graph resolution for a toy long-read assembler.

Simulates a genome with repeats, samples error-free reads, builds a de Bruijn
graph from them, collapses unbranched paths, and then resolves the remaining
branching nodes by the reads that span them. Contigs and a graph summary are
written to files.

Modelled on: https://github.com/mikolmogorov/Flye/pull/801
"""
import argparse
import json
import logging
import random
import sys
from collections import defaultdict

logger = logging.getLogger("repeat")
COMPLEMENT = str.maketrans("ACGT", "TGCA")


class GraphNode:
    """A k-1-mer of the graph."""

    __slots__ = ("label", "in_edges", "out_edges")

    def __init__(self, label):
        self.label = label
        self.in_edges = []
        self.out_edges = []

    def is_simple(self):
        return len(self.in_edges) == 1 and len(self.out_edges) == 1


class GraphEdge:
    """A sequence between two nodes, with its read coverage."""

    __slots__ = ("left", "right", "seq", "coverage")

    def __init__(self, left, right, seq, coverage):
        self.left, self.right = left, right
        self.seq, self.coverage = seq, coverage


def simulate_genome(rng, length, n_repeats, repeat_len):
    genome = [rng.choice("ACGT") for _ in range(length)]
    repeats = ["".join(rng.choice("ACGT") for _ in range(repeat_len)) for _ in range(n_repeats)]
    for repeat in repeats:
        for _ in range(rng.randint(2, 3)):
            start = rng.randrange(0, length - repeat_len)
            genome[start:start + repeat_len] = list(repeat)
    return "".join(genome)


def sample_reads(rng, genome, read_len, coverage):
    n = coverage * len(genome) // read_len
    return [genome[s:s + read_len] for s in (rng.randrange(0, len(genome) - read_len) for _ in range(n))]


class RepeatGraph:
    def __init__(self, k):
        self.k = k
        self.by_label = {}
        self.nodes = set()
        self.edges = []

    def add_node(self, label):
        node = self.by_label.get(label)
        if node is None:
            node = GraphNode(label)
            self.by_label[label] = node
            self.nodes.add(node)
        return node

    def connect(self, left, right, seq, coverage):
        edge = GraphEdge(left, right, seq, coverage)
        left.out_edges.append(edge)
        right.in_edges.append(edge)
        self.edges.append(edge)
        return edge

    def build(self, reads):
        counts = defaultdict(int)
        for read in reads:
            for i in range(len(read) - self.k + 1):
                counts[read[i:i + self.k]] += 1
        for kmer, count in counts.items():
            self.connect(self.add_node(kmer[:-1]), self.add_node(kmer[1:]), kmer, count)

    def compact(self):
        """Collapse unbranched paths into single edges."""
        compacted = RepeatGraph(self.k)
        for node in self.by_label.values():
            if node.is_simple():
                continue
            for edge in node.out_edges:
                seq, coverages, cur = edge.seq, [edge.coverage], edge
                while cur.right.is_simple():
                    cur = cur.right.out_edges[0]
                    seq += cur.seq[-1]
                    coverages.append(cur.coverage)
                left = compacted.add_node(node.label)
                right = compacted.add_node(cur.right.label)
                compacted.connect(left, right, seq, sum(coverages) / len(coverages))
        return compacted


class RepeatResolver:
    """Joins edges through branching nodes, each edge being used once."""

    def __init__(self, graph, reads, flank=12):
        self.graph = graph
        self.flank = flank
        self.index = defaultdict(int)
        span = graph.k - 1 + 2 * flank
        for read in reads:
            for i in range(0, len(read) - span + 1):
                self.index[read[i:i + span]] += 1

    def support(self, left, right):
        overlap = self.graph.k - 1
        joined = left.seq[-(overlap + self.flank):] + right.seq[overlap:overlap + self.flank]
        return self.index.get(joined, 0)

    def resolve(self):
        links, used, groups = {}, set(), []
        for node in self.graph.nodes:  # cause
            if not node.in_edges or not node.out_edges:
                continue
            pairs = [(self.support(a, b), a, b) for a in node.in_edges for b in node.out_edges]
            pairs.sort(key=lambda p: (-p[0], p[1].seq, p[2].seq))
            for count, left, right in pairs:
                if count < 2 or left in links or right in used:
                    continue
                links[left] = right
                used.add(right)
            groups.append(node.label)
        return links, used, groups

    def contigs(self, links, used, groups):
        """Spell paths, starting at the nodes in the order in which they were resolved."""
        done, result = set(), []
        overlap = self.graph.k - 1
        starts = [e for e in self.graph.edges if not e.left.in_edges]
        starts += [e for label in groups for e in self.graph.by_label[label].out_edges]
        starts.sort(key=lambda e: e in used)
        for edge in starts:
            if edge in done:
                continue
            seq, cur = edge.seq, edge
            done.add(edge)
            while cur in links and links[cur] not in done:
                cur = links[cur]
                seq += cur.seq[overlap:]
                done.add(cur)
            result.append(seq)
        return result


def n50(lengths):
    total, half = 0, sum(lengths) / 2
    for length in sorted(lengths, reverse=True):
        total += length
        if total >= half:
            return length
    return 0


def write_fasta(path, contigs):
    with open(path, "w") as out:
        for i, seq in enumerate(contigs):
            out.write(f">contig_{i + 1} length={len(seq)}\n")
            for start in range(0, len(seq), 80):
                out.write(seq[start:start + 80] + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--genome-size", type=int, default=110000)
    parser.add_argument("--kmer", type=int, default=11)
    parser.add_argument("--seed", type=int, default=5)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="[%(asctime)s] %(message)s")

    rng = random.Random(args.seed)
    genome = simulate_genome(rng, args.genome_size, n_repeats=260, repeat_len=40)
    reads = sample_reads(rng, genome, read_len=220, coverage=12)
    logger.info("%d reads from %d bases", len(reads), len(genome))
    graph = RepeatGraph(args.kmer)
    graph.build(reads)
    graph = graph.compact()
    logger.info("graph has %d nodes and %d edges", len(graph.nodes), len(graph.edges))
    resolver = RepeatResolver(graph, reads)
    links, used, groups = resolver.resolve()
    contigs = resolver.contigs(links, used, groups)
    write_fasta("assembly.fasta", contigs)
    stats = {"contigs": len(contigs), "n50": n50([len(c) for c in contigs]), "links": len(links),
             "total": sum(len(c) for c in contigs)}
    with open("assembly_info.json", "w") as out:
        json.dump(stats, out, indent=1)
    print(stats)
    for i, contig in enumerate(contigs[:8]):
        print(f"contig_{i + 1}", len(contig), contig[:24])
    print("last", len(contigs[-1]), contigs[-1][:24])


if __name__ == "__main__":
    main()
