"""Measures one source file and prints a JSON document."""
import ast
import json
import math
import os
import sys

BRANCHES = (ast.If, ast.For, ast.While, ast.BoolOp, ast.IfExp, ast.ExceptHandler)


def complexity(node):
    return 1 + sum(isinstance(n, BRANCHES) for n in ast.walk(node))


def halstead_volume(node):
    operators, operands = [], []
    for n in ast.walk(node):
        if isinstance(n, (ast.BinOp, ast.AugAssign)):
            operators.append(type(n.op).__name__)
        elif isinstance(n, ast.Compare):
            operators.extend(type(op).__name__ for op in n.ops)
        elif isinstance(n, ast.Name):
            operands.append(n.id)
        elif isinstance(n, ast.Constant):
            operands.append(repr(n.value))
    length = len(operators) + len(operands)
    vocabulary = len(set(operators)) + len(set(operands))
    return length * math.log2(vocabulary) if vocabulary > 1 else 0.0


def maintainability(volume, cyclomatic, lines):
    value = 171 - 5.2 * math.log(max(volume, 1)) - 0.23 * cyclomatic - 16.2 * math.log(max(lines, 1))
    return max(0.0, value * 100 / 171)


def measure(path):
    with open(path) as fh:
        text = fh.read()
    tree = ast.parse(text)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    cyclomatic = [complexity(f) for f in functions]
    volume = halstead_volume(tree)
    lines = text.count("\n")
    return {
        "file": os.path.basename(path),
        "lines": lines,
        "functions": len(functions),
        "cyclomatic": sum(cyclomatic),
        "worst": max(cyclomatic),
        "documented": sum(ast.get_docstring(f) is not None for f in functions),
        "volume": round(volume, 3),
        "maintainability": round(maintainability(volume, sum(cyclomatic) / len(functions), lines), 4),
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
