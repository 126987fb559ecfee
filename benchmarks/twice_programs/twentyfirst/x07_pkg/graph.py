"""The corpus-level causal graph."""
from collections import Counter


class CausalGraph:
    def __init__(self):
        self.edges = Counter()

    def add(self, cause, effect):
        self.edges[(cause, effect)] += 1

    def ranked(self):
        rows = sorted(self.edges.items(), key=lambda kv: (-kv[1], kv[0]))
        return [{"cause": a, "effect": b, "count": n} for (a, b), n in rows]

    def stats(self, store):
        n = len(store.entities)
        return {"entities": n, "edges": len(self.edges),
                "mentions": sum(store.mentions),
                "loops": sum(c for (a, b), c in self.edges.items() if a == b),
                "density": len(self.edges) / (n * n)}
