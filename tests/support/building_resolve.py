"""A resolve with source packages that are built in a sandbox, without the command line around it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.lock.model import Lock
from reprobuild.lock.packages import BuildFiles, PythonPackage
from reprobuild.net.session import session
from reprobuild.request.model import Request
from reprobuild.resolve.constraint_loop import fitting
from reprobuild.resolve.resolution import Resolution
from reprobuild.resolve.sdist_builds import SourcePackages
from reprobuild.resolve.target import TargetPython
from support.locks import LOCK
from support.python_root import PYTHON
from support.resolving import request

TARGET = TargetPython(PYTHON, "amd64", (2, 36))


class Resolve:
    """A resolve of some packages, and what came of it."""

    def __init__(self, home: Home) -> None:
        self.host = Host(home, Console(quiet=True))
        self.notes: list[str] = []
        self.python: tuple[PythonPackage, ...] = ()
        self.build = BuildFiles()

    def __call__(self, *packages: str, existing: Lock | None = None, **keys: Any) -> dict[str, str]:
        self.notes = []
        more = {name.replace("_", "-"): value for name, value in keys.items()}
        asked = request(packages=list(packages), python=PYTHON, **more)
        with session(retries=0) as http:
            about = Resolution(
                request=asked,
                target=TARGET,
                host=self.host,
                session=http,
                existing=existing,
                upgrade=None if existing is None else frozenset(),
                notes=self.notes,
            )
            with closing(self.sources(about)) as sources:
                found = fitting(list(asked.packages), about, sources=sources)
            assert found is not None
            self.build = sources.build_files(found)
        self.python = found
        return {package.name: package.version for package in found}

    def sources(self, about: Resolution) -> SourcePackages:
        return SourcePackages(about, lambda: self.lock(about.request, ()))

    def lock(self, asked: Request, python: Sequence[PythonPackage]) -> Lock:
        return replace(LOCK, request=asked, python=python, debian=(), build=self.build)
