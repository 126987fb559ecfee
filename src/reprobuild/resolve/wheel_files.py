"""Conflicts between the files of locked wheels: shared paths, and contradictions of RECORD.

Only the end of each wheel is fetched: the zip's own list, and its RECORD.
https://packaging.python.org/en/latest/specifications/recording-installed-packages/#the-record-file
"""

from __future__ import annotations

import base64
import csv
import hashlib
import re
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import requests
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..errors import ResolveError
from ..host.console import first_of
from ..host.host import Host
from ..lock.model import Lock
from ..lock.packages import PythonPackage
from ..request.model import Request
from .conda_files import shared_with_conda
from .same_names import other_bytes
from .target import TargetPython, holds
from .wheel_metadata import UNREADABLE, open_wheel, read_member, required

_DIGEST = re.compile("[A-Za-z0-9_-]{43}=?")
"""A SHA-256 in RECORD."""


@dataclass(frozen=True, slots=True)
class _Wheel:
    """Facts from the end of a wheel."""

    files: Mapping[str, tuple[int, int]]
    """Where a file is installed → its CRC-32 and size."""
    requires: Sequence[Requirement]
    """What its own metadata requires, which an index may say otherwise."""
    wrong: str = ""
    """How a file contradicts RECORD; empty if it does not."""
    recorded: Mapping[str, str] = field(default_factory=dict)
    """Where a file is installed → its SHA-256 by RECORD."""


class WheelEnds:
    """The ends of wheels, each fetched once by the threads of a pool."""

    def __init__(self, session: requests.Session, pool: Executor) -> None:
        self.session = session
        self._pool = pool
        self._reading: dict[str, Future[_Wheel | None]] = {}

    def begin(self, packages: Iterable[PythonPackage]) -> None:
        """Start to fetch the ends of these wheels, and return at once."""
        for package in packages:
            if package.source is None and package.wheel.url and package.wheel.url not in self._reading:
                self._reading[package.wheel.url] = self._pool.submit(_read, package, self.session)

    def read(self, packages: Iterable[PythonPackage]) -> list[tuple[PythonPackage, _Wheel | None]]:
        """Return each package that has a wheel at an address, and the wheel's end; None if unreadable."""
        packages = list(packages)
        self.begin(packages)
        known = [package for package in packages if package.source is None and package.wheel.url]
        return [(package, self._reading[package.wheel.url].result()) for package in known]


def compare_files(lock: Lock, existing: Lock | None, ends: WheelEnds, host: Host) -> None:
    """Warn of what `examine` and `other_bytes` find where the wheels are not those of an earlier lock."""
    if existing is not None and existing.conda == lock.conda and not new_wheels(lock.python, existing):
        return
    lines = examine(lock, ends)
    for line in [*lines, *other_bytes(lock.python, ends.session, _own_index(lock))]:
        host.console.warn(line)


def new_wheels(python: Sequence[PythonPackage], existing: Lock | None) -> bool:
    """Whether wheels are not those of an earlier lock, and so have to be compared."""
    return existing is None or [p.wheel for p in existing.python] != [p.wheel for p in python]


def _own_index(lock: Lock) -> str:
    """Return the host of PyTorch's own index; empty where the request does not name it."""
    wheels = [p.wheel.url for p in lock.python if p.name == "torch" and p.wheel.url]
    return urlsplit(wheels[0]).netloc if lock.request.index is not None and wheels else ""


def examine(lock: Lock, ends: WheelEnds) -> list[str]:
    """Return a line for each pair of packages that install one path with different bytes.

    And one for each wheel that requires what the lock does not have: uv believes the index's metadata, and
    that one wheel of a release requires what another does.
    The build takes the file of the first by name, as pip does, where the request gives neither priority.
    Raises `ResolveError` for a wheel that is not what its RECORD says, which no build takes, unless the
    request allows it, and for a priority of a package that is not locked.
    """
    packages, request = lock.python, lock.request
    unknown = sorted(set(request.file_priority) - {package.name for package in packages})
    if unknown:
        raise ResolveError(
            f"file-priority: {', '.join(unknown)}: not among the locked Python packages",
            hint="correct the name, or take it out of the request",
        )
    read = ends.read(packages)
    wheels = {package.name: wheel for package, wheel in read if wheel is not None}
    _refuse_wrong({package.name: package for package, _ in read}, wheels, request.allow_bad_record)
    unread = [package.name for package, wheel in read if wheel is None]
    lines = [*_shared(wheels, request), *_unmet(wheels, lock)]
    sizes = {name: {path: size for path, (_, size) in wheel.files.items()} for name, wheel in wheels.items()}
    lines += shared_with_conda(
        lock, sizes, {name: wheel.recorded for name, wheel in wheels.items()}, ends.session
    )
    if unread:
        lines.append(
            f"{first_of(unread)}: the index gives no parts of these wheels, so what "
            "they share with other packages is unknown"
        )
    return lines


def _refuse_wrong(
    packages: Mapping[str, PythonPackage], wheels: Mapping[str, _Wheel], allowed: Collection[str]
) -> None:
    bad = {name: wheel.wrong for name, wheel in wheels.items() if wheel.wrong and name not in allowed}
    if bad:
        name, wrong = next(iter(bad.items()))
        others = f"; so are those of {', '.join(sorted(bad.keys() - {name}))}" if len(bad) > 1 else ""
        raise ResolveError(
            f"the wheel of {name} {packages[name].version} is not what its own RECORD says: {wrong}{others}",
            hint="ask for another version; or allow it, as pip and uv do (allow-bad-record in the request): "
            + " ".join(f"--allow-bad-record {each}" for each in sorted(bad)),
        )


def _shared(wheels: Mapping[str, _Wheel], request: Request) -> Iterable[str]:
    """Give a line for each pair of packages, the one whose files are taken first, unless it has priority."""
    owners: dict[str, str] = {}
    pairs: dict[tuple[str, str], list[str]] = {}
    for name in sorted(wheels, key=request.precedence):
        for path, content in wheels[name].files.items():
            owner = owners.setdefault(path, name)
            if owner != name and wheels[owner].files[path] != content:
                pairs.setdefault((owner, name), []).append(path)
    for (owner, name), paths in sorted(pairs.items()):
        if owner in request.file_priority and name not in request.file_priority:
            continue  # as it is asked for
        yield (
            f"{owner} and {name} both install {first_of(sorted(paths))}, with different bytes; those of "
            f'{owner} are taken. For those of the other: file-priority = ["{name}"] (--file-priority '
            f"{name}); to leave out one of the packages: overrides = [\"{owner} ; python_version < '0'\"]"
        )


def _unmet(wheels: Mapping[str, _Wheel], lock: Lock) -> Iterable[str]:
    """Give a line for each wheel whose requirements the lock does not meet."""
    version = lock.stack.get("python", "")
    target = TargetPython(lock.request.python, lock.platform.rpartition("/")[2], (2, 17), version)
    versions = {package.name: package.version for package in lock.python}
    # Conda's packages have names of their own, and an override counts in place of what is required.
    free = {package.name for package in lock.conda}
    free |= {canonicalize_name(Requirement(text).name) for text in lock.request.overrides}
    for name, wheel in sorted(wheels.items()):
        lacking = []
        for each in wheel.requires:
            wanted = canonicalize_name(each.name)
            found = versions.get(wanted)
            if wanted in free or (found is None and lock.conda) or not holds(each.marker, target.markers):
                continue
            if found is None or not each.specifier.contains(found, prereleases=True):
                lacking.append(f"{each.name}{each.specifier} ({found or 'none'} is locked)")
        if lacking:
            yield (
                f"the wheel of {name} {versions[name]} requires {first_of(lacking)}, "
                "which the metadata that its index gave does not; add what it needs to the packages"
            )


def _read(package: PythonPackage, session: requests.Session) -> _Wheel | None:
    """Read the end of a wheel; None if it is unreadable, which the build reports in detail."""
    try:
        with open_wheel(package.wheel.url, session) as wheel:
            members = {info.filename: info for info in wheel.infolist() if not info.is_dir()}
            record = next(name for name in members if name.endswith(".dist-info/RECORD"))
            folder = record.rpartition("/")[0]
            files = {
                where: (info.CRC, info.file_size)
                for name, info in members.items()
                if (where := _installed(name)) is not None and not name.startswith(f"{folder}/")
            }
            metadata = (
                read_member(wheel, f"{folder}/METADATA").decode() if f"{folder}/METADATA" in members else ""
            )
            recorded = _recorded(wheel, record)
            return _Wheel(files, required(metadata), _contradiction(wheel, members, record), recorded)
    except (*UNREADABLE, requests.RequestException, ValueError, OSError, StopIteration, csv.Error):
        return None


def _installed(name: str) -> str | None:
    """Return where a member is installed, in words that are equal for equal places; None for bytecode."""
    top, _, rest = name.partition("/")
    if "__pycache__/" in name:
        return None
    if not top.endswith(".data"):
        return name
    kind, _, inner = rest.partition("/")
    return inner if kind in ("purelib", "platlib") else f"{kind}: {inner}" if kind != "headers" else None


def _recorded(wheel: zipfile.ZipFile, record: str) -> Mapping[str, str]:
    """Return where a file is installed → its SHA-256 by RECORD."""
    found = {}
    for row in csv.reader(read_member(wheel, record).decode().splitlines()):
        kind, _, text = (row[1] if len(row) > 1 else "").partition("=")
        where = _installed(row[0]) if row else None
        if kind == "sha256" and where is not None and _DIGEST.fullmatch(text):
            found[where] = base64.urlsafe_b64decode(f"{text[:43]}=").hex()
    return found


def _contradiction(wheel: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], record: str) -> str:
    """Return how RECORD misstates a member: its size or its hash.

    All other contents would have to be fetched, and are compared when they are built.
    """
    for row in csv.reader(read_member(wheel, record).decode().splitlines()):
        name, digest, size = [*row, "", "", ""][:3]
        info = members.get(name.lstrip("/"))  # some old tools wrote the paths from the root
        if info is None or name == record or not digest:
            continue
        if size.isdecimal() and int(size) != info.file_size:
            return f"{name} has {info.file_size:,} bytes, not {int(size):,}"
        kind, _, text = digest.partition("=")
        if kind == "sha256" and name.startswith(record.rpartition("/")[0]):
            found = base64.urlsafe_b64encode(hashlib.sha256(read_member(wheel, info.filename)).digest())
            if found.decode().rstrip("=") != text.rstrip("="):
                return f"the SHA-256 of {name} is another"
    return ""
