"""Whether a uv.lock is for what the projects beside it ask for now. No network.

uv writes into a lock what it was made for: the requirements of each project, its groups, and the rules of the
workspace. `uv lock --check` would ask an index, and compare the settings of this machine, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from posixpath import normpath
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from packaging.dependency_groups import resolve_dependency_groups
from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from ..errors import RequestError
from ..request.model import PYTHONS
from ..request.toml_reader import table_in
from ..resolve.target import holds
from .common import load_toml, marker_of, minor_of
from .project_files import read_text
from .pyproject import check_size
from .target_system import target
from .uv_table import with_uv_toml, with_workspace

_HINT = "update the lock with the tool that made it: `uv lock`"
_AT = ("git", "url", "path", "directory", "editable", "virtual", "workspace", "index")

_OPTIONS = {
    "resolution": ("resolution-mode", "highest"),
    "prerelease": ("prerelease-mode", "if-necessary-or-explicit"),
    "fork-strategy": ("fork-strategy", "requires-python"),
}
"""Keys of tool.uv, each with the key of a lock's options and the default of both."""

_MARKED = {"environments": "supported-markers", "required-environments": "required-markers"}
"""Key of tool.uv → key of a lock."""

_NAMES = ("linux darwin win32", "Linux Darwin Windows", "posix posix nt")
_SYSTEMS = [
    {"sys_platform": key, "platform_system": name, "os_name": kind, "platform_machine": machine}
    for key, name, kind in zip(*(words.split() for words in _NAMES), strict=True)
    for machine in ("x86_64", "aarch64", "arm64", "AMD64", "ARM64")
]
"""Markers of the systems that locks are made for."""

_COMMAS = re.compile(r"python_(full_)?version (not )?in \"[^\"]*,")
"""Versions with commas, which uv does not know: it takes such a comparison for true."""


class _Asked(NamedTuple):
    """A requirement as both uv.lock and pyproject.toml have it, without its marker."""

    name: str
    extras: frozenset[str]
    versions: SpecifierSet
    at: str = ""
    """Another place than the usual index: the kind, and what tells two of a kind apart."""

    def __str__(self) -> str:
        extras = f"[{','.join(sorted(self.extras))}]" if self.extras else ""
        return f"{self.name}{extras}{self.versions}{f' from {self.at}' if self.at else ''}"


class _Line(NamedTuple):
    asked: _Asked
    when: tuple[Marker, ...]
    """Markers that must all be true."""
    unless: tuple[Marker, ...] = ()
    """Markers of earlier sources, which take precedence where they are true."""
    extra: str | None = None
    """That of pyproject.toml; in a lock it is in the marker."""


def check_uv_lock(file: Path) -> tuple[str, ...]:
    """Compare a ``uv.lock`` with the projects that it is for; return lines on what cannot be compared.

    Raises `RequestError` that names the first requirement that differs.
    """
    lock = load_toml(read_text(file), str(file))
    try:
        return tuple(_lines(file, lock))
    except (AttributeError, LookupError, TypeError) as error:  # uv has read both: a form of a newer release
        return (
            f"{file}: cannot tell if it is up to date: a part of it or of its project is unknown: {error}",
        )


def _lines(file: Path, lock: Mapping[str, Any]) -> Iterator[str]:
    manifest, packages = table_in(lock, "manifest"), lock.get("package", [])
    members = {str(name) for name in manifest.get("members", ())}
    for package in (each for each in packages if isinstance(each, dict)):
        source = table_in(package, "source")
        at = source.get("editable", source.get("virtual", source.get("directory")))
        if at == "." or (at is not None and package.get("name") in members):
            project = file.parent / str(at) / "pyproject.toml"
            if project.is_file():
                yield from _UvProject(project, file, lock).compare(package)
    root = _UvProject(file.with_name("pyproject.toml"), file, lock)
    if "project" not in root.data:
        root.compare_groups(table_in(manifest, "dependency-groups"), [])
    root.compare_rules(manifest)
    yield from root.other_options(lock, manifest)


class _UvProject:
    """A pyproject.toml, as uv reads it, beside a lock of uv."""

    def __init__(self, project: Path, file: Path, lock: Mapping[str, Any]) -> None:
        self.data = load_toml(read_text(project), str(project))
        self._project, self._file = project, file
        self._itself = table_in(self.data, "project")
        self._name = canonicalize_name(str(self._itself.get("name", "")))
        own = table_in(table_in(self.data, "tool"), "uv")
        self._own_sources = {canonicalize_name(name) for name in table_in(own, "sources")}
        self._uv = with_uv_toml(with_workspace(own, project), project)
        without = {canonicalize_name(str(name)) for name in self._uv.get("no-sources-package", ())}
        self._sources = {
            canonicalize_name(name): entry if isinstance(entry, list) else [entry]
            for name, entry in table_in(self._uv, "sources").items()
            if self._uv.get("no-sources") is not True and canonicalize_name(name) not in without
        }
        self._unsure: dict[str, str] = {}
        """Package → a marker that uv reads in its own way."""
        self._requires = str(self._itself.get("requires-python", ""))
        self._locked_for = str(lock.get("requires-python", ""))
        self._members = {str(name) for name in table_in(lock, "manifest").get("members", ())}
        self._pythons = [
            python
            for python in PYTHONS
            if target(python).fits(self._requires) and target(python).fits(self._locked_for)
        ]
        if not self._pythons and (only := minor_of(self._locked_for)) in PYTHONS:
            self._pythons = [only]  # of another patch version than the one of an image

    def compare(self, package: Mapping[str, Any]) -> Iterator[str]:
        """Compare the project's entry in the lock; yield lines on what cannot be compared."""
        self._compare_pythons()
        metadata = table_in(package, "metadata")
        locked = self._locked(metadata.get("requires-dist", ()))
        asked: list[_Line] = []
        dynamic = {"dependencies", "optional-dependencies"} & {*self._itself.get("dynamic", ())}
        if dynamic:
            yield f"{self._file}: cannot tell if it is up to date: {self._project} has dynamic {min(dynamic)}"
            locked = []  # what an extra of the project stands for in a group is not known either
        elif "metadata" not in package and package.get("dependencies"):
            yield f"{self._file}: cannot tell if it is up to date: it does not say what it was made for"
            return
        else:
            asked = [*self._asked(self._itself.get("dependencies", ()))]
            optional = table_in(self._itself, "optional-dependencies")
            for extra, texts in optional.items():
                asked += self._asked(texts, extra=canonicalize_name(extra))
            self._compare(asked, locked, "project.dependencies")
            for extra in optional:
                place = f"project.optional-dependencies.{extra}"
                self._compare(asked, locked, place, extras=[canonicalize_name(extra)])
        self.compare_groups(table_in(metadata, "requires-dev"), asked, locked)
        for name, marker in sorted(self._unsure.items()):
            yield f"{self._file}: cannot tell if it is up to date: uv ignores a part of {name} ; {marker}"

    def compare_groups(
        self, locked: Mapping[str, Any], of_extras: Sequence[_Line], locked_extras: Sequence[_Line] = ()
    ) -> None:
        """Compare the groups; a group may ask for extras of the project itself."""
        groups = table_in(self.data, "dependency-groups")
        names = {str(canonicalize_name(name)): name for name in groups}
        dev = self._uv.get("dev-dependencies", [])
        settings = {str(canonicalize_name(k)): v for k, v in table_in(self._uv, "dependency-groups").items()}
        for group in sorted({*names, *locked, *(["dev"] if dev else [])}):
            texts = [*self._group(groups, names[group])] if group in names else []
            asked = [*self._asked([*texts, *(dev if group == "dev" else [])], group=group)]
            self._compare(
                [*asked, *(line for line in of_extras if line.extra is not None)],
                [
                    *self._locked(locked.get(group, ())),
                    *(each for each in locked_extras if "extra" in str(each.when)),
                ],
                f"dependency-groups.{group}",
                requires=str(table_in(settings, group).get("requires-python", "")),
            )

    def compare_rules(self, manifest: Mapping[str, Any]) -> None:
        """Compare the constraints, overrides and exclusions, which are those of the workspace's root."""
        for key in ("constraint", "override"):
            place = f"{key}-dependencies"
            asked = [*self._asked(self._uv.get(place, ()))]
            self._compare(asked, self._locked(manifest.get(f"{key}s", ())), f"tool.uv.{place}")
        gone, then = (
            self._locked([{"name": re.split(r"[^\w.-]", text)[0]} for text in texts])
            for texts in (self._uv.get("exclude-dependencies", ()), manifest.get("excludes", ()))
        )
        self._compare(gone, then, "tool.uv.exclude-dependencies")

    def other_options(self, lock: Mapping[str, Any], manifest: Mapping[str, Any]) -> Iterator[str]:
        """Yield lines on settings of the resolution; a variable or uv's own settings may set them, too."""
        options = table_in(lock, "options")
        other = [
            key
            for key, (name, default) in _OPTIONS.items()
            if self._uv.get(key, default) != options.get(name, default)
        ]
        present = {
            "exclude-newer": options.get("exclude-newer"),
            "exclude-newer-package": options.get("exclude-newer-package"),
            "dependency-metadata": manifest.get("dependency-metadata"),
            "build-constraint-dependencies": manifest.get("build-constraints"),
        }
        other += [key for key, then in present.items() if bool(self._uv.get(key)) is not bool(then)]
        for key, name in _MARKED.items():
            other += [key] * (self._where(self._uv.get(key, [])) != self._where(lock.get(name, [])))
        asked, locked = (self._conflicts(table.get("conflicts", [])) for table in (self._uv, lock))
        if asked - locked or (locked and not asked and not self._members):
            other.append("conflicts")
        for key in other:
            yield (
                f"{self._file}: may be out of date: {self._project}: tool.uv.{key} is not the setting that "
                "the lock was made with"
            )

    def _where(self, markers: object) -> list[bool]:
        """Return for which Pythons and systems one of some markers is true; all if there is none."""
        texts = markers if isinstance(markers, list) else [markers]
        every = [_marker(text, str(self._project)) for text in texts]
        return [
            not every or any(holds(each, {**target(python).markers, **system}) for (each,) in every)
            for python in PYTHONS
            for system in _SYSTEMS
        ]

    def _conflicts(self, listed: object) -> set[frozenset[tuple[str, ...]]]:
        """Return the sets of extras and groups, with their packages, that exclude each other."""
        return {
            frozenset(
                (canonicalize_name(each.get("package", self._name)), key, canonicalize_name(each[key]))
                for each in one
                for key in {"extra", "group"} & each.keys()
            )
            for one in (listed if isinstance(listed, list) else ())
        }

    def _compare_pythons(self) -> None:
        """Raise `RequestError` for a ``requires-python`` that the lock is not for.

        That of a workspace is the common part of those of its members.
        """
        grouped = bool(table_in(self._uv, "dependency-groups"))
        for python in PYTHONS if self._requires and self._locked_for else ():
            here, there = target(python).fits(self._requires), target(python).fits(self._locked_for)
            if (there and not here) or (here and not there and not self._members and not grouped):
                raise RequestError(
                    f"{self._file}: out of date: {self._project} has requires-python {self._requires}, and "
                    f"the lock was made for {self._locked_for}",
                    hint=_HINT,
                )

    def _group(self, groups: Mapping[str, Any], group: str) -> Sequence[str]:
        try:
            check_size(dict(groups), group)
            return resolve_dependency_groups(dict(groups), group)
        except (LookupError, ValueError, TypeError, ExceptionGroup) as error:
            raise RequestError(f"{self._project}: dependency-groups.{group}: {error}") from None

    def _asked(
        self, texts: Iterable[object], extra: str | None = None, group: str | None = None
    ) -> Iterator[_Line]:
        """Yield requirements with each place that ``tool.uv.sources`` may give them, by its marker."""
        for text in texts:
            if not isinstance(text, str):
                raise TypeError(f"{text!r} is not a string")
            try:
                requirement = Requirement(text)
            except InvalidRequirement as error:
                raise RequestError(f"{self._project}: {text!r}: {str(error).splitlines()[0]}") from None
            name = canonicalize_name(requirement.name)
            extras = frozenset(canonicalize_name(each) for each in requirement.extras)
            plain = _Asked(name, extras, requirement.specifier)
            when = () if requirement.marker is None else (requirement.marker,)
            if _COMMAS.search(str(requirement.marker)):
                self._unsure[name] = str(requirement.marker)
            if requirement.url is not None:
                yield _Line(
                    plain._replace(at=self._at_url(requirement.url), versions=SpecifierSet()), when, (), extra
                )
                continue
            before: tuple[Marker, ...] = ()
            for entry in self._sources.get(name, ()):
                if not isinstance(entry, dict) or any(
                    key in entry and canonicalize_name(str(entry[key])) != (where or "")
                    for key, where in (("extra", extra), ("group", group))
                ):
                    continue
                own = _marker(entry.get("marker"), str(self._project))
                at = self._at_source(name, entry)
                versions = plain.versions if at.startswith("index") else SpecifierSet()
                yield _Line(plain._replace(at=at, versions=versions), (*when, *own), before, extra)
                if not own:
                    break
                before = (*before, *own)
            else:
                yield _Line(plain, when, before, extra)

    def _at_source(self, name: str, entry: Mapping[str, Any]) -> str:
        if "index" not in entry:
            return self._at(entry, (self._project if name in self._own_sources else self._file).parent)
        listed = self._uv.get("index", [])
        for index in listed if isinstance(listed, list) else ():
            if isinstance(index, dict) and index.get("name") == entry["index"]:
                return self._at({"index": index.get("url")}, self._file.parent)
        return "index"

    def _compare(
        self,
        asked: Sequence[_Line],
        locked: Sequence[_Line],
        place: str,
        *,
        extras: Sequence[str] = (),
        requires: str = "",
    ) -> None:
        for python in self._pythons:
            if not target(python).fits(requires):
                continue
            markers = target(python).markers
            now, then = (self._active(lines, markers, extras) for lines in (asked, locked))
            names = {each.name for each in now ^ then if each.name not in self._unsure}
            if not names:
                continue
            name = min(names)
            wanted = ", ".join(sorted(str(each) for each in now if each.name == name))
            had = ", ".join(sorted(str(each) for each in then if each.name == name))
            says = f"asks for {wanted}" if wanted else f"no longer asks for {name}"
            raise RequestError(
                f"{self._file}: out of date: {self._project}: {place} {says}, and the lock was made for "
                f"{had or 'a project without it'}",
                hint=_HINT,
            )

    def _active(
        self, lines: Sequence[_Line], markers: Mapping[str, str], extras: Sequence[str]
    ) -> set[_Asked]:
        """Return what counts in an environment, with what the project's own extras stand for."""
        found: set[_Asked] = set()
        todo, done = ["", *extras], set[str]()
        while todo:
            extra = todo.pop()
            done.add(extra)
            here = {**markers, "extra": extra}
            for line in lines:
                if line.extra is not None and line.extra != extra:
                    continue
                if not all(holds(each, here) for each in line.when) or any(
                    holds(each, here) for each in line.unless
                ):
                    continue
                if line.asked.name == self._name:
                    todo += [each for each in line.asked.extras if each not in done]
                elif line.asked.name in self._members:  # with its folder or without, by the release of uv
                    found.add(line.asked._replace(at="", versions=SpecifierSet()))
                else:
                    found.add(line.asked)
        return found

    def _locked(self, entries: object) -> list[_Line]:
        """Return the requirements of a list in the lock. Raises `RequestError`."""
        found = []
        for entry in entries if isinstance(entries, list) else ():
            try:
                asked = _Asked(
                    canonicalize_name(entry["name"]),
                    frozenset(canonicalize_name(each) for each in entry.get("extras", ())),
                    SpecifierSet(str(entry.get("specifier", ""))),
                    self._at(entry, self._file.parent),
                )
            except (LookupError, TypeError, AttributeError, InvalidSpecifier) as error:
                raise RequestError(f"uv.lock: {entry!r} is not a requirement: {error}") from None
            found.append(_Line(asked, _marker(entry.get("marker"), f"uv.lock: {asked.name}")))
        return found

    def _at(self, table: Mapping[str, Any], folder: Path) -> str:
        """Return where a table of uv's takes a package from, in the words of `_Asked.at`."""
        kind = next((key for key in _AT if table.get(key)), "")
        value = str(table.get(kind, ""))
        match kind:
            case "":
                return ""
            case "git":
                query = {key: texts[0] for key, texts in parse_qs(urlsplit(value).query).items()}
                given = {**query, **table}
                ref = next((str(given[key]) for key in ("rev", "tag", "branch") if given.get(key)), "")
                return _at_git(value, ref, str(given.get("subdirectory", "")))
            case "url":
                return self._at_url(value)
            case "index" if not re.match("https?:", value):
                return "index"
            case "index":
                return f"index {_plain(value)}"
            case _:
                return self._at_path(folder / value)

    def _at_url(self, url: str) -> str:
        parts = urlsplit(url)
        if url.startswith("git+"):
            repository, _, ref = parts.path.rpartition("@") if "@" in parts.path else (parts.path, "", "")
            under = parse_qs(parts.fragment).get("subdirectory", [""])[0]
            return _at_git(parts._replace(path=repository).geturl(), unquote(ref), under)
        if re.match("https?:", url):
            return f"url {_plain(url)}"
        path = unquote(parts.path)
        if not self._members:  # else it is the folder that uv was started in
            path = path.replace("${PROJECT_ROOT}", str(self._file.absolute().parent))
        if "${" in path or not path.startswith("/"):
            raise LookupError(f"the folder of {url}")
        return self._at_path(Path(path))

    def _at_path(self, path: Path) -> str:
        """Return a folder or file as the lock writes it, from the lock's own folder."""
        return f"path {os.path.relpath(os.path.realpath(path), os.path.realpath(self._file.parent))}"


def _at_git(url: str, ref: str, under: str) -> str:
    words = [
        "git",
        _plain(url).removesuffix(".git").rstrip("/"),
        ref,
        normpath(under.strip("/")) if under else "",
    ]
    return " ".join(filter(None, words))


def _plain(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname or ''}{unquote(parts.path).rstrip('/')}"


def _marker(text: object, place: str) -> tuple[Marker, ...]:
    return () if text is None else (marker_of(text, place),)
