"""Relations and rules."""


class Relation:
    """A named set of tuples together with the delta of the last update."""

    def __init__(self, name):
        self.name = name
        self.tuples = {}
        self.delta = []

    def insert(self, tup):
        if tup in self.tuples:
            return False
        self.tuples[tup] = len(self.tuples)
        self.delta.append(tup)
        return True

    def __len__(self):
        return len(self.tuples)

    def __repr__(self):
        return f"<{self.name}/{len(self.tuples)}>"


class Rule:
    """target :- source, with an optional filter on the tuple."""

    def __init__(self, source, target, keep=None):
        self.source = source
        self.target = target
        self.keep = keep

    def apply(self, delta, limit):
        """Insert what follows from the delta, at most limit new tuples."""
        added = 0
        for tup in delta:
            if self.keep is not None and not self.keep(tup):
                continue
            if len(self.target) >= limit:
                break
            if self.target.insert((tup[0], min(tup[1] + 1, 9))):
                added += 1
        return added


class Program:
    def __init__(self):
        self.relations = []
        self.rules = []
        self.by_name = {}

    def relation(self, name):
        if name not in self.by_name:
            rel = Relation(name)
            self.by_name[name] = rel
            self.relations.append(rel)
        return self.by_name[name]

    def add_rule(self, source, target, keep=None):
        self.rules.append(Rule(source, target, keep))
