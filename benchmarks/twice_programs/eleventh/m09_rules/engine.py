"""Evaluation of rules against a fact model."""
import logging

log = logging.getLogger("rules.engine")


class Rule:
    def __init__(self, name, concepts, check, limit):
        self.name = name
        self.concepts = concepts
        self.check = check
        self.limit = limit


class Binding:
    """State carried along while the facts of one rule are bound."""

    def __init__(self):
        self.seen = {}
        self.running_mean = 0.0
        self.count = 0

    def push(self, value):
        self.count += 1
        self.running_mean += (value - self.running_mean) / self.count
        return self.running_mean


class RuleEngine:
    def __init__(self, model, rules):
        self.model = model
        self.rules = rules

    def bind(self, rule, period):
        matched = self.model.match(rule.concepts, period=period)
        for fact in matched:  # cause
            yield fact

    def evaluate(self, period):
        messages = []
        totals = {}
        for rule in self.rules:
            binding = Binding()
            total = 0.0
            raised = 0
            for fact in self.bind(rule, period):
                total += fact.value
                message = rule.check(fact, binding)
                if message is not None and raised < rule.limit:
                    messages.append((rule.name, fact.index, message))
                    raised += 1
            totals[rule.name] = total
            log.debug("%s %s: %d facts, %d messages", period, rule.name, binding.count, raised)
        return messages, totals
