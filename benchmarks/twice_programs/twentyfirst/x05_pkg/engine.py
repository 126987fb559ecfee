"""Semi-naive evaluation with a bounded number of relation updates."""
import hashlib
from collections import defaultdict


class Engine:
    def __init__(self, program, update_budget, max_tuples=8):
        self.program = program
        self.update_budget = update_budget
        self.max_tuples = max_tuples
        self.outgoing = defaultdict(list)
        for rule in program.rules:
            self.outgoing[rule.source].append(rule)

    def _changed(self):
        return {rel for rel in self.program.relations if rel.delta}

    def run(self):
        updates = derived = rounds = 0
        fixpoint = False
        while updates < self.update_budget:
            work = self._changed()
            if not work:
                fixpoint = True
                break
            rounds += 1
            for rel in work:  # cause
                delta, rel.delta = rel.delta, []
                for rule in self.outgoing[rel]:
                    derived += rule.apply(delta, self.max_tuples)
                updates += 1
                if updates >= self.update_budget:
                    break
        return {"updates": updates, "rounds": rounds, "derived": derived,
                "fixpoint": fixpoint, "tuples": self.total(),
                "checksum": self.checksum()}

    def total(self):
        return sum(len(rel) for rel in self.program.relations)

    def checksum(self):
        digest = hashlib.sha1()
        for rel in self.program.relations:
            for tup in rel.tuples:
                digest.update(f"{rel.name}{tup}".encode())
        return digest.hexdigest()[:12]
