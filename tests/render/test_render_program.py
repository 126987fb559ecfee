from __future__ import annotations

import builtins
import hashlib
import re
import symtable
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from conftest import GOLDEN
from reprobuild.in_image import selftest
from reprobuild.in_image.selftest.registry import CHECKS
from reprobuild.render.program import MODULES, CheckName, joined, selftest_checks, selftest_program

SOURCE = Path(selftest.__file__).parent


def test_the_program_is_the_golden_one(golden: Callable[[Path, bytes], None]) -> None:
    """Its bytes are in every image: another digest here is one of all images, for the changelog."""
    golden(GOLDEN / "selftest.sha256", hashlib.sha256(selftest_program()).hexdigest().encode() + b"\n")


def test_every_module_is_in_it_under_a_banner() -> None:
    assert sorted(MODULES) == sorted(path.stem for path in SOURCE.glob("*.py") if path.stem != "__init__")
    assert tuple(re.findall(r"^# --- (\w+) -+$", selftest_program().decode(), re.MULTILINE)) == MODULES


def test_its_checks_are_those_that_it_registers() -> None:
    assert set(selftest_checks()) == {
        CheckName(each.name if device == "cpu" else f"{each.name} ({device})", device, each.part)
        for each in CHECKS.values()
        for device in each.devices
    }


def test_every_name_in_it_is_defined_in_it() -> None:
    table = symtable.symtable(selftest_program().decode(), "selftest.py", "exec")
    defined = {each.get_name() for each in table.get_symbols() if each.is_assigned() or each.is_imported()}
    defined |= {*dir(builtins), "__file__", "__name__", "__doc__", "__annotations__"}
    assert {name for name in global_names(table) if name not in defined} == set()


def global_names(table: symtable.SymbolTable) -> Iterator[str]:
    yield from (each.get_name() for each in table.get_symbols() if each.is_global() and each.is_referenced())
    for child in table.get_children():
        yield from global_names(child)


MAIN = '"""What it does."""\n\nimport sys\n\nfrom .first import one\n\nsys.exit(one)\n'


def test_modules_become_one_in_their_order() -> None:
    first = '"""A first one.\n\nWith more.\n"""\n\nfrom os import sep\n\n# The unit.\none = 1\n'
    assert joined({"first": first, "main": MAIN}) == (
        '"""What it does."""\n\nfrom __future__ import annotations\n\nimport sys\nfrom os import sep\n\n\n'
        f"{'# --- first ':-<108}\n# A first one.\n#\n# With more.\n\n# The unit.\none = 1\n\n\n"
        f"{'# --- main ':-<108}\n\nsys.exit(one)\n"
    )


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        ("one = 1\n", "bad: no docstring"),
        ('"""A."""\none = 1\nimport os\n', "bad, line 3: an import below other code"),
        ('"""A."""\nimport os as system\n', "bad, line 2: an import under another name"),
        ('"""A."""\none = 2\n', "bad: one is defined in first, too"),
        ('"""A."""\ndef one(): ...\n', "bad: one is defined in first, too"),
    ],
)
def test_a_module_that_does_not_fit_is_named(module: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        joined({"first": '"""A."""\none = 1\n', "bad": module, "main": MAIN})
