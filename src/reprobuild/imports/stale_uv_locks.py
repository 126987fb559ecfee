"""Whether a uv.lock is for what the projects beside it ask for now. No network.

uv writes into a lock what it was made for: the requirements of each project, its groups, and the rules of the
workspace. `uv lock --check` would ask an index, and compare the settings of this machine, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from posixpath import normpath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ..errors import RequestError
from ..request.model import PYTHONS
from ..request.toml_reader import table_in
from ..resolve.target import holds
from .common import load_toml, marker_of, minor_of
from .group_pythons import checked_groups, group_entries, group_pythons
from .marker_grid import AskedPackage, MarkedLine, are_same, bounds, python_marker
from .project_files import read_text
from .stale_uv_settings import other_settings
from .target_system import target
from .uv_settings import with_settings

_WITH_GROUP_SETTINGS = 5
"""The revision of a lock that has the default groups of a project, and the Pythons of its groups."""

_HINT = "update the lock with the tool that made it: `uv lock`"
_AT = ("git", "url", "path", "directory", "editable", "virtual", "workspace", "index")

_COMMAS = re.compile(r"python_(full_)?version (not )?in \"[^\"]*,")
"""Versions with commas, which uv does not know: it takes such a comparison for true."""


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
    manifest, listed = table_in(lock, "manifest"), lock.get("package", [])
    members = {str(name) for name in manifest.get("members", ())}
    packages = [each for each in listed if isinstance(each, dict)]
    requires = []
    for package in packages:
        source = table_in(package, "source")
        at = source.get("editable", source.get("virtual", source.get("directory")))
        if at == "." or (at is not None and package.get("name") in members):
            project = file.parent / str(at) / "pyproject.toml"
            if project.is_file():
                member = _UvProject(project, file, lock)
                yield from member.compare(package)
                requires += [member.requires] if member.requires else []
    then = SpecifierSet(str(lock.get("requires-python", "")))
    now = [SpecifierSet(each) for each in requires]
    if then and now and bounds(now, then) != bounds([then], *now):
        yield f"{file}: may be out of date: requires-python is {', '.join(requires)}, the lock's {then}"
    root = _UvProject(file.with_name("pyproject.toml"), file, lock)
    if "project" not in root.data:
        yield from root.compare_groups(table_in(manifest, "dependency-groups"), [])
    known = {str(package.get("name")) for package in packages}
    yield from root.compare_rules(manifest, known)
    for key in other_settings(root.uv, lock, root.name, known):
        yield root.may_differ(f"tool.uv.{key} is not the setting that the lock was made with")


class _UvProject:
    """A pyproject.toml, as uv reads it, beside a lock of uv."""

    def __init__(self, project: Path, file: Path, lock: Mapping[str, Any]) -> None:
        self.data = load_toml(read_text(project), str(project))
        self._project, self._file = project, file
        self._itself = table_in(self.data, "project")
        self.name = canonicalize_name(str(self._itself.get("name", "")))
        self._own = table_in(table_in(self.data, "tool"), "uv")
        self._own_sources = {canonicalize_name(name) for name in table_in(self._own, "sources")}
        self.uv, _ = with_settings(self._own, project)
        self._group_settings = table_in(self._own, "dependency-groups")
        self._revision = int(lock.get("revision", 0))
        without = {canonicalize_name(str(name)) for name in self.uv.get("no-sources-package", ())}
        self._sources = {
            canonicalize_name(name): entry if isinstance(entry, list) else [entry]
            for name, entry in table_in(self.uv, "sources").items()
            if self.uv.get("no-sources") is not True and canonicalize_name(name) not in without
        }
        self._unsure: dict[str, str] = {}
        """Package → a marker that uv reads in its own way."""
        self.requires = str(self._itself.get("requires-python", ""))
        self._locked_for = str(lock.get("requires-python", ""))
        self._members = {str(name) for name in table_in(lock, "manifest").get("members", ())}
        self._pythons = [
            python
            for python in PYTHONS
            if target(python).fits(self.requires) and target(python).fits(self._locked_for)
        ]
        if not self._pythons and (only := minor_of(self._locked_for)) in PYTHONS:
            self._pythons = [only]  # of another patch version than the one of an image

    def compare(self, package: Mapping[str, Any]) -> Iterator[str]:
        """Compare the project's entry in the lock; yield lines on what cannot be compared."""
        self._compare_pythons()
        metadata = table_in(package, "metadata")
        yield from self._compare_version(package.get("version"))
        locked = self._locked(metadata.get("requires-dist", ()))
        asked: list[MarkedLine] = []
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
            yield from self._elsewhere(asked, locked, "project.dependencies")
            if "provides-extras" in metadata:
                then = {canonicalize_name(each) for each in metadata["provides-extras"]}
                for extra in sorted({canonicalize_name(each) for each in optional} ^ then):
                    says = "no longer there" if extra in then else "new"
                    yield self.may_differ(f"project.optional-dependencies.{extra} is {says}")
        yield from self.compare_groups(table_in(metadata, "requires-dev"), asked, locked)
        if self._revision >= _WITH_GROUP_SETTINGS and "project" in self.data:
            if self._own.get("default-groups") != package.get("default-groups"):
                yield self.may_differ("tool.uv.default-groups is not the setting that the lock was made with")
            yield from self._compare_pythons_of_groups(table_in(package, "group-requires-python"))
        for name, marker in sorted(self._unsure.items()):
            yield f"{self._file}: cannot tell if it is up to date: uv ignores a part of {name} ; {marker}"

    def may_differ(self, what: str) -> str:
        """Return the line on a change that moves nothing which the lock pins for an image."""
        return f"{self._file}: may be out of date: {self._project}: {what}"

    def _compare_version(self, then: object) -> Iterator[str]:
        now = self._itself.get("version")
        if "project" in self.data and str(now) != str(then):
            try:
                same = Version(str(now)) == Version(str(then))
            except InvalidVersion:
                same = False
            if not same:
                yield self.may_differ(
                    f"its version is {now or 'dynamic'}, and was {then or 'dynamic'} when the lock was made"
                )

    def compare_groups(
        self,
        locked: Mapping[str, Any],
        of_extras: Sequence[MarkedLine],
        locked_extras: Sequence[MarkedLine] = (),
    ) -> Iterator[str]:
        """Compare the groups; a group may ask for extras of the project itself."""
        groups = checked_groups(self.data, str(self._project))
        dev = self.uv.get("dev-dependencies", [])
        own = {*groups, *(["dev"] if dev else [])}
        for group in sorted({*own, *locked}):
            asked = [*self._group(groups, group)] if group in groups else []
            asked += self._asked(dev if group == "dev" else [], group=group)
            then, place = self._locked(locked.get(group, ())), f"dependency-groups.{group}"
            self._compare(
                [*asked, *(line for line in of_extras if line.extra is not None)],
                [*then, *(each for each in locked_extras if "extra" in str(each.when))],
                place,
            )
            yield from self._elsewhere(asked, then, place)
            if (group in own) is not (group in locked):
                yield self.may_differ(f"{place} is {'new' if group in own else 'no longer there'}")

    def compare_rules(self, manifest: Mapping[str, Any], packages: Collection[str]) -> Iterator[str]:
        """Compare the constraints, overrides and exclusions, which are those of the workspace's root.

        As for uv, a new one counts only for a package that the lock has.
        """
        for key in ("constraint", "override", "exclude"):
            place, listed = f"{key}-dependencies", manifest.get(f"{key}s", ())
            texts = self.uv.get(place, ())
            if key == "exclude":
                listed = [{"name": re.split(r"[^\w.-]", text)[0]} for text in listed]
                texts = [re.split(r"[^\w.-]", text)[0] for text in texts]
            then = self._locked(listed)
            known = {*packages, *(line.asked.name for line in then)}
            now = [line for line in self._asked(texts) if line.asked.name in known]
            if key == "exclude":
                now = [line._replace(asked=line.asked._replace(at="")) for line in now]
            self._compare(now, then, f"tool.uv.{place}")
            yield from self._elsewhere(now, then, f"tool.uv.{place}")

    def _elsewhere(
        self, asked: Sequence[MarkedLine], locked: Sequence[MarkedLine], place: str
    ) -> Iterator[str]:
        """Yield a line for each package that is asked for in another way on other systems or Pythons."""
        for name in sorted({line.asked.name for line in (*asked, *locked)} - {*self._unsure}):
            now, then = (
                [
                    line._replace(asked=self._of_member(line.asked))
                    for line in lines
                    if line.asked.name == name
                ]
                for lines in (asked, locked)
            )
            if not now or not then or not are_same(now, then, SpecifierSet(self._locked_for)):
                yield self.may_differ(
                    f"{place} asks for {name} in another way, on other systems or Pythons, than when the "
                    "lock was made"
                )

    def _of_member(self, asked: AskedPackage) -> AskedPackage:
        # With its folder or without, by the release of uv.
        return asked._replace(at="", versions=SpecifierSet()) if asked.name in self._members else asked

    def _compare_pythons(self) -> None:
        """Raise `RequestError` for a ``requires-python`` that the lock is not for.

        That of a workspace is the common part of those of its members.
        """
        grouped = bool(table_in(self.uv, "dependency-groups"))
        for python in PYTHONS if self.requires and self._locked_for else ():
            here, there = target(python).fits(self.requires), target(python).fits(self._locked_for)
            if (there and not here) or (here and not there and not self._members and not grouped):
                raise RequestError(
                    f"{self._file}: out of date: {self._project} has requires-python {self.requires}, and "
                    f"the lock was made for {self._locked_for}",
                    hint=_HINT,
                )

    def _group(self, groups: Mapping[str, Any], group: str) -> Iterator[MarkedLine]:
        """Yield what a group asks for, each for the Pythons of all groups that it is in."""
        for text, pythons in group_entries(groups, group, self._group_settings):
            own = python_marker(pythons)
            for line in self._asked([text], group=group):
                yield line if own is None else line._replace(when=(*line.when, own))

    def _compare_pythons_of_groups(self, locked: Mapping[str, str]) -> Iterator[str]:
        """Compare the common Pythons of each group and those that it includes."""
        groups = checked_groups(self.data, str(self._project))
        for group in sorted(groups):
            now, then = (
                group_pythons(groups, group, self._group_settings),
                SpecifierSet(locked.get(group, "")),
            )
            if bool(now) is not bool(then) or bounds([now], then) != bounds([then], now):
                yield self.may_differ(
                    f"the Pythons of dependency-groups.{group} are other ones than when the lock was made"
                )

    def _asked(
        self, texts: Iterable[object], extra: str | None = None, group: str | None = None
    ) -> Iterator[MarkedLine]:
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
            plain = AskedPackage(name, extras, requirement.specifier)
            when = () if requirement.marker is None else (requirement.marker,)
            if _COMMAS.search(str(requirement.marker)):
                self._unsure[name] = str(requirement.marker)
            if requirement.url is not None:
                yield MarkedLine(
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
                yield MarkedLine(plain._replace(at=at, versions=versions), (*when, *own), before, extra)
                if not own:
                    break
                before = (*before, *own)
            else:
                yield MarkedLine(plain, when, before, extra)

    def _at_source(self, name: str, entry: Mapping[str, Any]) -> str:
        if "index" not in entry:
            return self._at(entry, (self._project if name in self._own_sources else self._file).parent)
        listed = self.uv.get("index", [])
        for index in listed if isinstance(listed, list) else ():
            if isinstance(index, dict) and index.get("name") == entry["index"]:
                return self._at({"index": index.get("url")}, self._file.parent)
        return "index"

    def _compare(
        self,
        asked: Sequence[MarkedLine],
        locked: Sequence[MarkedLine],
        place: str,
        *,
        extras: Sequence[str] = (),
    ) -> None:
        for python in self._pythons:
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
        self, lines: Sequence[MarkedLine], markers: Mapping[str, str], extras: Sequence[str]
    ) -> set[AskedPackage]:
        """Return what counts in an environment, with what the project's own extras stand for."""
        found: set[AskedPackage] = set()
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
                if line.asked.name == self.name:
                    todo += [each for each in line.asked.extras if each not in done]
                else:
                    found.add(self._of_member(line.asked))
        return found

    def _locked(self, entries: object) -> list[MarkedLine]:
        """Return the requirements of a list in the lock. Raises `RequestError`."""
        found = []
        for entry in entries if isinstance(entries, list) else ():
            try:
                asked = AskedPackage(
                    canonicalize_name(entry["name"]),
                    frozenset(canonicalize_name(each) for each in entry.get("extras", ())),
                    SpecifierSet(str(entry.get("specifier", ""))),
                    self._at(entry, self._file.parent),
                )
            except (LookupError, TypeError, AttributeError, InvalidSpecifier) as error:
                raise RequestError(f"uv.lock: {entry!r} is not a requirement: {error}") from None
            found.append(MarkedLine(asked, _marker(entry.get("marker"), f"uv.lock: {asked.name}")))
        return found

    def _at(self, table: Mapping[str, Any], folder: Path) -> str:
        """Return where a table of uv's takes a package from, in the words of `AskedPackage.at`."""
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
