"""Facts reported in filings and the model that indexes them."""
from collections import defaultdict


class Context:
    def __init__(self, entity, period, segment):
        self.entity = entity
        self.period = period
        self.segment = segment

    def key(self):
        return (self.entity, self.period, self.segment)


class Fact:
    def __init__(self, index, concept, context, value, decimals):
        self.index = index
        self.concept = concept
        self.context = context
        self.value = value
        self.decimals = decimals

    def __repr__(self):
        return f"Fact({self.index}, {self.concept}, {self.value})"


class FactModel:
    def __init__(self):
        self.facts = []
        self.by_concept = defaultdict(set)
        self.by_period = defaultdict(set)
        self.by_entity = defaultdict(set)

    def add(self, concept, context, value, decimals):
        fact = Fact(len(self.facts), concept, context, value, decimals)
        self.facts.append(fact)
        self.by_concept[concept].add(fact)
        self.by_period[context.period].add(fact)
        self.by_entity[context.entity].add(fact)
        return fact

    def match(self, concepts=None, period=None, entity=None):
        pools = []
        if concepts is not None:
            pools.append(set().union(*(self.by_concept[c] for c in concepts)))
        if period is not None:
            pools.append(self.by_period[period])
        if entity is not None:
            pools.append(self.by_entity[entity])
        if not pools:
            return set(self.facts)
        return set.intersection(*pools) if len(pools) > 1 else set(pools[0])
