"""Build packages without a wheel, which uv sees as stand-ins, once uv chooses them.

uv itself builds nothing. For each release that has only a source archive it gets an empty wheel that requires
nothing, and chooses among all releases by everybody's requirements. The stand-in of what it has chosen then
gets the true metadata, and uv chooses again, until it knows all that it chooses. Only then is that built in
the sandbox (`sources.workshop`). Metadata is read from the archive where that says it is static, else it is
asked of the build backend, in the sandbox too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import date
from typing import TypeVar

from packaging.metadata import parse_email
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from ..errors import BuildError, ResolveError
from ..fetch.store import Store
from ..lock.model import Lock
from ..lock.packages import BuildFiles, PythonPackage, SourceArchive, Wheel
from ..request.build import requirement_of_index
from ..request.direct import Direct
from ..sources.direct_source import locate
from ..sources.failures import OLD_SETUPTOOLS, wants_old_setuptools
from ..sources.sandboxed import BuildFailedError, MoreRequiredError, Recipe
from ..sources.static_metadata import requirements_of
from ..sources.workshop import Workshop, metadata_of, recipe_of, workshop
from .advice import typo_hints
from .advice.alternative_python import other_python
from .advice.case import Case
from .build_cutoff_date import own_day
from .resolution import Resolution
from .source_releases import releases_without_wheels
from .unused_sources import lines_on_sources
from .uv_command import SOURCES, file_size, resolve_python
from .uv_standins import standin

_BUILD_TAG = "0source"
"""Part of a stand-in's file name that distinguishes it from any wheel."""

_MOST_ROUNDS = 100
"""Releases whose requirements are read, in one resolve."""

_T = TypeVar("_T")

_NVCC = ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-cccl", "nvidia-cuda-runtime")
"""NVIDIA's wheels, from CUDA 13 on, of what compiles and links CUDA code."""


@dataclass(frozen=True, slots=True)
class _Built:
    package: PythonPackage
    with_: tuple[PythonPackage, ...]
    """What it was built with."""


class SourcePackages:
    """The packages of one resolve that have no wheel; `close` it at the end.

    ``system`` gives the lock's system, a lock without Python packages, once the Debian packages are known;
    ``fits_image`` says whether its C library is the target's. What stays of the resolution's earlier lock is
    built with what it was built with before.
    """

    def __init__(
        self,
        resolution: Resolution,
        system: Callable[[], Lock],
        fits_image: Callable[[], bool] = lambda: True,
    ) -> None:
        self._resolution, self.fits_image = resolution, fits_image
        self._request, self._target = resolution.request, resolution.target
        self._host, self._session = resolution.host, resolution.session
        self._system_of = system
        self._stack = ExitStack()
        self._shop: Workshop | None = None
        self._lock: Lock | None = None
        self._offered: dict[str, dict[str, SourceArchive]] = {}
        self._optional: set[str] = set()
        self._failed: dict[str, str] = {}
        self._built: dict[tuple[str, str], _Built] = {}
        self._known: dict[tuple[str, str], bytes] = {}
        """Name and version → metadata."""
        self._recipes: dict[tuple[str, str], tuple[str | None, Recipe]] = {}
        """With the version of torch that they are for."""
        self._found: Sequence[PythonPackage] = ()
        self._existing = existing = resolution.existing
        before = () if existing is None else existing.python
        self._before = {p.pin: p for p in before if p.source is not None and resolution.kept(p.name)}
        self._placed: dict[str, str] = {}
        self.unused: list[str] = []  # lines on sources that packages name for their dependencies
        self.offer(
            [p.name for p in self._before.values() if p.source is not None and p.source.kind == "sdist"]
        )

    def close(self) -> None:
        """Release the resources of the builds."""
        self._stack.close()

    def offer(self, names: Iterable[str], *, optional: bool = False) -> bool:
        """Offer the releases of some packages that have only a source; return whether there are new ones.

        What is ``optional`` is withdrawn again if it cannot be built.
        """
        new = False
        for name in sorted({canonicalize_name(name) for name in names}):
            if name not in self._offered and name not in self._failed and (found := self._releases(name)):
                self._offered[name] = found
                self._optional |= {name} if optional else set()
                new = True
        return new

    def placed(self, requirements: Sequence[str], found: Sequence[PythonPackage]) -> list[str]:
        """Build sources given by address, and return the requirements with stand-ins for them.

        ``found`` is what the others give, of which builds may need torch. Raises `BuildError`, `FetchError`.
        """
        self._found = found
        return [self._place(text) if is_source(text) else text for text in requirements]

    def _place(self, text: str) -> str:
        if text not in self._placed:
            requirement = Requirement(text)
            name, direct = canonicalize_name(requirement.name), Direct.parse(requirement.url or "")
            before = next((p.source for p in self._before.values() if p.name == name), None)
            shop = self._opened()
            source, notes = locate(name, direct, before, self._host)
            self._resolution.notes.extend(notes)
            wheel, recipe = self._tried(name, None, source, shop.build_twice)
            version = str(parse_wheel_filename(wheel.filename)[1])
            self._built[name, version] = self._taken(name, version, source, wheel, recipe)
            self._known[name, version] = self._metadata(wheel, name, version)
            self._offered[name] = {version: source}
            metadata = self._known[name, version]
            self.unused += lines_on_sources(requirement, source, metadata, self._resolution)
            extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
            self._placed[text] = f"{name}{extras} @ ./{SOURCES}/{_filename(name, version)}"
        return self._placed[text]

    def failures(self, names: Collection[str]) -> list[str]:
        """Return a message for each of these packages that was yanked."""
        return [self._failed[name] for name in sorted(set(names)) if name in self._failed]

    def standins(self) -> Mapping[str, bytes]:
        """Return the wheels to show to uv, by file name."""
        return {
            _filename(name, version): standin(name, version, self._known.get((name, version)))
            for name, versions in self._offered.items()
            for version in versions
        }

    def stands_for(self, found: Sequence[PythonPackage]) -> bool:
        """Whether uv has chosen any stand-ins."""
        return any(p.wheel.filename == _filename(p.name, p.version) for p in found)

    def settled(self, found: Sequence[PythonPackage]) -> tuple[PythonPackage, ...] | None:
        """Return uv's choice, with built wheels in place of stand-ins.

        None where something was built that uv has to know of first. Raises `BuildError`.
        """
        self._found = found
        chosen = [p for p in found if p.wheel.filename == _filename(p.name, p.version)]
        for step in (self._learn, self._make):
            again = False
            for package in chosen:
                try:
                    again |= step(package.name, package.version)
                except BuildError as error:
                    if package.name not in self._optional:
                        raise self._refused(package, error) from None
                    self._withdraw(package.name, error)
                    return None
            if again:
                return None
        return tuple(self._built[p.name, p.version].package if p in chosen else p for p in found)

    def _refused(self, package: PythonPackage, error: BuildError) -> BuildError:
        """Return the failure of a build, with the Python for which nothing has to be built."""
        if any(package.name == placed.partition(" ")[0] for placed in self._placed.values()):
            return error
        python = other_python(package.pin, self._request.packages, self._resolution)
        if python is None:
            return error
        is_explained = isinstance(error, BuildFailedError) and error.is_explained
        hint = f"{error.hint}\nor {python}" if is_explained else f"{python}\n{error.hint}"
        return BuildError(error.message, hint=hint)

    def _learn(self, name: str, version: str) -> bool:
        """Read a release's requirements, with a build if they are dynamic; return whether uv needs them."""
        key = (name, version)
        if key in self._known:
            return False
        if len(self._known) >= _MOST_ROUNDS:
            raise ResolveError(
                f"more than {_MOST_ROUNDS} source packages would have to be asked what they require; "
                f"the last was {name} {version}",
                hint=f"name a version of {name} that fits the others",
            )
        shop, source = self._opened(), self._source_of(name, version)
        metadata = None
        if self._recipe_before(name, version, source) is None:
            metadata = shop.static_metadata(name, version, source)
        if metadata is None:
            # The first is most often the last. What uv steps back to is not built to learn this.
            likely = all(known != name for known, _ in self._known)
            metadata = self._with_recipe(
                name, version, source, lambda recipe: shop.metadata(recipe, likely=likely)
            )[0]
            _check_names(metadata, name, version)
        self._known[key] = metadata
        return self._says_more(metadata)

    def _make(self, name: str, version: str) -> bool:
        """Build a release; return whether its wheel's requirements differ from its metadata."""
        key = (name, version)
        if key in self._built:
            return False
        self._built[key] = self._build(name, version)
        metadata = self._metadata(self._built[key].package.wheel, name, version)
        other = requirements_of(metadata) != requirements_of(self._known[key])
        self._known[key] = metadata
        return other

    def _withdraw(self, name: str, error: BuildError) -> None:
        del self._offered[name]
        first = error.message.partition(":\n")
        hint = error.hint.partition("\n")[0]
        self._failed[name] = f"{first[0]}: {_last(first[2])} ({hint})"

    def build_files(self, python: Collection[PythonPackage]) -> BuildFiles:
        """Return what the packages of a lock are built with and its image does not have."""
        own = {(p.pin, p.wheel.sha256) for p in python}
        built = [self._built[p.name, p.version] for p in python if p.source is not None]
        wheels = {p.pin: p for each in built for p in each.with_ if (p.pin, p.wheel.sha256) not in own}
        debian = self._lock.build.debian if built and self._lock is not None else ()
        return BuildFiles(python=tuple(wheels.values()), debian=debian)

    def _says_more(self, metadata: bytes) -> bool:
        raw, _ = parse_email(metadata)
        return bool(raw.get("requires_dist")) or not self._target.fits(raw.get("requires_python"))

    def _releases(self, name: str) -> dict[str, SourceArchive]:
        return releases_without_wheels(name, self._resolution)

    def _source_of(self, name: str, version: str) -> SourceArchive:
        """Return the archive of a release, with its size, which an HTML index does not give."""
        source = self._offered[name][version]
        if not source.size:
            source = replace(source, size=file_size(source.url, self._session))
            self._offered[name][version] = source
        return source

    def _build(self, name: str, version: str) -> _Built:
        source, shop = self._source_of(name, version), self._opened()
        wheel, recipe = self._with_recipe(name, version, source, shop.build_twice)
        return self._taken(name, version, source, wheel, recipe)

    def _taken(self, name: str, version: str, source: SourceArchive, wheel: Wheel, recipe: Recipe) -> _Built:
        """Return a package with the wheel that was built. Raises `BuildError` if that does not fit."""
        if self._target.best([wheel.filename]) is None:
            raise BuildError(
                f"{name} {version}: its build made {wheel.filename}, which does not fit this Python"
            )
        source = replace(source, requires=tuple(sorted(package.pin for package in recipe.wheels)))
        package = PythonPackage(name=name, version=version, wheel=wheel, source=source)
        return _Built(package, tuple(recipe.wheels))

    def _with_recipe(
        self, name: str, version: str, source: SourceArchive, make: Callable[[Recipe], _T]
    ) -> tuple[_T, Recipe]:
        """Call a function with a release's recipe: the existing lock's, the last one, or a new one."""
        torch = next((p.version for p in self._found if p.name == "torch"), None)
        if (recipe := self._recipe_before(name, version, source)) is not None:
            return make(recipe), recipe
        of, recipe = self._recipes.get((name, version), (None, None))
        if recipe is not None and of == torch:
            try:
                return make(recipe), recipe
            except BuildFailedError as failed:  # where its metadata could be made
                if failed.is_explained and not wants_old_setuptools(failed.said):
                    raise
        made, recipe = self._tried(name, version, source, make)
        self._recipes[name, version] = (torch, recipe)
        return made, recipe

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

    def _tried(
        self, name: str, version: str | None, source: SourceArchive, make: Callable[[Recipe], _T]
    ) -> tuple[_T, Recipe]:
        """Try the newest build requirements that fit, and those that the build shows it needs."""
        system = self._opened().archive(name, version, source)
        own = self._request.build.of(name)
        nvcc = [f"{each}=={self._request.cuda}.*" for each in _NVCC] if own.cuda else []
        more: list[str] = []
        asked: tuple[str, ...] = ()
        until = self._request.as_of
        today: BuildFailedError | None = None
        tried: list[tuple[tuple[PythonPackage, ...], tuple[str, ...]]] = []
        while True:
            wanted = [*system.requires, *own.requires, *asked, *more, *nvcc, "pip"]
            try:
                wheels = self._resolved(name, wanted, until)
            except BuildError:
                if today is not None:
                    raise today from None
                raise
            if today is not None and (wheels, asked) in tried:
                raise today
            tried.append((wheels, asked))
            recipe = Recipe(
                name=name,
                version=version,
                filename=source.filename,
                sha256=source.sha256,
                system=system,
                wheels=wheels,
                asked=asked,
                env=dict(own.env),
                cuda=own.cuda,
                subdirectory=source.subdirectory,
            )
            try:
                return make(recipe), recipe
            except MoreRequiredError as ask:
                asked = ask.requirements
            except BuildFailedError as failed:
                day = own_day(source.uploaded, self._target.python)
                if not more and wants_old_setuptools(failed.said):
                    more.append(OLD_SETUPTOOLS)
                elif today is None and not failed.is_explained and day is not None:
                    today, until = failed, day if until is None else min(day, until)
                    self._host.console.step(
                        f"{recipe.title} cannot be built with the newest build requirements; "
                        f"trying those of {until}"
                    )
                else:
                    raise (failed if today is None or failed.is_explained else today) from None

    def _resolved(
        self, name: str, requirements: Sequence[str], until: date | None
    ) -> tuple[PythonPackage, ...]:
        """Return the wheels for a build; where torch is among them, it and its kin are the lock's own.

        Nothing published after the day ``until`` is taken.
        """
        own = replace(self._request, as_of=until, index=None, constraints=(), overrides=())
        like = None
        try:
            wanted = [_checked(text) for text in requirements]
            names = {canonicalize_name(Requirement(text).name) for text in wanted}
            torch = next((p.version for p in self._found if p.name == "torch"), None)
            if torch is not None and (self._request.build.of(name).torch or "torch" in names):
                wanted.append(f"torch==={torch}")
                known = [p for p in self._found if p.wheel.sha256]
                like = None if self._lock is None else replace(self._lock, python=known)
                own = replace(own, index=self._request.index)
            resolution = Resolution(
                request=own,
                target=self._target,
                host=self._host,
                session=self._session,
                existing=like,
                upgrade=frozenset(),
            )
            return resolve_python(wanted, resolution)
        except ResolveError as error:
            case = Case(error=error, requirements=requirements, resolution=self._resolution)
            hint = "\n".join([*typo_hints.advise(case).lines, error.hint])
            raise BuildError(
                f"{name}: its build requirements cannot be resolved: {error.message}",
                hint=f"{hint}; [build.{name}] requires = [...] in the request adds to it",
            ) from None

    def _metadata(self, wheel: Wheel, name: str, version: str) -> bytes:
        text = metadata_of(Store(self._host.home).path(wheel.sha256), f"{name} {version}")
        _check_names(text, name, version)
        return text

    def _opened(self) -> Workshop:
        if self._shop is None:
            self._lock = self._system_of()
            self._stack.enter_context(self._host.home.lock("sources", self._host.console, shared=True))
            self._shop = self._stack.enter_context(workshop(self._lock, self._host))
        return self._shop


def _check_names(metadata: bytes, name: str, version: str) -> None:
    """Raise `BuildError` for metadata of another package or version."""
    raw, _ = parse_email(metadata)
    own = (canonicalize_name(raw.get("name", "")), raw.get("version", ""))
    try:
        same = own[0] == name and Version(own[1]) == Version(version)
    except InvalidVersion:
        same = False
    if not same:
        raise BuildError(
            f"{name} {version}: the metadata of the wheel that its build made are those of "
            f"{' '.join(filter(None, own)) or 'nothing'}",
            hint="ask for another version of the package, or report it to its maintainers",
        )


def is_source(text: str) -> bool:
    """Whether a requirement has the address of a source, and not of a wheel."""
    url = Requirement(text).url
    return url is not None and Direct.parse(url).kind != "wheel"


def _filename(name: str, version: str) -> str:
    return f"{name.replace('-', '_')}-{version}-{_BUILD_TAG}-py3-none-any.whl"


def _checked(text: str) -> str:
    """Parse an untrusted requirement of a build. Raises `ResolveError`."""
    try:
        return requirement_of_index(text)
    except ValueError as error:
        raise ResolveError(str(error)) from None


def _last(said: str) -> str:
    """Return the last line of a build's output."""
    return said.strip().rpartition("\n")[2][:200]
