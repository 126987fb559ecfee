"""Print one example per method: the target name and its path contexts."""
import re
import sys

TOKEN = re.compile(r"[A-Za-z_]\w*|[=+\-*/<>!]=?|[(){};:.]")
HEAD = re.compile(r"^  ([a-z]+)_([a-z]+)\((\w+)\) \{$")
KINDS = {"return": "Ret", "for": "For", "if": "If", "this": "This", "null": "Null"}


def leaves(lines):
    out = []
    for number, line in enumerate(lines):
        depth = 0
        for tok in TOKEN.findall(line):
            if tok == "(":
                depth += 1
            elif tok == ")":
                depth -= 1
            if re.match(r"[A-Za-z_]", tok):
                out.append((tok.lower(), KINDS.get(tok, "Name"), number, depth))
    return out


def contexts(lines, width=6):
    items = leaves(lines)
    for i, (a, ka, la, da) in enumerate(items):
        for b, kb, lb, db in items[i + 1:i + 1 + width]:
            up = "^".join([ka] + ["Arg"] * da)
            down = "_".join(["Arg"] * db + [kb])
            middle = "Stmt" if la == lb else f"Block{min(lb - la, 3)}"
            yield f"{a},{up}^{middle}_{down},{b}"


def methods(path):
    with open(path) as fh:
        name, body = None, []
        for line in fh:
            line = line.rstrip("\n")
            head = HEAD.match(line)
            if head:
                name, body = (head.group(1), head.group(2)), []
            elif line == "  }" and name:
                yield name, body
                name = None
            elif name:
                body.append(line.strip())


def main():
    for path in sys.argv[1:]:
        for name, body in methods(path):
            found = list(contexts(body))
            if found:
                sys.stdout.write("|".join(name) + " " + " ".join(found) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
