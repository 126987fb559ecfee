"""Writes a tree of small source files to measure."""
import os
import random
import sys

OPS = ["+", "-", "*", "%", "//"]


def function_text(rng, name):
    lines = [f"def {name}(a, b, limit={rng.randint(3, 90)}):"]
    if rng.random() < 0.4:
        lines.append(f'    """Computes {name.replace("_", " ")}."""')
    lines.append("    total = 0")
    depth = 1
    for _ in range(rng.randint(3, 25)):
        pad = "    " * depth
        kind = rng.random()
        if kind < 0.25 and depth < 5:
            lines.append(f"{pad}if total < {rng.randint(1, 50)} and a > b:")
            depth += 1
        elif kind < 0.4 and depth < 5:
            lines.append(f"{pad}for i in range({rng.randint(2, 9)}):")
            depth += 1
        else:
            lines.append(f"{pad}total = total {rng.choice(OPS)} (a + {rng.randint(1, 9)})")
            if depth > 1 and rng.random() < 0.5:
                depth -= 1
            continue
        lines.append("    " * depth + "total += b")
    lines.append("    return total")
    return "\n".join(lines)


def main(folder, count, seed):
    rng = random.Random(seed)
    os.makedirs(folder, exist_ok=True)
    for k in range(count):
        functions = [function_text(rng, f"step_{k}_{j}") for j in range(rng.randint(15, 110))]
        with open(os.path.join(folder, f"module_{k:03d}.py"), "w") as fh:
            fh.write("\n\n\n".join(functions) + "\n")
    print(f"{count} files in {folder}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
