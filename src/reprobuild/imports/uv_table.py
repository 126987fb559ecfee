"""The table ``tool.uv``: each of its keys is used or named in a warning, never silently dropped.

https://docs.astral.sh/uv/reference/settings/
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..errors import RequestError
from .common import expect_texts, is_for, marker_of, requirement_of

_USED = (
    *("sources", "index", "index-url", "extra-index-url", "find-links", "no-sources", "no-sources-package"),
    *("constraint-dependencies", "override-dependencies", "exclude-dependencies", "exclude-newer"),
    *("conflicts", "environments", "workspace", "dev-dependencies", "default-groups"),
    "dependency-groups",
)
_WITHOUT_EFFECT = (
    *("required-version", "system-certs", "native-tls", "offline", "no-cache", "cache-dir", "preview"),
    *("preview-features", "python-preference", "python-downloads", "concurrent-downloads", "pip"),
    *("concurrent-builds", "concurrent-installs", "keyring-provider", "http-proxy", "https-proxy"),
    *("no-proxy", "allow-insecure-host", "link-mode", "compile-bytecode", "upgrade"),
    *("upgrade-package", "reinstall", "reinstall-package", "python-install-mirror", "audit", "cache-keys"),
    *("pypy-install-mirror", "graalpy-install-mirror", "pyodide-install-mirror", "publish-url"),
    *("python-downloads-json-url", "trusted-publishing", "check-url", "add-bounds", "managed", "package"),
    *("required-environments", "build-backend"),
)
"""Keys that do not decide which packages a project gets."""
_DEFAULTS = {
    "resolution": "highest",
    "prerelease": "if-necessary-or-explicit",
    "index-strategy": "first-index",
    "fork-strategy": "requires-python",
}
_INSTEAD = {
    "resolution": "the newest versions that fit are taken",
    "fork-strategy": "the newest versions that fit the image's Python are taken",
    "prerelease": "a pre-release counts only where one is named, or there is nothing else",
    "prerelease-package": "a pre-release counts only where one is named, or there is nothing else",
    "index-strategy": "the first index that knows a package supplies it",
    "no-binary": "wheels are taken where there are any",
    "no-binary-package": "wheels are taken where there are any",
    "no-build": "give --only-wheels to refuse what has no wheel",
    "no-build-package": "give --only-wheels to refuse what has no wheel",
    "no-index": "which indexes are asked is a setting of this machine",
    "dependency-metadata": "what each package says of itself counts",
    "torch-backend": "give --cuda, and --index pytorch",
}
_OF_AN_INDEX = (
    *("name", "url", "explicit", "default", "format"),
    *("authenticate", "publish-url", "cache-control", "ignore-error-codes"),
)
"""Keys of an index that are used, or do not decide which packages a project gets."""
_INSTEAD_IN_INDEX = {
    "exclude-newer": "--as-of excludes newer releases of all indexes, and Debian's with them"
}
NEVER = "python_version < '0'"
"""A marker that is never true: as an override it excludes a package."""
_NO_TORCH = f"torch ; {NEVER}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """The rules of a tool's table: constraints, overrides and a cut-off date."""

    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    """With a marker that never holds: left out wherever it is required."""
    exclude_newer: date | None = None
    """The last whole day whose releases may be used."""
    ignored: tuple[str, ...] = ()
    """One line for each key that has no effect here."""

    def applied(self, table: str) -> tuple[str, ...]:
        """Return a line for each rule of a table."""
        found = [("constraint", each) for each in self.constraints]
        found += [("override", each) for each in self.overrides if not each.endswith(NEVER)]
        gone = [each.partition(" ;")[0] for each in self.overrides if each.endswith(NEVER)]
        return (
            *(f"{table}: {kind} {each}" for kind, each in found),
            *(f"{table}: {name} is left out" for name in gone),
        )

    def with_torch(self, table: str) -> Rules:
        """Return the rules without one that leaves torch out, which a warning names.

        Projects have it where they start from an image whose PyTorch was built there.
        """
        kept = tuple(text for text in self.overrides if text.lower() != _NO_TORCH)
        if kept == self.overrides:
            return self
        line = f"{table}: that torch is left out is ignored: every image has PyTorch"
        return replace(self, overrides=kept, ignored=(*self.ignored, line))


def uv_rules(
    uv: Mapping[str, Any],
    file: Path,
    markers: Mapping[str, str],
    asked: Mapping[str, set[str]],
    placed: Callable[[str, str], Requirement],
) -> Rules:
    """Return the rules of a ``tool.uv``. Raises `RequestError`, also where the project is not for Linux.

    ``asked`` are the packages that the project itself asks for, with their extras; ``placed`` puts a
    requirement, found at a place, where its source says.
    """
    _check_environments(uv, file, markers)

    def of_index(key: str) -> Iterable[Requirement]:
        """Give the requirements of a key without those of an address, which the project's own has."""
        for number, each in enumerate(_requirements(uv, key, file)):
            place = f"{file}: tool.uv.{key}[{number}]"
            is_here = is_for(each.marker, markers, place) and each.url is None
            if not is_here or placed(str(each), place).url is None:
                yield each
            elif (found := asked.get(canonicalize_name(each.name))) is None or not each.extras <= found:
                raise RequestError(
                    f"{place}: {each.name} has an address in tool.uv.sources, which counts here only for "
                    "what the project itself asks for",
                    hint=f"add {_bare_name(each)} to project.dependencies, or give it no source",
                )

    gone = _requirements(uv, "exclude-dependencies", file)
    excluded = {canonicalize_name(each.name) for each in gone}
    overrides = [e for e in of_index("override-dependencies") if canonicalize_name(e.name) not in excluded]
    newest, note = _exclude_newer(uv.get("exclude-newer"), f"{file}: tool.uv.exclude-newer")
    return Rules(
        constraints=_here(of_index("constraint-dependencies"), file, markers),
        overrides=(
            *_overrides(overrides, file, markers),
            *(f"{each.name} ; {NEVER}" for each in gone),
        ),
        exclude_newer=newest,
        ignored=(*note, *unused_keys(uv, file)),
    ).with_torch(f"{file}: tool.uv")


def overridden(uv: Mapping[str, Any], file: Path) -> set[str]:
    """Return the packages that a ``tool.uv`` overrides, by normalized name. Raises `RequestError`."""
    return {canonicalize_name(each.name) for each in _requirements(uv, "override-dependencies", file)}


def unused_keys(uv: Mapping[str, Any], file: Path) -> Iterable[str]:
    """Give a line for each key that has no say, as far as it says something else than the default."""
    for key, value in uv.items():
        if key in _USED or key in _WITHOUT_EFFECT or value in (False, [], {}, _DEFAULTS.get(key)):
            continue
        names = ""
        if isinstance(value, list):
            texts = [each.get("name") if isinstance(each, dict) else each for each in value]
            names = f" ({', '.join(str(text) for text in texts[:5])}{', …' if texts[5:] else ''})"
        why = _INSTEAD.get(key, "reprobuild does not use it")
        yield f"{file}: tool.uv.{key}{names} is ignored: {why}"
    listed = uv.get("index", [])
    for number, index in enumerate(listed if isinstance(listed, list) else ()):
        for key, value in index.items() if isinstance(index, dict) else ():
            if key not in _OF_AN_INDEX and value is not False:
                why = _INSTEAD_IN_INDEX.get(key, "reprobuild does not use it")
                yield f"{file}: tool.uv.index[{number}].{key} ({value}) is ignored: {why}"


def check_conflicts(
    uv: Mapping[str, Any], file: Path, project: str, extras: Collection[str], groups: Collection[str]
) -> None:
    """Raise `RequestError` for extras and groups that exclude each other by ``tool.uv.conflicts``."""
    active = {("extra", canonicalize_name(name)) for name in extras}
    active |= {("group", canonicalize_name(name)) for name in groups}
    sets = uv.get("conflicts", [])
    for number, items in enumerate(sets if isinstance(sets, list) else ()):
        both = []
        for item in items if isinstance(items, list) else ():
            if not isinstance(item, dict):
                raise RequestError(f"{file}: tool.uv.conflicts[{number}]: expected tables")
            if "package" in item and canonicalize_name(str(item["package"])) != canonicalize_name(project):
                continue
            both += [
                f"--{kind} {item[kind]}"
                for kind in ("extra", "group")
                if kind in item and (kind, canonicalize_name(str(item[kind]))) in active
            ]
        if len(both) > 1:
            raise RequestError(
                f"{file}: tool.uv.conflicts[{number}]: {' and '.join(both)} exclude each other",
                hint="name one of them",
            )


def _check_environments(uv: Mapping[str, Any], file: Path, markers: Mapping[str, str]) -> None:
    value = uv.get("environments", [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list):
        raise RequestError(f"{file}: tool.uv.environments: expected a list of markers")
    place = f"{file}: tool.uv.environments"
    fits = [is_for(marker_of(text, place), markers, place) for text in texts]
    if fits and not any(fits):
        raise RequestError(
            f"{place}: none is for {markers['sys_platform']} on {markers['platform_machine']} with Python "
            f"{markers['python_version']}",
            hint="add one that is, or give another --python",
        )


def _requirements(uv: Mapping[str, Any], key: str, file: Path) -> list[Requirement]:
    values = expect_texts(uv.get(key, []), f"{file}: tool.uv.{key}", "requirements")
    return [requirement_of(text, f"{file}: tool.uv.{key}[{n}]") for n, text in enumerate(values)]


def _here(found: Iterable[Requirement], file: Path, markers: Mapping[str, str]) -> tuple[str, ...]:
    """Return requirements for this system, without their markers."""
    kept = [each for each in found if is_for(each.marker, markers, f"{file}: tool.uv: {each.name}")]
    return tuple(sorted({_bare(each) for each in kept}))


def _overrides(found: Iterable[Requirement], file: Path, markers: Mapping[str, str]) -> tuple[str, ...]:
    """Return overrides for this system; a package of which none holds is left out wherever it is required."""
    by_name: dict[str, list[Requirement]] = {}
    for each in found:
        by_name.setdefault(canonicalize_name(each.name), []).append(each)
    texts: list[str] = []
    for name, every in by_name.items():
        texts += _here(every, file, markers) or (f"{name} ; {NEVER}",)
    return tuple(sorted(texts))


def _bare_name(requirement: Requirement) -> str:
    return (
        f"{requirement.name}[{','.join(sorted(requirement.extras))}]"
        if requirement.extras
        else requirement.name
    )


def _bare(requirement: Requirement) -> str:
    plain = Requirement(str(requirement))
    plain.marker = None
    return str(plain)


_SPAN = re.compile(r"P?T?(\d+)\s*(d|day|w|week|h|hour)s?(\s+ago)?", re.IGNORECASE)


def _exclude_newer(value: object, place: str) -> tuple[date | None, tuple[str, ...]]:
    """Return the last whole day that ``exclude-newer`` allows, and a warning if it is unknown."""
    if value is None or value is False:
        return None, ()
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, date):
        return value, ()
    else:
        text = str(value)
        if (span := _SPAN.fullmatch(text.strip())) is not None:
            days = int(span[1]) * {"w": 7, "d": 1, "h": 1 / 24}[span[2][0].lower()]
            moment = datetime.now(UTC) - timedelta(days=min(days, 36500))
        else:
            try:
                if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
                    return date.fromisoformat(text), ()
                moment = datetime.fromisoformat(text)
            except ValueError:
                return None, (f"{place} ({text}) is ignored: not a day, a time or a span like '1 week'",)
    moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    return moment.date() - timedelta(days=1), ()
