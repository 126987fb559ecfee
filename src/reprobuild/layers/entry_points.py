"""Scripts that pip generates or rewrites for a wheel; after pip's own code, as wheel.py."""

from __future__ import annotations

import ast
import re
import textwrap
import zipfile
from collections.abc import Callable, Container, Mapping
from pathlib import Path

from ..errors import BuildError
from ..fetch.wheel_zip import opened

_PYTHON = b"#!python"
_DOTTED = re.compile(r"\w+(\.\w+)*")
_FIELDS = ("module", "import_name", "func")


def script_template(pip_wheel: Path) -> str:
    """Return the text of a console script as the pip in a wheel writes it; see `template_of`."""
    with opened(pip_wheel, "pip") as archive:
        return template_of(lambda path: archive.read(path) if path in archive.namelist() else None)


def template_of(read: Callable[[str], bytes | None]) -> str:
    """Return the text of a console script as the locked pip writes it, with distlib's ``%(module)s`` fields.

    It changes with pip's version, and the engines that run pip itself must give the same files, so it is read
    from pip's own source: the first text with all of distlib's fields, whatever its name and indentation are
    there. ``read`` gives a file of that source, or None. Raises `BuildError` where there is none.
    """
    for source in ("pip/_internal/operations/install/wheel.py", "pip/_vendor/distlib/scripts.py"):
        for node in ast.walk(_tree(read(source) or b"")):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = textwrap.dedent(node.value).lstrip()
                if set(_FIELDS) <= set(re.findall(r"%\((\w+)\)s", text)) and _fills(text):
                    return text
    raise BuildError(
        "pip: the locked version has no template of its scripts that reprobuild knows",
        hint='ask for another version of pip, for example packages = ["pip<27"]',
    )


def _tree(source: bytes) -> ast.AST:
    try:
        return ast.parse(source)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])


def _fills(template: str) -> bool:
    """Whether a template becomes a Python program with nothing but the known fields."""
    try:
        ast.parse(template % dict.fromkeys(_FIELDS, "name"))
    except (KeyError, ValueError, TypeError, SyntaxError):
        return False
    return True


def is_wrapper(script: str, entry_points: Container[str]) -> bool:
    """Whether a script that the wheel ships is the one of an entry point, which is made anew."""
    lower = script.lower()
    cut = next((len(end) for end in (".exe", "-script.py", ".pya") if lower.endswith(end)), 0)
    return script[: len(script) - cut] in entry_points


def wrapper(package: str, value: str, template: str, prefix: str) -> bytes:
    """Return the text of the script for an entry point of a package."""
    module, _, function = value.partition("[")[0].strip().partition(":")
    module, function = module.strip(), function.strip()
    if not (_DOTTED.fullmatch(module) and _DOTTED.fullmatch(function)):
        raise BuildError(f"{package}: the entry point {value!r} names no function")
    fields = {"module": module, "import_name": function.split(".")[0], "func": function}
    return (f"#!/{prefix}/bin/python\n" + template % fields).encode()


def own_names(console: Mapping[str, str], python: str) -> dict[str, str]:
    """Name pip's and easy_install's scripts as pip does, whatever the wheel calls them."""
    names = dict(console)
    for own, more in (("pip", ("pip3", f"pip{python}")), ("easy_install", (f"easy_install-{python}",))):
        value = names.pop(own, None)
        if value is not None:
            names = {n: v for n, v in names.items() if not re.fullmatch(rf"{own}(-?\d+(\.\d+)?)?", n)}
            names |= dict.fromkeys((own, *more), value)
    return names


def fixed_script(archive: zipfile.ZipFile, info: zipfile.ZipInfo, prefix: str) -> bytes | None:
    """Return a script with the environment's interpreter in its first line; None where it needs no change."""
    with archive.open(info) as file:
        if file.read(len(_PYTHON)) != _PYTHON:
            return None  # it may be a program of 50 MB
        _, newline, rest = file.read().partition(b"\n")
    return f"#!/{prefix}/bin/python\n".encode() + (rest if newline else b"")
