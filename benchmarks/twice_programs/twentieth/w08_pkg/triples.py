"""Synthetic family relations as (head, relation, tail) triples."""
from dataclasses import dataclass

import numpy as np

RELATIONS = ["parent_of", "child_of", "spouse_of", "sibling_of", "grandparent_of"]


@dataclass
class Triples:
    training: np.ndarray
    validation: np.ndarray
    testing: np.ndarray
    num_entities: int
    num_relations: int

    @property
    def known(self):
        every = np.concatenate([self.training, self.validation, self.testing])
        return {tuple(t) for t in every.tolist()}


def load_family(n_generations, families, seed):
    rng = np.random.default_rng(seed)
    facts, n = [], 0
    for _ in range(families):
        couples = [(n, n + 1)]
        n += 2
        facts.append((couples[0][0], 2, couples[0][1]))
        parents_of = {}
        for _ in range(n_generations - 1):
            following = []
            for a, b in couples:
                children = list(range(n, n + int(rng.integers(1, 3))))
                n += len(children)
                for child in children:
                    parents_of[child] = (a, b)
                    for parent in (a, b):
                        facts += [(parent, 0, child), (child, 1, parent)]
                        for grand in parents_of.get(parent, ()):
                            facts.append((grand, 4, child))
                    facts += [(child, 3, other) for other in children if other != child]
                    if rng.random() < 0.8:
                        facts.append((child, 2, n))
                        following.append((child, n))
                        n += 1
            couples = following
    facts = np.array(sorted(set(facts)))
    facts = facts[rng.permutation(len(facts))]
    k = len(facts) // 10
    return Triples(facts[2 * k:], facts[:k], facts[k:2 * k], n, len(RELATIONS))
