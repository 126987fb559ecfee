"""Import setup.py and setup.cfg, read as text: an untrusted program is not run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from packaging.markers import Marker
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from ..errors import RequestError
from .common import Imported, marker_of, merged, minor_of, requirement_of
from .projects import (
    SetupCall,
    SetupConfig,
    environment_beside,
    project_name,
    read_setup_cfg,
    read_setup_py,
    requirements_beside,
)
from .requirements import read_requirements

_MOST_LINES = 10_000


def read_setup(file: Path, extras: Sequence[str], hosts: Collection[str] = ()) -> Imported:
    """Read a setup.py or setup.cfg; a setup.py without requirements defers to the setup.cfg beside it.

    Neither is run here. Of a setup.py that computes its requirements or has none, the project itself is asked
    for: its build in the sandbox tells what it requires. Raises `RequestError`.
    """
    cfg = file if file.name == "setup.cfg" else file.with_name("setup.cfg")
    config = read_setup_cfg(cfg) if cfg.is_file() else None
    call = read_setup_py(file) if file.name == "setup.py" else None
    if call is not None and call.requires is None:
        return _project_itself(file, call, config, extras)
    place, optional = (str(file), call.extras) if call is not None else (str(cfg), {})
    lines = list(call.requires or ()) if call is not None else []
    # What setup.py names goes before the setup.cfg, option by option.
    if config is not None and lines:
        config = replace(config, requires=(), files=())
    if config is not None:
        lines += config.requires
        optional = optional or config.extras
    lines += conditional("", optional, place)
    for extra in extras:
        name = same_extra(extra, optional)
        under = conditional(extra, optional, place)
        if name is None and not under:
            why = f"; {file.name} computes its extras" if call and "extras_require" in call.computed else ""
            raise RequestError(
                f"{file}: no extra {extra!r}{why}", hint=f"it has: {', '.join(sorted(optional)) or 'none'}"
            )
        lines += [*optional.get(name or "", ()), *under]
    own_name = (call.name if call else None) or (config.name if config else None) or ""
    lines = _without_itself(lines, own_name, optional, place)
    name = own_name or file.absolute().parent.name
    python = (call.python if call else "") or (config.python if config else "")
    requires = _specifier(python, place)
    read = [imported_files(file.parent, config.files, hosts)] if config is not None and config.files else []
    if not lines and not any(each.requirements for each in read) and call is not None:
        return _project_itself(file, call, config, extras)
    if not lines and not any(each.requirements for each in read):
        raise _nothing(file, place, optional)
    found = Imported(
        origin=str(file),
        name=name,
        requirements=tuple(requirement_of(text, place) for text in lines),
        python=minor_of(requires),
        requires_python=requires,
    )
    return merged(found, *read)


def _nothing(file: Path, place: str, optional: Mapping[str, Sequence[str]]) -> RequestError:
    beside = [name for name in ("setup.py",) if file.with_name(name).is_file()]
    beside += requirements_beside(file.parent) or environment_beside(file.parent)
    ways = [f"import a file beside it: --from {file.parent / beside[0]}"] if beside else []
    ways += [f"name an extra with --extra: {', '.join(sorted(optional))}"] if optional else []
    return RequestError(f"{place}: no dependencies", hint="; or ".join(ways) or "import a requirements file")


def conditional(extra: str, optional: Mapping[str, Sequence[str]], place: str) -> list[str]:
    """Return the requirements of ``EXTRA:MARKER`` of setuptools; without an extra they are the project's own.

    https://setuptools.pypa.io/en/latest/references/keywords.html (``extras_require``).
    """
    found = []
    for key, lines in optional.items():
        name, colon, text = key.partition(":")
        if not colon or canonicalize_name(name) != canonicalize_name(extra):
            continue
        marker = marker_of(text, f"{place}: extras_require: {key!r}")
        found += [_under(line, marker, place) for line in lines]
    return found


def _under(line: str, marker: Marker | None, place: str) -> str:
    """Return a requirement with a marker in addition to its own."""
    requirement = requirement_of(line, place)
    if marker is not None:
        own = requirement.marker
        requirement.marker = marker if own is None else Marker(f"({own}) and ({marker})")
    return str(requirement)


def _without_itself(
    lines: Sequence[str], project: str, optional: Mapping[str, Sequence[str]], place: str
) -> list[str]:
    """Replace ``ours[plot]`` in a project's own requirements with those of its extra ``plot``."""
    known: dict[str, list[str]] = {}

    def expanded(texts: Sequence[str]) -> list[str]:
        found: dict[str, None] = {}
        for text in texts:
            requirement = requirement_of(text, place)
            if not project or canonicalize_name(requirement.name) != canonicalize_name(project):
                found[text] = None
                continue
            for extra in sorted(requirement.extras):
                found |= dict.fromkeys(_under(line, requirement.marker, place) for line in of_extra(extra))
            if len(found) > _MOST_LINES:
                raise RequestError(
                    f"{place}: more than {_MOST_LINES:,} requirements with those of its extras"
                )
        return list(found)

    def of_extra(extra: str) -> list[str]:
        if extra not in known:
            known[extra] = []  # of a circle
            own = optional.get(same_extra(extra, optional) or "", ())
            known[extra] = expanded([*own, *conditional(extra, optional, place)])
        return known[extra]

    try:
        return expanded(lines)
    except RecursionError:
        raise RequestError(f"{place}: its extras are nested too deeply") from None


def _project_itself(
    file: Path, call: SetupCall, config: SetupConfig | None, extras: Sequence[str]
) -> Imported:
    name = call.name or project_name(file.parent)
    asked = f"[{','.join(extras)}]" if extras else ""
    requires = _specifier(call.python or (config.python if config else ""), str(file))
    folder = quote(str(file.parent.resolve()))
    which = "computes its" if call.requires is None else "names no"
    return Imported(
        origin=str(file),
        name=name,
        requirements=(requirement_of(f"{name}{asked} @ file://{folder}", str(file)),),
        python=minor_of(requires),
        requires_python=requires,
        places={canonicalize_name(name): str(file)},
        applied=(f"{file}: {which} requirements, so the project itself has to be built to learn them",),
    )


def _specifier(text: str, place: str) -> str:
    try:
        return str(SpecifierSet(text))
    except InvalidSpecifier as error:
        raise RequestError(f"{place}: python_requires: {error}") from None


def imported_files(folder: Path, names: Sequence[str], hosts: Collection[str]) -> Imported:
    """Read several requirements files of a project as one. Raises `RequestError`."""
    files = [folder / name for name in names]
    first, *rest = [read_requirements(file, hosts, included=True) for file in files]
    return merged(first, *rest)


def setup_file_in(folder: Path) -> Path | None:
    """Return the file of setuptools' that describes the project in a folder."""
    for name in ("setup.py", "setup.cfg"):
        if (folder / name).is_file():
            return folder / name
    return None


def same_extra(extra: str, optional: Mapping[str, Any]) -> str | None:
    """Return the file's spelling of an extra, whose names are compared in normalized form."""
    wanted = canonicalize_name(extra)
    return next((name for name in optional if canonicalize_name(str(name)) == wanted), None)
