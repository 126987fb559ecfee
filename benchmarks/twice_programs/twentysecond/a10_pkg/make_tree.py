"""Write a tree of Python modules with some style problems in them."""
import os
import random
import sys

NAMES = ["load", "parse", "merge", "emit", "score", "filter", "rank", "index"]


def function(rng):
    name = rng.choice(NAMES) + str(rng.randrange(100))
    lines = [f"def {name}(items, limit={rng.randrange(9)}):"]
    for _ in range(rng.randint(3, 9)):
        kind = rng.randrange(6)
        if kind == 0:
            lines.append("    total=0")
        elif kind == 1:
            lines.append("    value = [x for x in items]   ")
        elif kind == 2:
            lines.append("    result = sum(" + " + ".join(f"item_{i}" for i in range(12)) + ")")
        elif kind == 3:
            lines.append("    if limit == None:\n        limit = 3")
        elif kind == 4:
            lines.append("\tcount = len(items)")
        else:
            lines.append("    items = sorted(items)")
    lines.append("    return items")
    return "\n".join(lines)


def main():
    root, count = sys.argv[1], int(sys.argv[2])
    rng = random.Random(57)
    for i in range(count):
        folder = os.path.join(root, f"part{i % 4}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"mod{i:02d}.py"), "w") as fh:
            fh.write('"""Module %d."""\n\n\n' % i)
            fh.write("\n\n\n".join(function(rng) for _ in range(rng.randint(20, 60))) + "\n")
    print("modules:", count)


if __name__ == "__main__":
    main()
