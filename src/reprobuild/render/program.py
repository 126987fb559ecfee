"""Join the modules of ``in_image/selftest`` into the one file in an image. Pure."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from .. import assets

MODULES = (
    *("names", "outcomes", "location", "registry", "libraries", "exact", "power", "gradients", "flags"),
    *(
        "graphs",
        "nvml",
        "machine",
        "operations",
        "data",
        "training",
        "batches",
        "settings",
        "installed",
        "subnormals",
    ),
    *("ranks", "seeds", "kernels", "functions", "forms", "public"),
    *("linkage", "requested"),
    *("cases", "documented", "compilation", "golden", "controls", "cost", "child", "parent", "text"),
    "command_line",
)
"""Their order in the file. The last is the program: its docstring is that of the file."""

BATTERY = "battery"
"""The part of the checks that every test of an image as a whole runs."""

FUTURE = "from __future__ import annotations"
WIDTH = 110


@cache
def selftest_program() -> bytes:
    """Return the self-test as one Python file."""
    return joined({name: assets.in_image(f"selftest/{name}.py").decode() for name in MODULES}).encode()


@dataclass(frozen=True, slots=True)
class CheckName:
    """A check of the program."""

    label: str
    """Its name, with its device where that is not the CPU."""
    device: str
    part: str


@cache
def selftest_checks() -> tuple[CheckName, ...]:
    """Return the checks of the program, each on each of its devices."""
    constants: dict[str, object] = {}
    found = []
    for node in ast.parse(selftest_program()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            with suppress(ValueError):
                constants[node.targets[0].id] = ast.literal_eval(node.value)
        elif isinstance(node, ast.FunctionDef):
            for call in node.decorator_list:
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "check":
                    found += _names(node.name.replace("_", "-"), call, constants)
    return tuple(found)


def _names(name: str, call: ast.Call, constants: Mapping[str, object]) -> list[CheckName]:
    given = {
        each.arg: constants[each.value.id]
        if isinstance(each.value, ast.Name)
        else ast.literal_eval(each.value)
        for each in call.keywords
        if each.arg in ("devices", "part")
    }
    devices: Sequence[str] = given.get("devices", ("cpu",))  # type: ignore[assignment]
    return [
        CheckName(name if device == "cpu" else f"{name} ({device})", device, str(given.get("part", BATTERY)))
        for device in devices
    ]


def joined(sources: Mapping[str, str]) -> str:
    """Return modules, by name, as one: the last one's docstring, all imports, and each one's code.

    A module consists of a docstring, imports, and then its code. It imports from its siblings as in
    ``from .name import name``, which is dropped: in one file they share one namespace, so a name at the top
    of one must not be that of another. Raises ValueError, which names the module, where that is not so.
    """
    parts, names, docstring = list[str](), dict[str, str](), ""
    imports: dict[str, set[str]] = {"": set()}
    for module, text in sources.items():
        docstring, code = _parted(module, text, imports)
        for name in _defined(code):
            if (other := names.setdefault(name, module)) != module:
                raise ValueError(f"{module}: {name} is defined in {other}, too")
        what = [] if module == [*sources][-1] else docstring.splitlines()
        parts.append("\n".join([f"# --- {module} ".ljust(WIDTH - 2, "-"), *_comment(what), "", code]))
    lines = [f"import {name}" for name in sorted(imports.pop(""))]
    lines += [f"from {name} import {', '.join(sorted(found))}" for name, found in sorted(imports.items())]
    head = [f'"""{docstring}"""', "", FUTURE, "", *lines]
    return "\n\n\n".join(["\n".join(head), *parts]) + "\n"


def _parted(module: str, text: str, imports: dict[str, set[str]]) -> tuple[str, str]:
    """Return a module's docstring and its code; add what it imports from elsewhere to ``imports``.

    ``imports``: names by module; those of modules that are imported as a whole by "".
    """
    tree = ast.parse(text)
    docstring = ast.get_docstring(tree, clean=False)
    if docstring is None:
        raise ValueError(f"{module}: no docstring")
    end, above = 0, True
    for statement in tree.body[1:]:
        if not isinstance(statement, (ast.Import, ast.ImportFrom)):
            above = False
            continue
        if not above:
            raise ValueError(f"{module}, line {statement.lineno}: an import below other code")
        end = statement.end_lineno or 0
        _add(module, statement, imports)
    return docstring, "\n".join(text.splitlines()[end:]).strip("\n")


def _add(module: str, statement: ast.Import | ast.ImportFrom, imports: dict[str, set[str]]) -> None:
    if any(alias.asname for alias in statement.names):
        raise ValueError(f"{module}, line {statement.lineno}: an import under another name")
    if isinstance(statement, ast.Import):
        imports[""].update(alias.name for alias in statement.names)
    elif not statement.level and statement.module != "__future__":
        imports.setdefault(str(statement.module), set()).update(alias.name for alias in statement.names)


def _defined(code: str) -> set[str]:
    """Return the names at the top of a module."""
    found: set[str] = set()
    for statement in ast.parse(code).body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            found.add(statement.name)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            found |= {node.id for each in targets for node in ast.walk(each) if isinstance(node, ast.Name)}
    return found


def _comment(lines: list[str]) -> list[str]:
    return [f"# {line}".rstrip() for line in lines]
