"""Validate synthetic financial filings against business rules.

Modelled on https://github.com/xbrlus/xule/pull/50
Builds a fact model for several entities and periods and reports rule messages.
"""
import argparse
import logging
import random
import time
from dataclasses import dataclass
from pathlib import Path

from m09_rules import Context, FactModel, Report, RuleEngine
from m09_rules.engine import Rule

log = logging.getLogger("rules")

CONCEPTS = {
    "Revenue": (400.0, 90.0),
    "CostOfSales": (250.0, 60.0),
    "GrossProfit": (150.0, 50.0),
    "Inventory": (80.0, 30.0),
    "Receivables": (95.0, 35.0),
    "Payables": (70.0, 25.0),
    "Cash": (60.0, 30.0),
    "Debt": (120.0, 70.0),
}
SEGMENTS = ["total", "retail", "wholesale", "online", "services"]


@dataclass
class Config:
    seed: int = 31
    entities: int = 90
    periods: tuple = ("2021", "2022", "2023")
    message_limit: int = 15
    out_dir: str = "validation"


def build_model(cfg):
    rng = random.Random(cfg.seed)
    model = FactModel()
    for e in range(cfg.entities):
        scale = rng.lognormvariate(0.0, 0.6)
        for period in cfg.periods:
            growth = 1.0 + 0.05 * (int(period) - 2021) + rng.gauss(0, 0.03)
            for segment in SEGMENTS:
                context = Context(f"E{e:03d}", period, segment)
                share = 1.0 if segment == "total" else rng.uniform(0.1, 0.4)
                for concept, (mean, sd) in CONCEPTS.items():
                    if rng.random() < 0.1:
                        continue
                    value = scale * growth * share * rng.gauss(mean, sd)
                    if rng.random() < 0.02:
                        value = -value
                    model.add(concept, context, value, rng.choice([0, 2, 3]))
    return model


def check_sign(fact, binding):
    binding.push(fact.value)
    if fact.value < 0:
        return f"{fact.concept} is negative ({fact.value:.3f})"
    return None


def check_outlier(fact, binding):
    mean = binding.push(fact.value)
    if binding.count > 10 and fact.value > 4.0 * mean:
        return f"{fact.concept} {fact.value:.3f} is far above the average {mean:.3f}"
    return None


def check_duplicate_scale(fact, binding):
    binding.push(fact.value)
    key = (fact.concept, round(fact.value, 0))
    first = binding.seen.setdefault(key, fact.index)
    if first != fact.index:
        return f"{fact.concept} repeats the value of fact {first}"
    return None


def make_rules(cfg):
    everything = list(CONCEPTS)
    return [
        Rule("sign", everything, check_sign, cfg.message_limit),
        Rule("income_outlier", ["Revenue", "CostOfSales", "GrossProfit"], check_outlier,
             cfg.message_limit),
        Rule("balance_outlier", ["Inventory", "Receivables", "Payables", "Cash", "Debt"],
             check_outlier, cfg.message_limit),
        Rule("repeated_value", everything, check_duplicate_scale, cfg.message_limit),
    ]


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=Config.seed)
    parser.add_argument("--entities", type=int, default=Config.entities)
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args()


def main():
    args = parse_args()
    logging.basicConfig(level=logging.DEBUG if args.verbose else logging.INFO,
                        format="%(asctime)s %(name)s %(message)s")
    cfg = Config(seed=args.seed, entities=args.entities)
    started = time.perf_counter()
    model = build_model(cfg)
    log.info("%d facts from %d entities", len(model.facts), cfg.entities)

    engine = RuleEngine(model, make_rules(cfg))
    report = Report()
    for period in cfg.periods:
        messages, totals = engine.evaluate(period)
        report.extend(period, messages, totals)
        log.info("period %s: %d messages", period, len(messages))
    log.info("done in %.2fs", time.perf_counter() - started)

    out = Path(cfg.out_dir)
    out.mkdir(exist_ok=True)
    report.write(out)
    print("messages by rule")
    for name, count in report.counts().items():
        print(f"  {name:<16s} {count}")
    for rule in engine.rules:
        first = next((m for m in report.messages if m["rule"] == rule.name), None)
        if first:
            print(f"first {rule.name}: fact {first['fact']} - {first['text']}")


if __name__ == "__main__":
    main()
