"""The system under the Python packages: Debian's, alone or on a base image, and its C library."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from ..errors import ResolveError
from ..host.host import Host
from ..lock.base_image import BaseImage
from ..lock.model import Lock
from ..lock.packages import DebianPackage
from ..lock.wheel_tags import glibc_of
from ..request.model import Request
from .base_image import dpkg_status
from .debian import DebianRequest, resolve_debian
from .target import glibc_here


@dataclass(frozen=True, slots=True)
class System:
    """The system that a request needs on one machine."""

    request: Request
    machine: str
    """Debian's name of the architecture."""
    base: BaseImage | None
    """The image underneath, when the request names one."""

    def packages(
        self, existing: Lock | None, upgrade: Collection[str], host: Host
    ) -> tuple[DebianPackage, ...]:
        """Return the Debian packages. Versions in ``existing`` stay but those in ``upgrade``."""
        request, base = self.request, self.base
        if base is not None and not request.apt and (base.python or request.conda is not None):
            return ()
        wanted = self._wanted(request)
        keep: dict[str, str] = {}
        if existing is not None and existing.suite == wanted.suite and existing.base == base:
            keep = {p.name: p.version for p in existing.debian if p.name not in upgrade}
            if wanted == self._wanted(existing.request) and len(keep) == len(existing.debian):
                return tuple(existing.debian)
        if base is not None:
            wanted = replace(wanted, installed=dpkg_status(base, host))
        return resolve_debian(wanted, keep=keep, console=host.console)

    def build_packages(
        self, image: Sequence[DebianPackage], existing: Lock | None, upgrade: Collection[str], host: Host
    ) -> tuple[DebianPackage, ...]:
        """Return the Debian packages that only the builds of the request need, beside those of the image.

        Versions in ``existing`` stay but those in ``upgrade``. Raises as `packages`, and `ResolveError` where
        they need other versions of what the image has.
        """
        if not self.request.build.every_apt:
            return ()
        pinned = () if existing is None else existing.build.debian
        if (
            existing is not None
            and pinned
            and tuple(existing.debian) == tuple(image)
            and existing.request.build.every_apt == self.request.build.every_apt
            and not any(package.name in upgrade for package in pinned)
        ):
            return tuple(pinned)
        every = tuple(sorted({*self.request.apt, *self.request.build.every_apt}))
        wanted = self._wanted(replace(self.request, apt=every))
        if self.base is not None:
            wanted = replace(wanted, installed=dpkg_status(self.base, host))
        keep = {p.name: p.version for p in pinned if p.name not in upgrade}
        keep |= {p.name: p.version for p in image}
        found = resolve_debian(wanted, keep=keep, console=host.console)
        there = {p.name: p for p in image}
        for package in found:
            if package.name in there and package != there[package.name]:
                raise ResolveError(
                    f"[build] apt needs {package.name} {package.version}, and the image has "
                    f"{there[package.name].version}",
                    hint="lock again with `reprobuild lock --upgrade`, or change apt in the table build",
                )
        return tuple(package for package in found if package.name not in there)

    def glibc(self, packages: Sequence[DebianPackage]) -> tuple[int, int]:
        """Return the version of the C library from Debian's packages, else from the base image."""
        return self._glibc_of_base(packages) or glibc_of(packages)

    def python_version(self, packages: Iterable[DebianPackage]) -> str:
        """Return the version of Python from the base image or Debian's packages; empty: it is not known."""
        if self.base is not None and self.base.python_version:
            return self.base.python_version
        name = f"python{self.request.python}"
        form = re.compile(rf"(?:\d+:)?({re.escape(self.request.python)}\.\d+)")
        found = (form.match(p.version) for p in packages if p.name == name)
        return next((match[1] for match in found if match), "")

    def likely_glibc(self, others: Iterable[Lock | None]) -> tuple[int, int]:
        """Estimate the version before apt's answer, from the base image or other locks."""
        found = self._glibc_of_base(())
        for lock in others:
            if found is None and lock is not None and lock.base is None and lock.suite == self.request.suite:
                found = glibc_of(lock.debian)
        return found or glibc_here()

    def _glibc_of_base(self, packages: Collection[DebianPackage]) -> tuple[int, int] | None:
        if self.base is None or any(package.name == "libc6" for package in packages):
            return None
        major, minor = self.base.glibc.split(".")
        return int(major), int(minor)

    def _wanted(self, request: Request) -> DebianRequest:
        # conda brings a Python of its own, and two would only be one to mistake for the other.
        there = request.conda is not None or (self.base is not None and bool(self.base.python))
        there = there or request.is_standalone
        return DebianRequest(
            suite=request.suite if self.base is None else self.base.suite,
            architecture=self.machine,
            python="" if there else request.python,
            apt=request.apt,
            as_of=request.as_of,
        )
