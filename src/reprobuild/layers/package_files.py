"""The files that each locked wheel puts into the image, with conflicts of paths resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from packaging.tags import Tag
from packaging.utils import parse_wheel_filename

from ..errors import BuildError
from ..fetch.conda_archive import read_file
from ..fetch.store import Store
from ..fetch.wheel_zip import opened
from ..lock.model import Lock
from ..lock.packages import PythonPackage
from ..lock.wheel_tags import tags_of
from ..oci.tar_writer import parents
from .entry_points import script_template, template_of
from .plan import place
from .split_large import cut
from .wheel import Generated, Member, installed_files
from .wheel_layer import Files


class PackageFiles:
    """The files of each package, with conflicts of paths resolved."""

    def __init__(self, lock: Lock, store: Store) -> None:
        self._lock, self._store = lock, store
        self._files: dict[str, Files] = {}
        self._lost: dict[str, set[str]] = {}

    @property
    def template_from(self) -> str:
        """The sha256 of the locked pip, which says how scripts read; it has to be in the store to `read`."""
        packages = {p.name: p.wheel.sha256 for p in self._lock.python}
        return packages.get("pip") or next(p.sha256 for p in self._lock.conda if p.name == "pip")

    @cached_property
    def _template(self) -> str:
        return _template(self._lock, self._store)

    @cached_property
    def _tags(self) -> frozenset[Tag]:
        return frozenset(tags_of(self._lock))

    def read(self, package: PythonPackage) -> None:
        """Read the files of a wheel in the store, with their destinations. Raises `BuildError`."""
        if self._tags.isdisjoint(parse_wheel_filename(package.wheel.filename)[3]):
            raise BuildError(
                f"{package.name}: the wheel {package.wheel.filename} is not for Python "
                f"{self._lock.request.python} on {self._lock.platform}, so pip would refuse it",
                hint=f"`reprobuild lock --upgrade {package.name}` chooses one that fits",
            )
        with opened(self.path(package), package.name) as archive:
            files = installed_files(archive, package.name, package.version, place(self._lock), self._template)
        if package.name in self._lock.request.allow_bad_record:
            files = {
                path: replace(what, recorded="") if isinstance(what, Member) else what
                for path, what in files.items()
            }
        self._files[package.name] = files

    def settle(self) -> None:
        """Tell those that name the same path apart, once all wheels are read. Raises `BuildError`."""
        owners: dict[str, str] = {}
        precedence = self._lock.request.precedence
        for package in sorted(self._lock.python, key=lambda package: precedence(package.name)):
            # pip installs in reverse order, so the first by name writes last and wins.
            self._lost[package.name] = {
                path
                for path in self._files[package.name]
                if owners.setdefault(path, package.name) != package.name
            }
        for path in parents(owners):
            if path in owners:
                raise BuildError(f"/{path} is a file of {owners[path]} and a folder of another package")

    def path(self, package: PythonPackage) -> Path:
        """Return where the wheel is."""
        return self._store.path(package.wheel.sha256)

    def lost(self, packages: Sequence[PythonPackage]) -> list[str]:
        """Return the paths that other packages have taken from these."""
        return [path for package in packages for path in self._lost[package.name]]

    def of(self, package: PythonPackage, part: int, parts: int) -> Files:
        """Return path in the image → what to put there, for one of the parts that a package is cut into.

        Until `settle`, as if no other package had one of its paths.
        """
        files, lost = self._files[package.name], self._lost.get(package.name, ())
        parted = _cut(files, parts) if parts > 1 else {}
        return {
            path: what for path, what in files.items() if path not in lost and parted.get(path, 0) == part
        }


def check_wheels(lock: Lock, store: Store) -> None:
    """Refuse the wheels that no image of ours would have, for those who install them with pip.

    All are in the store. Raises `BuildError`.
    """
    files = PackageFiles(lock, store)
    for package in lock.python:
        files.read(package)
    files.settle()


def unpacked(files: Files) -> int:
    """Return the total size of some files of a wheel."""
    return sum(what.info.file_size for what in files.values() if isinstance(what, Member))


def _cut(files: Files, parts: int) -> dict[str, int]:
    """Return the part of each file. Python's go together, since they are compiled together."""
    sizes = {p: w.info.compress_size if isinstance(w, Member) else len(w.content) for p, w in files.items()}
    first = [p for p, w in files.items() if isinstance(w, Generated) or p.endswith((".py", ".pyc"))]
    return cut(sizes, first, parts)


def _template(lock: Lock, store: Store) -> str:
    """Read the template of scripts from the locked pip, which is a wheel or a conda package."""
    for package in lock.python:
        if package.name == "pip":
            return script_template(store.path(package.wheel.sha256))
    conda = next(p for p in lock.conda if p.name == "pip")
    return template_of(lambda path: read_file(store.path(conda.sha256), conda.filename, path))
