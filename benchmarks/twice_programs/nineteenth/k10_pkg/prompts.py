"""Instructions made from templates."""
import random

VERBS = ["Explain", "Summarize", "Compare", "Describe", "Criticize", "Illustrate"]
TOPICS = ["gradient descent", "the water cycle", "supply and demand", "photosynthesis",
          "binary search", "the French revolution", "plate tectonics", "compound interest"]
STYLES = ["for a child", "in one paragraph", "with an example", "step by step", "as a letter"]


def make_instructions(count, seed):
    rng = random.Random(seed)
    every = [f"{v} {t} {s}" for v in VERBS for t in TOPICS for s in STYLES]
    return rng.sample(every, count)
