"""Packages without a wheel, in a resolve: offered to uv as stand-ins, built when it chooses one.

uv itself builds nothing. For each release that has only a source archive it gets an empty wheel that requires
nothing, and chooses among all releases by everybody's requirements. What it has chosen is then built in the
sandbox (`sources.workshop`), its stand-in gets the true metadata, and uv chooses again, until it has chosen
what is built.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import requests
from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import (
    InvalidSdistFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from ..errors import BuildError, ResolveError
from ..fetch.store import Store
from ..host.home import open_regular
from ..host.host import Host
from ..layers.wheel_zip import opened
from ..lock.model import BuildFiles, Lock, PythonPackage, SourceArchive, Wheel
from ..net.session import without_credentials
from ..request.direct import Direct
from ..request.model import Request, flavour
from ..sources.direct import locate
from ..sources.failures import OLD_SETUPTOOLS, wants_old_setuptools
from ..sources.sandboxed import BuildFailedError, MoreRequiredError, Recipe
from ..sources.workshop import Workshop, recipe_of, workshop
from . import index_page
from .target import TargetPython
from .torch import end_of
from .uv import SOURCES, file_size, resolve_python
from .uv_standins import standin
from .wheel_metadata import read_member

_BUILD_TAG = "0source"
"""In the name of a stand-in, so that it is told from any wheel."""

_MOST_ROUNDS = 100
"""Builds of one resolve."""

_ARCHIVES = (".tar.gz", ".zip")


@dataclass(frozen=True, slots=True)
class _Built:
    package: PythonPackage
    with_: tuple[PythonPackage, ...]
    """What it was built with."""
    metadata: bytes


class SourcePackages:
    """The packages of one resolve that have no wheel; `close` it at the end.

    ``system`` gives the lock's system, a lock without Python packages, once the Debian packages are known.
    Those of ``existing`` but for ``upgrade`` (None: all) are built with what they were built with before.
    """

    def __init__(
        self,
        request: Request,
        target: TargetPython,
        host: Host,
        system: Callable[[], Lock],
        *,
        existing: Lock | None,
        upgrade: frozenset[str] | None,
        session: requests.Session,
    ) -> None:
        self._request, self._target, self._host, self._session = request, target, host, session
        self._system_of = system
        self._stack = ExitStack()
        self._shop: Workshop | None = None
        self._lock: Lock | None = None
        self._offered: dict[str, dict[str, SourceArchive]] = {}
        self._optional: set[str] = set()
        self._failed: dict[str, str] = {}
        self._built: dict[tuple[str, str], _Built] = {}
        self._found: Sequence[PythonPackage] = ()
        self._existing = existing
        before = () if existing is None or upgrade is None else existing.python
        self._before = {p.pin: p for p in before if p.source is not None and p.name not in (upgrade or ())}
        self._placed: dict[str, str] = {}
        self.offer(
            [p.name for p in self._before.values() if p.source is not None and p.source.kind == "sdist"]
        )

    def close(self) -> None:
        """Let go of what the builds have held."""
        self._stack.close()

    def offer(self, names: Iterable[str], *, optional: bool = False) -> bool:
        """Offer the releases of some packages that have only a source; return whether there are new ones.

        What is ``optional`` is withdrawn again if it cannot be built.
        """
        new = False
        for name in sorted({canonicalize_name(name) for name in names}):
            if name not in self._offered and name not in self._failed and (found := self._sources(name)):
                self._offered[name] = found
                self._optional |= {name} if optional else set()
                new = True
        return new

    def placed(
        self, requirements: Sequence[str], found: Sequence[PythonPackage], notes: list[str]
    ) -> list[str]:
        """Return requirements with stand-ins in the place of sources by their address, which are built.

        ``found`` is what the others give, of which builds may need torch. Raises `BuildError`, `FetchError`.
        """
        self._found = found
        return [self._place(text, notes) if is_source(text) else text for text in requirements]

    def _place(self, text: str, notes: list[str]) -> str:
        if text not in self._placed:
            requirement = Requirement(text)
            name, direct = canonicalize_name(requirement.name), Direct.parse(requirement.url or "")
            before = next((p.source for p in self._before.values() if p.name == name), None)
            shop = self._opened()
            source = locate(name, direct, before, self._host, notes)
            wheel, recipe = self._built_anew(shop, name, None, source)
            version = str(parse_wheel_filename(wheel.filename)[1])
            if self._target.best([wheel.filename]) is None:
                raise BuildError(f"{name}: its build made {wheel.filename}, which does not fit this Python")
            requires = tuple(sorted(package.pin for package in recipe.wheels))
            package = PythonPackage(
                name=name, version=version, wheel=wheel, source=replace(source, requires=requires)
            )
            self._built[name, version] = _Built(
                package, tuple(recipe.wheels), self._metadata(wheel, name, version)
            )
            self._offered[name] = {version: package.source or source}
            extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
            self._placed[text] = f"{name}{extras} @ ./{SOURCES}/{_filename(name, version)}"
        return self._placed[text]

    def failures(self, names: Collection[str]) -> list[str]:
        """Return a line for each of some packages that was withdrawn."""
        return [self._failed[name] for name in sorted(set(names)) if name in self._failed]

    def standins(self) -> Mapping[str, bytes]:
        """Return the wheels to show to uv, by file name."""
        return {
            _filename(name, version): standin(
                name, version, built.metadata if (built := self._built.get((name, version))) else None
            )
            for name, versions in self._offered.items()
            for version in versions
        }

    def settled(self, found: Sequence[PythonPackage]) -> tuple[PythonPackage, ...] | None:
        """Return what uv has chosen, with the built wheels in the place of their stand-ins.

        None where something was built that uv has to know of first. Raises `BuildError`.
        """
        self._found = found
        chosen = [p for p in found if p.wheel.filename == _filename(p.name, p.version)]
        again = False
        for package in chosen:
            key = (package.name, package.version)
            if key in self._built:
                continue
            if len(self._built) >= _MOST_ROUNDS:
                raise ResolveError(f"more than {_MOST_ROUNDS} source packages would have to be built")
            try:
                self._built[key] = self._build(*key)
            except BuildError as error:
                if package.name not in self._optional:
                    raise
                del self._offered[package.name]
                first = error.message.partition(":\n")
                hint = error.hint.partition("\n")[0]
                self._failed[package.name] = f"{first[0]}: {_last(first[2])} ({hint})"
                return None
            again = again or self._says_more(self._built[key].metadata)
        if again:
            return None
        return tuple(self._built[p.name, p.version].package if p in chosen else p for p in found)

    def build_files(self, python: Collection[PythonPackage]) -> BuildFiles:
        """Return what the packages of a lock are built with and its image does not have."""
        own = {(p.pin, p.wheel.sha256) for p in python}
        built = [self._built[p.name, p.version] for p in python if p.source is not None]
        wheels = {p.pin: p for each in built for p in each.with_ if (p.pin, p.wheel.sha256) not in own}
        debian = self._lock.build.debian if built and self._lock is not None else ()
        return BuildFiles(python=tuple(wheels.values()), debian=debian)

    def _says_more(self, metadata: bytes) -> bool:
        raw, _ = parse_email(metadata)
        try:
            fits = SpecifierSet(raw.get("requires_python", "")).contains(f"{self._target.python}.99")
        except InvalidSpecifier:
            fits = True
        return bool(raw.get("requires_dist")) or not fits

    def _sources(self, name: str) -> dict[str, SourceArchive]:
        """Return version → source archive of the releases without a wheel for the target."""
        try:
            files = index_page.files(name, self._session)
        except ResolveError:
            return {}  # of an index that is a folder, which uv alone reads
        until = None if self._request.as_of is None else end_of(self._request.as_of)
        archives: dict[Version, SourceArchive] = {}
        wheels: dict[Version, list[str]] = {}
        for file in files:
            package = file.package
            late = until is not None and (file.uploaded is None or file.uploaded >= until)
            if package.is_yanked or late or not _fits(package.requires_python, self._target):
                continue
            try:
                version = parse_sdist_filename(package.filename)[1]
            except InvalidSdistFilename:
                if package.filename.endswith(".whl") and package.version:
                    with_wheel = re.sub(r"[^\w.+!]", "", package.version)
                    wheels.setdefault(Version(with_wheel), []).append(package.filename)
                continue
            if source := _source(file):
                archives.setdefault(version, source)
        return {
            str(version): source
            for version, source in archives.items()
            if self._target.best(wheels.get(version, [])) is None
        }

    def _build(self, name: str, version: str) -> _Built:
        shop = self._opened()
        source = self._offered[name][version]
        if not source.size:
            source = replace(source, size=file_size(source.url, self._session))
        recipe = self._recipe_before(name, version, source)
        if recipe is None:
            wheel, recipe = self._built_anew(shop, name, version, source)
        else:
            wheel = shop.build_twice(recipe)
        if self._target.best([wheel.filename]) is None:
            raise BuildError(
                f"{name} {version}: its build made {wheel.filename}, which does not fit this Python"
            )
        requires = tuple(sorted(package.pin for package in recipe.wheels))
        package = PythonPackage(
            name=name, version=version, wheel=wheel, source=replace(source, requires=requires)
        )
        return _Built(package, tuple(recipe.wheels), self._metadata(wheel, name, version))

    def _recipe_before(self, name: str, version: str, source: SourceArchive) -> Recipe | None:
        """Return how a package of the existing lock was built, where that is how it would be built now."""
        before, existing = self._before.get(f"{name}=={version}"), self._existing
        if before is None or before.source is None or existing is None:
            return None
        if before.source.sha256 != source.sha256:
            return None
        if existing.request.build.of(name) != self._request.build.of(name):
            return None
        # What it shares with the image, torch above all, may be another version by now.
        shared = {p.pin for p in existing.python} - {p.pin for p in existing.build.python}
        if shared & set(before.source.requires) - {p.pin for p in self._found}:
            return None
        self._opened().archive(name, version, source)
        return recipe_of(before, existing, Store(self._host.home))

    def _built_anew(
        self, shop: Workshop, name: str, version: str | None, source: SourceArchive
    ) -> tuple[Wheel, Recipe]:
        """Build with the newest build requirements that fit, and those that the build shows it needs."""
        system = shop.archive(name, version, source)
        own = self._request.build.of(name)
        more: list[str] = []
        asked: tuple[str, ...] = ()
        while True:
            recipe = Recipe(
                name=name,
                version=version,
                filename=source.filename,
                sha256=source.sha256,
                system=system,
                wheels=self._resolved(name, [*system.requires, *own.requires, *asked, *more, "pip"]),
                asked=asked,
                env=dict(own.env),
                subdirectory=source.subdirectory,
            )
            try:
                return shop.build_twice(recipe), recipe
            except MoreRequiredError as wanted:
                asked = wanted.requirements
            except BuildFailedError as failed:
                if more or not wants_old_setuptools(failed.said):
                    raise
                more.append(OLD_SETUPTOOLS)

    def _resolved(self, name: str, requirements: Sequence[str]) -> tuple[PythonPackage, ...]:
        """Return the wheels for a build; where torch is among them, it and its kin are the lock's own."""
        like, backend = None, None
        try:
            wanted = [_checked(text) for text in requirements]
            names = {canonicalize_name(Requirement(text).name) for text in wanted}
            torch = next((p.version for p in self._found if p.name == "torch"), None)
            if torch is not None and (self._request.build.of(name).torch or "torch" in names):
                wanted.append(f"torch==={torch}")
                own = [p for p in self._found if p.wheel.sha256]
                like = None if self._lock is None else replace(self._lock, python=own)
                backend = None if self._request.index is None else flavour(self._request.cuda)
            return resolve_python(
                wanted,
                self._target,
                as_of=self._request.as_of,
                existing=like,
                upgrade=frozenset(),
                backend=backend,
                session=self._session,
            )
        except ResolveError as error:
            raise BuildError(
                f"{name}: what it is built with cannot be resolved: {error.message}",
                hint=f"{error.hint}; [build.{name}] requires = [...] in the request adds to it",
            ) from None

    def _metadata(self, wheel: Wheel, name: str, version: str) -> bytes:
        with opened(Store(self._host.home).path(wheel.sha256), name) as archive:
            (path,) = (
                n for n in archive.namelist() if n.endswith(".dist-info/METADATA") and n.count("/") == 1
            )
            text = read_member(archive, path)
        raw, _ = parse_email(text)
        own = (canonicalize_name(raw.get("name", "")), raw.get("version", ""))
        if own[0] != name or Version(own[1]) != Version(version):
            raise BuildError(
                f"{name} {version}: the metadata of the wheel that its build made are those of "
                f"{' '.join(filter(None, own)) or 'nothing'}",
                hint="ask for another version of the package, or report it to its maintainers",
            )
        return text

    def _opened(self) -> Workshop:
        if self._shop is None:
            self._lock = self._system_of()
            self._stack.enter_context(self._host.home.lock("build", self._host.console))
            self._shop = self._stack.enter_context(workshop(self._lock, self._host))
        return self._shop


def is_source(text: str) -> bool:
    """Whether a requirement has the address of a source, and not of a wheel."""
    url = Requirement(text).url
    return url is not None and Direct.parse(url).kind != "wheel"


def _filename(name: str, version: str) -> str:
    return f"{name.replace('-', '_')}-{version}-{_BUILD_TAG}-py3-none-any.whl"


def _source(file: index_page.File) -> SourceArchive | None:
    package = file.package
    sha256 = package.digests.get("sha256") or _hash_of(package.url)
    if sha256 is None or not package.filename.endswith(_ARCHIVES):
        return None
    return SourceArchive(
        filename=package.filename,
        url=without_credentials(package.url),
        sha256=sha256.lower(),
        size=package.size or 0,  # an HTML index gives none
        uploaded=None if file.uploaded is None else _whole_second(file.uploaded),
    )


def _hash_of(url: str) -> str | None:
    """Return the SHA-256 of a file in a folder of find-links; None for any other address."""
    parts = urlsplit(url)
    if parts.scheme != "file":
        return None
    try:
        with open_regular(Path(url2pathname(parts.path))) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _whole_second(time: datetime) -> datetime:
    return time.astimezone(UTC).replace(microsecond=0)


def _fits(requires: str | None, target: TargetPython) -> bool:
    try:
        return not requires or SpecifierSet(requires).contains(f"{target.python}.99")
    except InvalidSpecifier:
        return True


def _checked(text: str) -> str:
    """Return a requirement of a build, which a stranger has written. Raises `ResolveError`."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        raise ResolveError(f"{text!r} is not a PEP 508 requirement") from None
    if requirement.url is not None:
        raise ResolveError(f"{text!r} names a URL; only packages of an index can be locked")
    return str(requirement)


def _last(said: str) -> str:
    """Return the last line of what a build said."""
    return said.strip().rpartition("\n")[2][:200]
