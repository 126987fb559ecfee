class Node:
    def __init__(self, name, weight):
        self.name, self.weight, self.links = name, weight, set()

    def link(self, other):
        self.links.add(other)
        other.links.add(self)

class Graph:
    def __init__(self, count):
        self.nodes = [Node(f"n{i}", i / count) for i in range(count)]
        for i, node in enumerate(self.nodes):
            for step in (1, 3, 7, 11):
                node.link(self.nodes[(i + step) % count])

    def neighbours(self, node):
        return [other.weight for other in node.links]  # cause

    def walk(self, length):
        node, seen = self.nodes[0], []
        for _ in range(length):
            seen += self.neighbours(node)
            node = max(node.links, key=lambda other: (other.weight * 7919) % 1)
        return seen
