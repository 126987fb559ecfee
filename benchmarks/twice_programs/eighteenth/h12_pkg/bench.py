"""Makes the benchmark file: arithmetic, ordering and letter questions."""
import json
import random

WORDS = "apple river stone cloud table green winter paper garden silver market engine".split()


def question(i, rng):
    kind = ("arithmetic", "ordering", "letters")[i % 3]
    if kind == "arithmetic":
        a, b = rng.randint(2, 60), rng.randint(2, 60)
        return kind, f"What is {a} + {b}?", str(a + b), 1 + (a + b > 60)
    if kind == "ordering":
        words = rng.sample(WORDS, rng.randint(3, 6))
        return kind, "Which word comes first: " + ", ".join(words) + "?", min(words), len(words) - 2
    word = rng.choice(WORDS)
    k = rng.randint(1, len(word))
    return kind, f"What is letter {k} of '{word}'?", word[k - 1], 1 + (k > 3)


def write_benchmark(path, n, seed):
    rng = random.Random(seed)
    with open(path, "w") as f:
        for i in range(n):
            kind, text, target, level = question(i, rng)
            f.write(json.dumps({"input": text, "target": target, "kind": kind, "level": level}) + "\n")
