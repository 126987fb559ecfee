"""Read pyproject.toml, setup.cfg and setup.py as text, without running them."""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any

from packaging.utils import canonicalize_name, is_normalized_name

from ..errors import RequestError
from ..host.home import kind_of
from .common import load_toml
from .project_files import read_text

_SUBMODULE = re.compile(r"^\s*path\s*=\s*(\S.*?)\s*$", re.MULTILINE)
_CONDITIONAL = re.compile(r"['\"]:\s*[a-z(]")
"""The name of an extra that is a marker alone, with requirements of the project itself."""
_ABOVE = 8
"""Parent folders of a missing one that may be a git submodule."""
_LARGEST = 1 << 20
"""Characters of a setup.py that is read; the longest known have 100,000."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SetupCall:
    """The arguments of setup() that are written out; what is computed is named in ``computed``."""

    name: str | None = None
    requires: tuple[str, ...] | None = None
    """None: computed. Empty: setup() names none."""
    extras: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    python: str = ""
    """``python_requires``."""
    computed: frozenset[str] = frozenset()


def read_setup_py(file: Path) -> SetupCall:
    """Read the call of setup() in a setup.py, which is not run. Raises `RequestError`.

    What is not a literal, nor a name that is assigned one literal at the top of the file, counts as computed.
    """
    text = read_text(file)
    if len(text) > _LARGEST:
        raise RequestError(f"{file}: has more than {_LARGEST:,} characters")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RequestError(f"{file}: not valid Python: {str(error) or 'it is nested too deeply'}") from None
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "setup"
    ]
    if len(calls) != 1:
        raise RequestError(
            f"{file}: has {len(calls)} calls of setup(); it is read as text and not run, so it must have one",
            hint="write the requirements into a requirements file and import that",
        )
    names = _constants(tree)
    computed = {"**"} if any(word.arg is None for word in calls[0].keywords) else set[str]()
    found: dict[str, Any] = {}
    for word in calls[0].keywords:
        if word.arg in ("name", "install_requires", "extras_require", "python_requires"):
            try:
                found[word.arg] = _literal(word.value, names)
            except (ValueError, TypeError, RecursionError, MemoryError):
                computed.add(word.arg)
    if "extras_require" in computed and _CONDITIONAL.search(text):
        computed.add("install_requires")
    name, python = found.get("name"), found.get("python_requires", "")
    extras = found.get("extras_require", {})
    if not isinstance(extras, dict):
        extras = {}
    return SetupCall(
        name=name if isinstance(name, str) else None,
        requires=None if computed & {"install_requires", "**"} else _lines(found.get("install_requires", [])),
        extras={str(key): lines for key, value in extras.items() if (lines := _lines(value)) is not None},
        python=python if isinstance(python, str) else "",
        computed=frozenset(computed),
    )


def _constants(tree: ast.Module) -> Mapping[str, ast.expr]:
    """Return the names that the file assigns once, at its top, and changes nowhere."""
    seen: dict[str, list[ast.expr | None]] = {}
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    seen.setdefault(target.id, []).append(node.value if id(node) in top else None)
        elif isinstance(node, ast.AugAssign | ast.For) and isinstance(node.target, ast.Name):
            seen.setdefault(node.target.id, []).append(None)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.attr in ("append", "extend", "insert", "remove", "pop", "clear", "update")
        ):
            seen.setdefault(node.func.value.id, []).append(None)
        elif (
            isinstance(node, ast.Subscript | ast.Attribute)
            and isinstance(node.ctx, ast.Store | ast.Del)
            and isinstance(node.value, ast.Name)
        ):
            seen.setdefault(node.value.id, []).append(None)
    return {name: values[0] for name, values in seen.items() if len(values) == 1 and values[0] is not None}


def _literal(node: ast.expr, names: Mapping[str, ast.expr]) -> object:
    if isinstance(node, ast.Name) and node.id in names:
        node = names[node.id]
    return ast.literal_eval(node)


def _lines(value: object) -> tuple[str, ...] | None:
    """Return requirements as setuptools takes them: a list, or lines of text; None for anything else."""
    if isinstance(value, str):
        return tuple(line.strip() for line in value.splitlines() if line.strip())
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return tuple(each.strip() for each in value if each.strip() and not each.strip().startswith("#"))
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class SetupConfig:
    """The parts of a setup.cfg that are read here."""

    name: str | None
    requires: tuple[str, ...]
    files: tuple[str, ...]
    """Requirements files that ``install_requires = file: …`` names."""
    extras: Mapping[str, tuple[str, ...]]
    python: str


def read_setup_cfg(file: Path) -> SetupConfig:
    """Read a setup.cfg: https://setuptools.pypa.io/en/latest/userguide/declarative_config.html.

    Raises `RequestError`.
    """
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(read_text(file), str(file))
    except configparser.Error as error:
        raise RequestError(f"{file}: {' '.join(str(error).split())}") from None
    text = parser.get("options", "install_requires", fallback="")
    files: tuple[str, ...] = ()
    if text.strip().startswith("file:"):
        files, text = (
            tuple(part.strip() for part in text.strip()[5:].replace("\n", ",").split(",") if part.strip()),
            "",
        )
    extras: dict[str, tuple[str, ...]] = {}
    if parser.has_section("options.extras_require"):
        extras = {key: _lines(value) or () for key, value in parser.items("options.extras_require")}
    return SetupConfig(
        name=parser.get("metadata", "name", fallback=None),
        requires=_lines(text) or (),
        files=files,
        extras=extras,
        python=parser.get("options", "python_requires", fallback=""),
    )


def project_name(folder: Path) -> str:
    """Return the name of the project in a folder, as far as its files say it; else the folder's own.

    Raises `RequestError` for a folder that is none of a Python project.
    """
    files = _files_of(folder)
    if not files:
        if (module := _submodule(folder)) is not None:
            raise RequestError(
                f"{folder}: is a git submodule that is not checked out",
                hint=f"run `git -C {quote(str(module[0]))} submodule update --init {quote(module[1])}`",
            )
        if kind_of(folder) == "folder":
            raise RequestError(
                f"{folder}: not the folder of a Python project: "
                "it has no pyproject.toml, setup.cfg or setup.py",
                hint="correct the path, or leave the line out",
            )
        raise RequestError(
            f"{folder}: no such folder",
            hint="correct the path, or leave the line out; what another step fetches must be there first",
        )
    for file in files:
        name: object = None
        if file.name == "pyproject.toml":
            data = load_toml(read_text(file), str(file))
            tables = [data.get("project"), _under(data, "tool", "poetry")]
            name = next((t["name"] for t in tables if isinstance(t, dict) and "name" in t), None)
        elif file.name == "setup.cfg":
            name = read_setup_cfg(file).name
        else:
            try:
                name = read_setup_py(file).name
            except RequestError:
                continue  # its build says the name
        if isinstance(name, str) and name:
            return name if file.name == "pyproject.toml" else _safe(name)
    return _safe(folder.resolve().name)


def _safe(name: str) -> str:
    """Return a name as setuptools makes it valid: ``a-b`` for ``a+b``."""
    safe = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")
    return name if is_normalized_name(canonicalize_name(name)) else safe


def is_project(folder: Path) -> bool:
    """Whether a folder is one of a Python project."""
    return bool(_files_of(folder))


def _files_of(folder: Path) -> list[Path]:
    known = [folder / name for name in ("pyproject.toml", "setup.cfg", "setup.py")]
    return [file for file in known if kind_of(file) == "file"]


def _submodule(folder: Path) -> tuple[Path, str] | None:
    """Return the repository above that has a folder as a submodule, and the path there."""
    target = folder.absolute()
    for root in list(target.parents)[:_ABOVE]:
        listed = root / ".gitmodules"
        if kind_of(listed) == "file":
            for path in _SUBMODULE.findall(read_text(listed)):
                if (root / path).resolve() == target.resolve():
                    return root, path
    return None


def requirements_beside(folder: Path) -> list[str]:
    """Return the requirements files in a project's folder, and in its folder ``requirements``, sorted."""
    found = [*folder.glob("*requirements*.txt"), *folder.glob("requirements/*.txt")]
    return sorted(str(path.relative_to(folder)) for path in found if path.is_file())[:5]


def environment_beside(folder: Path) -> list[str]:
    """Return the files in a project's folder that say what conda installs for it, a lock first."""
    names = ("conda-lock.yml", "environment.yml", "environment.yaml")
    return [name for name in names if (folder / name).is_file()]


def _under(data: Mapping[str, Any], *keys: str) -> object:
    value: object = data
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
