"""Build environment of source packages: the lock's system with the Debian packages of the build.

`Workshop.build_twice` is for the lock, `build_locked` for an image: it builds what the store lacks, and holds
each wheel to the hash that the lock has. Processes that build the same package in the same way take turns,
and the second one finds what the first has made; none holds one package while it waits for another.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from ..errors import BuildError
from ..fetch.scheduler import fetch
from ..fetch.store import Store
from ..fetch.wheel_zip import opened
from ..host import process
from ..host.home import atomic_write, open_regular, storage_errors
from ..host.host import Host
from ..host.own_program import own_program
from ..host.verified import read_sealed, sealed
from ..layers import unpacked_layers
from ..layers.builder import system_folders
from ..layers.plan import SYSTEM, plan, plan_digest
from ..lock.model import Lock
from ..lock.packages import BuildFiles, PythonPackage, SourceArchive, Wheel
from ..net.local_files import folders
from . import sandboxed
from .normalize_wheel import first_difference
from .sandboxed import BuildRoot, Recipe, environment
from .source_archive import BuildSystem, build_system, told
from .static_metadata import static_metadata

FORMAT = 1
"""Of a built wheel: the number changes when the same archive would give other bytes."""


class Workshop:
    """Builds with the system of one lock, not with its Python packages; get one with `workshop`."""

    def __init__(self, lock: Lock, host: Host, stack: ExitStack) -> None:
        self._system = replace(
            lock, debian=(*lock.debian, *lock.build.debian), python=(), conda=(), build=BuildFiles()
        )
        self._host, self._stack = host, stack
        self._store = Store(host.home)
        self._root: BuildRoot | None = None
        self._announced: set[str] = set()
        self._begun: dict[Path, Path] = {}
        """Record → the first of its two wheels."""

    def archive(self, name: str, version: str | None, source: SourceArchive) -> BuildSystem:
        """Download a source archive and return its build settings. Raises `BuildError`, `FetchError`."""
        file = self._archive(name, version, source)
        return build_system(file, source.filename, subdirectory=source.subdirectory)

    def static_metadata(self, name: str, version: str, source: SourceArchive) -> bytes | None:
        """Return an archive's static wheel metadata; None if it needs a build. As `archive`."""
        file = self._archive(name, version, source)
        said = told(file, source.filename, subdirectory=source.subdirectory)
        return static_metadata(said, name, version)

    def _archive(self, name: str, version: str | None, source: SourceArchive) -> Path:
        wheel = Wheel(filename="", url="", sha256=source.sha256, size=source.size)
        if source.kind == "sdist":
            self._fetch([PythonPackage(name=name, version=version or "", wheel=wheel, source=source)])
        return self._store.path(source.sha256)

    def metadata(self, recipe: Recipe, *, likely: bool) -> bytes:
        """Return the metadata of the wheel that a recipe makes, by no more of a build than is needed.

        One that is ``likely`` to be built in the end is built, once; `build_twice` then builds it once more.
        Raises as `build_twice`. Nothing has held what is returned against the package's name.
        """
        record = self._record(recipe)
        if (known := self._known(record)) is not None:
            return metadata_of(self._store.path(known.sha256), recipe.title)
        prepared = _prepared(record)
        if (text := _read_prepared(prepared)) is not None:
            return text
        with self._turn(recipe, record):
            if (found := _read_prepared(prepared)) is not None:
                return found
            if not likely:
                self._host.console.step(f"asking {recipe.title} what it requires")
                with self._host.home.scratch("source") as scratch:
                    self._fetch(recipe.wheels)
                    found = sandboxed.prepare(recipe, self._made_root(), self._store, scratch)
            if found is None:
                found = metadata_of(self._first(recipe, record), recipe.title)
            # The hash of the archive is where a wheel's is in the record of a build.
            _note(prepared, ["METADATA", recipe.sha256, found.decode("utf-8", "surrogateescape")])
            return found

    @contextmanager
    def _turn(self, recipe: Recipe, record: Path) -> Iterator[None]:
        """Wait until no other process builds this package in this way; none other does during the block."""
        self._made_root()  # which may wait as well
        name, does = f"built-{record.stem[:16]}", f"builds {recipe.title}"
        with self._host.home.lock(name, self._host.console, does=does):
            yield

    def _first(self, recipe: Recipe, record: Path) -> Path:
        if record not in self._begun:
            if recipe.title not in self._announced:
                self._host.console.step(f"building {recipe.title} from its source, twice")
            self._announced.add(recipe.title)  # it begins again where it asks for more requirements
            with ExitStack() as stack:
                scratch = stack.enter_context(self._host.home.scratch("source"))
                self._begun[record] = self._build(recipe, scratch, ask=True)
                self._stack.enter_context(stack.pop_all())
        return self._begun[record]

    def build_twice(self, recipe: Recipe) -> Wheel:
        """Build a package from two states of the sandbox; return its wheel, which is in the store.

        What was built so before is not built again. Raises `BuildError` that names the package: where it
        cannot be built, or where the two wheels differ; `sandboxed.MoreRequiredError` where its backend asks
        for more requirements.
        """
        record = self._record(recipe)
        if (known := self._known(record)) is not None:
            return known
        with self._turn(recipe, record):
            return self._known(record) or self._built_twice(recipe, record)

    def _known(self, record: Path) -> Wheel | None:
        """Return the wheel of a record, if it is in the store."""
        known = _read_record(record)
        return known if known is not None and self._store.has(known.sha256, known.size) else None

    def _built_twice(self, recipe: Recipe, record: Path) -> Wheel:
        one = self._first(recipe, record)
        with self._host.home.scratch("source") as other:
            two = self._build(recipe, other, second=True)
            if difference := _compared(one, two, recipe):
                _prepared(record).unlink(missing_ok=True)  # its metadata may differ as well
                raise BuildError(
                    f"{recipe.title}: two builds of it gave different wheels: {difference}",
                    hint="a build's output must not depend on clock, randomness or ordering; ask for "
                    "another version, or publish a wheel to your own index",
                )
            wheel = self._keep(one)
        _note(record, [wheel.filename, wheel.sha256, wheel.size])
        return wheel

    def build_again(self, package: PythonPackage, recipe: Recipe, *, anew: bool = False) -> None:
        """Build a locked package into the store, with ``anew`` also where its wheel is there already.

        Raises `BuildError` if the bytes differ.
        """
        with self._turn(recipe, self._record(recipe)):
            if anew or not self._store.has(package.wheel.sha256, package.wheel.size):
                self._build_again(package, recipe)

    def _build_again(self, package: PythonPackage, recipe: Recipe) -> None:
        self._host.console.step(f"building {recipe.title} from its source")
        with self._host.home.scratch("source") as scratch, self._host.home.scratch("source") as other:
            built = self._build(recipe, scratch)
            found = _wheel_of(built)
            if found.sha256 == package.wheel.sha256:
                self._keep(built)
                return
            difference = _compared(built, self._build(recipe, other, second=True), recipe)
            why = (
                f"two builds here differ as well: {difference}"
                if difference
                else "two builds here are equal, so this machine makes the difference, or the lock names a"
                " wheel of another source"
            )
            raise BuildError(
                f"{recipe.title}: the wheel built here is not the one in the lock: its SHA-256 is "
                f"{found.sha256}, not {package.wheel.sha256}; {why}",
                hint="a build that detects the processor (-march=native) makes such a wheel; take "
                "the wheel from where it was locked, with its folder in UV_FIND_LINKS, or lock again with "
                f"`reprobuild lock --upgrade {package.name}`",
            )

    def _build(self, recipe: Recipe, scratch: Path, *, ask: bool = False, second: bool = False) -> Path:
        self._fetch(recipe.wheels)
        return sandboxed.build(recipe, self._made_root(), self._store, scratch, ask=ask, second=second)

    def _keep(self, built: Path) -> Wheel:
        wheel = _wheel_of(built)
        self._store.add(wheel.sha256, built)
        return wheel

    def _fetch(self, packages: Sequence[PythonPackage]) -> None:
        fetch(replace(self._system, python=packages, debian=(), base=None), self._store, self._host.console)

    def _made_root(self) -> BuildRoot:
        if self._root is None:
            system = self._system
            fetch(system, self._store, self._host.console)
            # The same system is installed once, also for several processes.
            name, does = f"system-{plan_digest(plan(system))[:16]}", "installs the same system for builds"
            with self._host.home.lock(name, self._host.console, does=does):
                layers = system_folders(system, self._store, self._host)
                self._stack.enter_context(unpacked_layers.in_use(layers))
            self._root = BuildRoot(
                layers,
                system.interpreter,
                system.request.python,
                is_standalone=system.standalone is not None,
                cuda=system.request.cuda,
                debian=frozenset(package.name for package in system.debian),
            )
        return self._root

    def _record(self, recipe: Recipe) -> Path:
        layers = [layer.key for layer in plan(self._system) if layer.kind in SYSTEM]
        program = own_program("build_wheel.py").read_bytes()
        env = environment(recipe, is_standalone=self._system.standalone is not None)
        parts = [
            *(FORMAT, hashlib.sha256(program).hexdigest(), layers, self._system.interpreter),
            *(
                recipe.title,
                recipe.filename,
                recipe.sha256,
                recipe.subdirectory,
                dict(sorted(env.items())),
            ),
            *(recipe.system.backend, list(recipe.system.backend_path)),
            sorted((package.wheel.filename, package.wheel.sha256) for package in recipe.wheels),
        ]
        key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        return self._host.home.folder("built") / f"{key}.json"


@contextmanager
def workshop(lock: Lock, host: Host) -> Iterator[Workshop]:
    """Yield the workshop of a lock; what it has unpacked is held until the end.

    The caller holds the lock ``build`` of the home, or shares ``sources``, or `clean` might take files away.
    """
    with ExitStack() as stack:
        yield Workshop(lock, host, stack)


def to_fetch(lock: Lock, store: Store, *, anew: bool = False) -> Lock:
    """Return a lock without the files of builds that are not needed; see `missing_wheels`."""
    if all(package.source is None for package in lock.python):
        return lock
    missing = missing_wheels(lock, store, anew=anew)
    wanted = {pin for package in missing for pin in _source(package).requires}
    return replace(
        lock,
        python=[p for p in lock.python if p.source is None or p in missing],
        build=BuildFiles(
            python=[p for p in lock.build.python if p.pin in wanted],
            debian=lock.build.debian if missing else (),
        ),
    )


def missing_wheels(lock: Lock, store: Store, *, anew: bool = False) -> list[PythonPackage]:
    """Return the packages that have to be built: those with a source whose wheel is not in the store.

    With ``anew`` all that have a source: a wheel in the store does not prove that the source gives it.
    """
    return [
        package
        for package in lock.python
        if package.source is not None and (anew or not store.has(package.wheel.sha256, package.wheel.size))
    ]


def take_over_wheels(lock: Lock, store: Store) -> None:
    """Copy wheels that would have to be built into the store from the user's folders of find-links.

    Those with the locked name and bytes: then they need not be built.
    """
    for package in missing_wheels(lock, store):
        _take_over(package.wheel, store)


def build_locked(lock: Lock, store: Store, host: Host, *, anew: bool = False) -> None:
    """Build each wheel of a lock that `missing_wheels` names. All that `to_fetch` leaves is in the store.

    Raises `BuildError` where a build fails or gives other bytes than the lock has.
    """
    missing = missing_wheels(lock, store, anew=anew)
    if not missing:
        return
    with workshop(lock, host) as shop:
        for package in missing:
            shop.build_again(package, recipe_of(package, lock, store), anew=anew)


def recipe_of(package: PythonPackage, lock: Lock, store: Store) -> Recipe:
    """Return how a locked package is built; its source archive is in the store."""
    source = _source(package)
    # A wheel of the image may come from another index than the one that was built with.
    pins = {each.pin: each for each in (*lock.python, *lock.build.python)}
    return Recipe(
        name=package.name,
        version=package.version,
        filename=source.filename,
        sha256=source.sha256,
        system=build_system(store.path(source.sha256), source.filename, subdirectory=source.subdirectory),
        subdirectory=source.subdirectory,
        wheels=[pins[pin] for pin in source.requires],
        env=dict(lock.request.build.of(package.name).env),
        cuda=lock.request.build.of(package.name).cuda,
    )


def _source(package: PythonPackage) -> SourceArchive:
    assert package.source is not None
    return package.source


def _take_over(wheel: Wheel, store: Store) -> None:
    for folder in folders():
        try:
            with open_regular(folder / wheel.filename) as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != wheel.sha256:
                    continue
                with store.partial(wheel.sha256) as partial, storage_errors(store.root):
                    if partial is None:
                        return
                    partial.discard()
                    file.seek(0)
                    shutil.copyfileobj(file, partial.file)
                    store.add(wheel.sha256, partial.path)
                    return
        except OSError:
            continue


def _wheel_of(file: Path) -> Wheel:
    with file.open("rb") as content:
        sha256 = hashlib.file_digest(content, "sha256").hexdigest()
    return Wheel(filename=file.name, url="", sha256=sha256, size=file.stat().st_size)


def metadata_of(wheel: Path, title: str) -> bytes:
    """Return the file METADATA of a wheel in its one form. Raises `BuildError`."""
    with opened(wheel, title) as archive:
        paths = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA") and n.count("/") == 1]
        if not paths:
            raise BuildError(
                f"{title}: its build made a wheel without METADATA",
                hint="ask for another version of the package, or report it to its maintainers",
            )
        path = paths[0]  # `normalize_wheel` lets only one .dist-info pass
        if archive.getinfo(path).file_size > sandboxed.LARGEST_METADATA:
            raise BuildError(f"{title}: its metadata is larger than {sandboxed.LARGEST_METADATA >> 20} MiB")
        return archive.read(path)


def _note(record: Path, noted: Sequence[str | int]) -> None:
    """Write a sealed record, so that damage cannot lead to another locked wheel."""
    atomic_write(record, sealed(record.name, json.dumps(noted).encode()), sync=False)


def _prepared(record: Path) -> Path:
    """Return where the metadata of a package are noted before there is a record of its build."""
    return record.with_suffix(".metadata.json")


def _read_prepared(record: Path) -> bytes | None:
    try:
        _, _, text = json.loads(read_sealed(record))
        return str(text).encode("utf-8", "surrogateescape")
    except (ValueError, TypeError):
        return None


def _read_record(record: Path) -> Wheel | None:
    try:
        filename, sha256, size = json.loads(read_sealed(record))
        return Wheel(filename=str(filename), url="", sha256=str(sha256), size=int(size))
    except (ValueError, TypeError):
        return None


def _compared(one: Path, two: Path, recipe: Recipe) -> str:
    """Describe the difference between two wheels; empty if they are equal."""
    if one.name != two.name:
        return f"one is {one.name}, the other {two.name}"
    if _wheel_of(one) == _wheel_of(two):
        return ""
    difference = first_difference(one, two, recipe.title) or "their archives differ"
    return "\n".join(filter(None, (difference, _account(one, two))))


def _account(one: Path, two: Path) -> str:
    """Return the start of diffoscope's output for two wheels, if it is installed."""
    program = process.which("diffoscope")
    if program is None:
        return ""
    command = [program, "--text", "-", "--no-progress", "--max-report-size", "65536", str(one), str(two)]
    try:
        done = process.run(command, check=False, timeout=300)
    except process.ProcessTimeout:
        return ""
    return "\n".join(done.stdout.decode("utf-8", "replace").splitlines()[:_ACCOUNT])


_ACCOUNT = 40
"""Most lines of diffoscope's output that are quoted."""
