"""reprobuild and its own dependencies: its wheels, and the Debian packages of the programs it starts.

For Debian 12 and 13, and for the Python that runs this.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .. import assets
from ..fetch.deb_file import archive_entry
from ..fetch.scheduler import fetch
from ..fetch.store import Store
from ..host.host import Host
from ..host.machine import architecture
from ..host.workers import workers
from ..lock.model import Lock
from ..lock.packages import DebianPackage, PythonPackage, Wheel
from ..lock.wheel_tags import glibc_of
from ..net.session import session
from ..request.model import Request
from ..resolve.debian import DebianRequest
from ..resolve.known_debian import resolve_debian_unless_known
from ..resolve.resolution import Resolution
from ..resolve.target import TargetPython, glibc_here
from ..resolve.uv_command import resolve_python
from .contents import DEBIAN, INSTALL, TOOL, Member
from .own_wheel import own_distribution, own_wheel

HOSTS = {"bookworm": "3.11", "trixie": "3.13"}
"""The releases of Debian that reprobuild runs on, and their Python."""

PROGRAMS = ("crun", "mmdebstrap", "mount", "python3-venv", "uidmap")
"""Debian packages; what they depend on comes along, down to the C library."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """The members that install reprobuild. All but ``texts`` are in the store, by their hash."""

    members: tuple[Member, ...]
    texts: dict[str, bytes]
    """The contents of the members that are written here, by path."""
    pythons: tuple[str, ...]


def tool(host: Host) -> Tool:
    """Resolve and fetch what runs this reprobuild elsewhere.

    Its dependencies have the versions that are installed here, where those run on a Python. Raises
    `ResolveError`, `FetchError`, `HostError`.
    """
    store = Store(host.home)
    host.console.step("resolving what reprobuild itself needs to run")
    locks = _locks(host)
    texts: dict[str, bytes] = {}
    members: list[Member] = []
    for lock in locks:
        fetch(lock, store, host.console)
        members += [_member(f"{TOOL}/{p.wheel.filename}", p.wheel) for p in lock.python]
        folder = f"{DEBIAN}/{lock.suite}"
        members += [_member(f"{folder}/{package.filename}", package) for package in lock.debian]
        if lock.debian:
            texts[f"{folder}/Packages"] = _index(lock.debian, store)
    with host.home.scratch("own") as scratch:
        wheel = own_wheel(scratch)
        texts[f"{TOOL}/{wheel.name}"] = wheel.read_bytes()
    pythons = tuple(sorted({lock.request.python for lock in locks}, key=lambda minor: int(minor[2:])))
    texts[INSTALL] = assets.template("bundle-install.sh").replace("@PYTHONS@", " ".join(pythons)).encode()
    members += [Member.of(path, content) for path, content in texts.items()]
    return Tool(members=tuple(members), texts=texts, pythons=pythons)


def _locks(host: Host) -> list[Lock]:
    """Return a lock for each host, of what installs reprobuild and not of an image."""
    here = ".".join(platform.python_version_tuple()[:2])
    with workers(len(HOSTS)) as pool:
        found = list(pool.map(partial(_lock_of_debian, host=host), HOSTS.items()))
    if here not in HOSTS.values():
        found.append(_lock("bookworm", here, (), glibc_here(), host))
    return found


def _lock_of_debian(release: tuple[str, str], *, host: Host) -> Lock:
    suite, python = release
    wanted = DebianRequest(suite=suite, architecture=architecture(), python=python, apt=PROGRAMS)
    debian = resolve_debian_unless_known(wanted, host)
    return _lock(suite, python, debian, glibc_of(debian), host)


def _lock(
    suite: str, python: str, debian: Sequence[DebianPackage], glibc: tuple[int, int], host: Host
) -> Lock:
    table = {"name": TOOL, "cuda": "cpu", "python": python, "base": {"debian": suite}}
    request = Request.from_dict(table, "")
    lock = Lock(
        request=request,
        platform=f"linux/{architecture()}",
        epoch=0,
        python=[_pin(name, version) for name, version in _installed().items()],
        debian=debian,
        variables={},
    )
    with session() as http:
        resolution = Resolution(
            request=request,
            target=TargetPython(python, architecture(), glibc),
            host=host,
            session=http,
            existing=lock,
            upgrade=frozenset(),
        )
        wheels = resolve_python(_requirements(own_distribution()), resolution)
    return Lock(request=request, platform=lock.platform, epoch=0, python=wheels, debian=debian, variables={})


def _installed() -> dict[str, str]:
    """Return the versions of everything in this Python's environment."""
    return {canonicalize_name(each.metadata["Name"]): each.version for each in metadata.distributions()}


def _pin(name: str, version: str) -> PythonPackage:
    return PythonPackage(name=name, version=version, wheel=Wheel(filename="", url="", sha256="", size=0))


def _requirements(found: metadata.Distribution) -> list[str]:
    wanted = []
    for text in found.requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            requirement.marker = None
            wanted.append(str(requirement))
    return wanted


def _member(path: str, file: Wheel | DebianPackage) -> Member:
    return Member(path=path, sha256=file.sha256, size=file.size, name=file.filename)


def _index(packages: Sequence[DebianPackage], store: Store) -> bytes:
    with workers(len(os.sched_getaffinity(0))) as pool:
        entries = pool.map(partial(archive_entry, store=store), packages)
        return "\n".join(entries).encode()
