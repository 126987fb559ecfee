"""What statements read and write, by their text."""

from __future__ import annotations

import pytest

from reprobuild.in_image.twice.statements import MOST_PATHS, statements


@pytest.mark.parametrize(
    ("line", "reads", "writes"),
    [
        ("x = y + z.w", "y z.w", "x"),
        ("x += y", "y x", "x"),
        ("self.a.b.c.d = 1", "", "self.a.b"),
        ("items[k] = v", "v items k", "items"),
        ("items.append(f(x))", "items f x", ""),
        ("self.items.sort(key=lambda i: i.weight)", "self.items i.weight", ""),
        ("for a, b in pairs: pass", "pairs", "a b"),
        ("with open(p) as f: pass", "open p", "f"),
        ("a, *b = c", "c", "a b"),
        ("return [g(i) for i in xs]", "g xs", "i"),
        ("if x > 1: pass", "x", ""),
        ("x: int = y", "int y", "x"),
        ("def f(a=b): pass", "b", ""),
        ("del x", "x", ""),
        ("import os", "", ""),
    ],
)
def test_names_and_attributes(line: str, reads: str, writes: str) -> None:
    found = statements(line + "\n")[1]
    assert {".".join(path) for path in found.reads} - {"i"} == set(reads.split()) - {"i"}
    assert {".".join(path) for path in found.writes} == set(writes.split())
    assert set(found.paths) == {*found.reads, *found.writes}


SOURCE = """\
@decorated
def f(
    x,
):
    total = g(
        x,
        1,
    )
    if total:
        a = 1; b = 2
    else:
        try:
            c = 3
        except ValueError:
            d = 4
    while total: total -= 1
"""


def test_each_line_belongs_to_one_statement() -> None:
    found = statements(SOURCE)
    spans = {line: (each.line, each.end, each.branches) for line, each in found.items()}
    assert spans == {
        **dict.fromkeys((1, 2, 3, 4), (2, 4, False)),
        **dict.fromkeys((5, 6, 7, 8), (5, 8, False)),
        9: (9, 9, True),
        10: (10, 10, False),
        12: (12, 12, True),
        13: (13, 13, False),
        15: (15, 15, False),
        16: (16, 16, True),
    }
    assert set(found[10].writes) == {("a",), ("b",)}
    assert found[16].writes == [("total",)]


def test_many_names_and_no_program() -> None:
    found = statements("f(" + ", ".join(f"x{number}" for number in range(500)) + ")\n")[1]
    assert len(found.reads) == MOST_PATHS
    with pytest.raises(SyntaxError):
        statements("x = (\n")
    with pytest.raises((ValueError, SyntaxError)):
        statements("x = '\0'\n")
    assert statements("") == {}


@pytest.mark.parametrize(
    ("source", "inside"),
    [
        ("x = [\n    a,\n    f(b),\n]", [(2, 0), (3, 1)]),
        ("x = {\n    'a': 1,\n    'b': f(2),\n}", [(2, "a"), (3, "b")]),
        ("x = Config(\n    a=1,\n    b=f(2),\n)", [(2, "a"), (3, "b")]),
        ("def g():\n    return table.with_columns(\n        p=a,\n        q=b)", [(3, "p"), (4, "q")]),
        ("x = [a, b]", []),
        ("x = [\n    a, b]", []),
        ("x = [\n    *a,\n    b]", []),
        ("x = y = [\n    a,\n    b]", []),
        ("x = a + (\n    b)", []),
    ],
)
def test_the_parts_of_a_value_over_several_lines(source: str, inside: list[tuple[int, int | str]]) -> None:
    found = statements(source)
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "def" not in text)
    assert found[line].inside == inside


@pytest.mark.parametrize(
    ("source", "makes"),
    [
        *(
            (each, True)
            for each in ("x = []", "x = {a: 1 for a in b}", "x.y = sorted(z)", "x: list = list(y)")
        ),
        *(
            (each, False)
            for each in ("x = y", "x = f()", "x = y.get()", "x = y if z else []", "[a, b] = [1, 2]")
        ),
        *((each, False) for each in ("x += [1]", "f([])", "x = get([])")),
    ],
)
def test_what_a_statement_makes_itself_is_no_object_that_was(source: str, *, makes: bool) -> None:
    assert statements(source)[1].makes is makes
