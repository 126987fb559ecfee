"""What each locked wheel puts where in the image, once those that name the same path have been told apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import BuildError
from ..fetch.store import Store
from ..lock.model import Lock, PythonPackage
from ..oci.tar_writer import parents
from .conda_archive import read_file
from .plan import place
from .scripts import script_template, template_of
from .wheel import Member, installed_files
from .wheel_layer import Files
from .wheel_zip import opened


class PackageFiles:
    """What each package puts where, once those that name the same path have been told apart."""

    def __init__(self, lock: Lock, store: Store) -> None:
        self._store = store
        template = _template(lock, store) if lock.python else ""
        self._files: dict[str, Files] = {}
        self._lost: dict[str, set[str]] = {}
        owners: dict[str, str] = {}
        for package in lock.python:
            with opened(self.path(package), package.name) as archive:
                files = installed_files(archive, package.name, package.version, place(lock), template)
            self._files[package.name] = files
            # pip installs in reverse order, so the first by name writes last and wins.
            self._lost[package.name] = {
                path for path in files if owners.setdefault(path, package.name) != package.name
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

    def of(self, package: PythonPackage) -> Files:
        """Return path in the image → what to put there."""
        lost = self._lost[package.name]
        return {path: what for path, what in self._files[package.name].items() if path not in lost}

    def size(self, package: PythonPackage) -> int:
        """Return the bytes of its files, unpacked."""
        return sum(w.info.file_size for w in self._files[package.name].values() if isinstance(w, Member))


def _template(lock: Lock, store: Store) -> str:
    """Read what scripts look like from the locked pip, which is a wheel, or else a package of conda's."""
    for package in lock.python:
        if package.name == "pip":
            return script_template(store.path(package.wheel.sha256))
    conda = next(p for p in lock.conda if p.name == "pip")
    return template_of(lambda path: read_file(store.path(conda.sha256), conda.filename, path))
