"""Labelled cases: short order messages with amounts, dates and item names."""
import random
from dataclasses import dataclass, field

ITEMS = ["filter", "gasket", "bearing", "valve", "rotor", "sensor", "cable", "clamp"]
TEMPLATES = {
    "order": "please send {n} {item}s before {day} to dock {dock}",
    "refund": "we returned {n} {item}s on {day}, refund {amount} euro",
    "quote": "what is the price of {n} {item}s, we paid {amount} euro last time",
    "status": "order of {item}s from {day} has not arrived at dock {dock}",
}


@dataclass
class Case:
    name: str
    category: str
    text: str
    expected: dict = field(default_factory=dict)
    difficulty: float = 1.0


def build(n, seed):
    rng = random.Random(seed)
    out = []
    for k in range(n):
        category = rng.choice(sorted(TEMPLATES))
        values = {"n": rng.randrange(2, 90), "item": rng.choice(ITEMS),
                  "day": f"2026-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}",
                  "dock": rng.randrange(1, 20), "amount": rng.randrange(40, 9000)}
        text = TEMPLATES[category].format(**values)
        noise = rng.random()
        if noise < 0.25:
            text = text.replace(values["item"], values["item"][:-1])
        elif noise < 0.4:
            text = text.replace("-", "/")
        used = {key: str(values[key]) for key in values if "{" + key + "}" in TEMPLATES[category]}
        out.append(Case(f"case_{k:03d}", category, text, used, 1.0 + len(used) / 4))
    return out
