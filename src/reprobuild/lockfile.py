"""The lock: a PEP 751 file (``pylock.NAME.toml``) whose ``[tool.reprobuild]`` holds all that is no wheel.

Pure data: parse, dump, digest. The dump is canonical, so the same lock is the same bytes.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import tomli_w
from packaging.pylock import Pylock, PylockValidationError
from packaging.version import Version

from .errors import LockError, RequestError
from .request import Request

FORMAT = 1
"""The version of ``[tool.reprobuild]``; a lock of another is refused."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_POOL_PATH = re.compile(r"pool/[A-Za-z0-9+.~_/-]+\.deb")
_DEBIAN_VERSION = re.compile(r"[A-Za-z0-9.+~:-]+")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_MACHINES = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}
_STACK = {
    "cuda": re.compile(r"nvidia-cuda-runtime(-cu\d+)?"),
    "cudnn": re.compile(r"nvidia-cudnn(-cu\d+)?"),
    "nccl": re.compile(r"nvidia-nccl(-cu\d+)?"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    """The one file of a Python package for the lock's platform."""

    filename: str
    url: str
    """Without user name or password; those come from the user's settings when it is fetched."""
    sha256: str
    size: int
    """Bytes."""
    uploaded: datetime | None = None
    """When the index says it was published (UTC, whole seconds)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PythonPackage:
    """A distribution, by its normalised name."""

    name: str
    version: str
    wheel: Wheel


@dataclass(frozen=True, kw_only=True, slots=True)
class DebianPackage:
    """A binary package. Where it is served is the host's setting, not the lock's."""

    name: str
    version: str
    architecture: str
    archive: str
    """Which of Debian's archives has it: ``debian`` or ``debian-security``."""
    path: str
    """Below the archive's root: ``pool/main/…/….deb``."""
    sha256: str
    size: int
    """Bytes."""

    @property
    def filename(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, kw_only=True, slots=True)
class Lock:
    """All that goes into an image. Make one with `parse`, or from a resolve; the lists sort themselves."""

    request: Request
    platform: str
    """As in OCI: ``linux/amd64``."""
    epoch: int
    """Seconds since 1970 (UTC): the one time stamp in the image."""
    python: Sequence[PythonPackage]
    debian: Sequence[DebianPackage]
    variables: Mapping[str, str]

    def __post_init__(self) -> None:
        """Bring the lists into their one order."""
        set_ = object.__setattr__
        set_(self, "python", tuple(sorted(self.python, key=lambda p: p.name)))
        set_(self, "debian", tuple(sorted(self.debian, key=lambda p: (p.name, p.architecture))))
        set_(self, "variables", dict(sorted(self.variables.items())))

    @classmethod
    def parse(cls, text: str, where: str) -> Lock:
        """Read a lock's text. Raises `LockError` that begins with ``where`` and the place in the file."""
        try:
            data = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise LockError(f"{where}: not valid TOML: {error}") from None
        try:
            lock = _lock(data)
            recorded = data["tool"]["reprobuild"]["digest"]
        except _BadError as error:
            raise LockError(f"{where}: {error}", hint="write it anew with `reprobuild lock`") from None
        if recorded != lock.digest:
            raise LockError(
                f"{where}: its content does not fit the digest it carries, so it was changed by hand",
                hint="change the request and run `reprobuild lock`, or take the file back from version control",
            )
        return lock

    def dump(self) -> str:
        """Return the canonical text, digest included."""
        table = self._table()
        table["tool"]["reprobuild"] = {"digest": self.digest} | table["tool"]["reprobuild"]
        return tomli_w.dumps(table)

    @property
    def digest(self) -> str:
        """``sha256:…`` over the canonical text without the digest itself."""
        return "sha256:" + hashlib.sha256(tomli_w.dumps(self._table()).encode()).hexdigest()

    @property
    def stack(self) -> Mapping[str, str]:
        """Versions by plain name: python, torch, numpy, and cuda, cudnn, nccl where they are locked."""
        found = {p.name: p.version for p in self.python if p.name in ("torch", "numpy")}
        for package in self.python:
            found |= {name: package.version for name, form in _STACK.items() if form.fullmatch(package.name)}
        interpreter = f"python{self.request.python}"
        for deb in self.debian:
            if deb.name == interpreter:
                found["python"] = deb.version.rpartition(":")[2].partition("-")[0]
        return dict(sorted(found.items()))

    def version_of(self, package: str) -> str:
        """Return the locked version of a Python package; KeyError when it is not locked."""
        return {p.name: p.version for p in self.python}[package]

    def check_for(self, request: Request, where: str) -> None:
        """Raise `LockError` that names the keys in which ``request`` differs from the one locked."""
        lines = request.differences(self.request)
        if lines:
            raise LockError(
                f"{where} is for another request ({'; '.join(lines)})",
                hint="run `reprobuild lock` to bring it up to date",
            )

    @property
    def _machine(self) -> str:
        return _MACHINES[self.platform]

    def _table(self) -> dict[str, Any]:
        return {
            "lock-version": "1.0",
            "environments": [f"sys_platform == 'linux' and platform_machine == '{self._machine}'"],
            "requires-python": f"=={self.request.python}.*",
            "created-by": "reprobuild",
            "packages": [
                {"name": p.name, "version": p.version, "wheels": [_wheel_table(p.wheel)]} for p in self.python
            ],
            "tool": {
                "reprobuild": {
                    "format": FORMAT,
                    "platform": self.platform,
                    "epoch": self.epoch,
                    "request-digest": self.request.digest,
                    "request": self.request.to_dict(),
                    "stack": dict(self.stack),
                    "variables": dict(self.variables),
                    "debian": [
                        {
                            "name": p.name,
                            "version": p.version,
                            "architecture": p.architecture,
                            "archive": p.archive,
                            "path": p.path,
                            "size": p.size,
                            "sha256": p.sha256,
                        }
                        for p in self.debian
                    ],
                }
            },
        }


def _wheel_table(wheel: Wheel) -> dict[str, Any]:
    table: dict[str, Any] = {"name": wheel.filename}
    if wheel.uploaded is not None:
        table["upload-time"] = wheel.uploaded
    return table | {"url": wheel.url, "size": wheel.size, "hashes": {"sha256": wheel.sha256}}


class _BadError(Exception):
    """A place in the file and what is wrong there; `Lock.parse` adds the file's name."""


def _lock(data: Mapping[str, Any]) -> Lock:
    try:
        pylock = Pylock.from_dict(data)
    except (PylockValidationError, ValueError) as error:
        raise _BadError(f"not a PEP 751 lock: {error}") from None
    _keys(data, "", "lock-version environments requires-python created-by packages tool")
    tool = data.get("tool", {})
    if "reprobuild" not in tool:
        raise _BadError("[tool.reprobuild] is missing, so this lock is of another tool")
    own = tool["reprobuild"]
    place = "tool.reprobuild"
    _keys(own, place, "digest format platform epoch request-digest request stack variables debian")
    if _get(own, place, "format", int) != FORMAT:
        raise _BadError(
            f"{place}.format: {own['format']} is not {FORMAT}, so another version of reprobuild wrote it"
        )
    _get(own, place, "digest", str)
    platform = _get(own, place, "platform", str)
    if platform not in _MACHINES:
        raise _BadError(f"{place}.platform: {platform!r} is not one of {', '.join(_MACHINES)}")
    epoch = _get(own, place, "epoch", int)
    if not 0 <= epoch < 2**33:
        raise _BadError(f"{place}.epoch: {epoch} is no time that a tar file can hold")
    try:
        request = Request.from_dict(_get(own, place, "request", dict), f"{place}.request")
    except RequestError as error:
        raise _BadError(error.message) from None
    variables = _get(own, place, "variables", dict)
    for key, value in variables.items():
        if not _VARIABLE.fullmatch(key) or not isinstance(value, str) or not value.isprintable():
            raise _BadError(f"{place}.variables.{key}: not a variable name and one line of text")
    lock = Lock(
        request=request,
        platform=platform,
        epoch=epoch,
        python=[_package(table, f"packages[{i}]") for i, table in enumerate(data["packages"])],
        debian=[
            _debian(table, f"{place}.debian[{i}]") for i, table in enumerate(_get(own, place, "debian", list))
        ],
        variables=variables,
    )
    _unique([p.name for p in lock.python], "packages")
    _unique([p.name for p in lock.debian], f"{place}.debian")
    _derived(lock, own, place)
    if str(pylock.requires_python) != f"=={request.python}.*":
        raise _BadError("requires-python: does not fit the request")
    return lock


def _derived(lock: Lock, own: Mapping[str, Any], place: str) -> None:
    if own.get("stack") != lock.stack:
        raise _BadError(f"{place}.stack: does not fit the locked packages")
    if own.get("request-digest") != lock.request.digest:
        raise _BadError(f"{place}.request-digest: does not fit the request in the lock")
    missing = {"torch", "numpy", "pip"} - {p.name for p in lock.python}
    if missing:
        raise _BadError(f"packages: {', '.join(sorted(missing))} missing")
    if "python" not in lock.stack:
        raise _BadError(f"{place}.debian: python{lock.request.python} missing")


def _package(table: Mapping[str, Any], place: str) -> PythonPackage:
    _keys(table, place, "name version wheels")
    wheels = table.get("wheels", [])
    if len(wheels) != 1:
        raise _BadError(f"{place}.wheels: one wheel is needed, not {len(wheels)}")
    wheel, spot = wheels[0], f"{place}.wheels[0]"
    _keys(wheel, spot, "name upload-time url size hashes")
    url = _get(wheel, spot, "url", str)
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http", "file") or not url.isprintable() or " " in url:
        raise _BadError(f"{spot}.url: {url!r} is not an https, http or file address")
    if parts.username is not None or parts.password is not None:
        raise _BadError(f"{spot}.url: carries a user name or password")
    _keys(_get(wheel, spot, "hashes", dict), f"{spot}.hashes", "sha256")
    uploaded = wheel.get("upload-time")
    if uploaded is not None and uploaded.tzinfo is None:
        raise _BadError(f"{spot}.upload-time: has no time zone")
    version = _get(table, place, "version", str)
    return PythonPackage(
        name=_get(table, place, "name", str),
        version=str(Version(version)),
        wheel=Wheel(
            filename=_get(wheel, spot, "name", str),
            url=url,
            sha256=_sha256(wheel["hashes"], f"{spot}.hashes"),
            size=_size(wheel, spot),
            uploaded=None if uploaded is None else uploaded.astimezone(UTC).replace(microsecond=0),
        ),
    )


def _debian(table: Any, place: str) -> DebianPackage:
    if not isinstance(table, dict):
        raise _BadError(f"{place}: a table is needed")
    _keys(table, place, "name version architecture archive path size sha256")
    return DebianPackage(
        name=_form(table, place, "name", re.compile(r"[a-z0-9][a-z0-9+.-]+")),
        version=_form(table, place, "version", _DEBIAN_VERSION),
        architecture=_form(table, place, "architecture", re.compile(r"[a-z0-9]+")),
        archive=_form(table, place, "archive", re.compile(r"[a-z][a-z-]*")),
        path=_form(table, place, "path", _POOL_PATH),
        sha256=_sha256(table, place),
        size=_size(table, place),
    )


def _keys(table: Mapping[str, Any], place: str, known: str) -> None:
    for key in table:
        if key not in known.split():
            raise _BadError(f"{place}.{key}: unknown key".lstrip("."))


def _get(table: Mapping[str, Any], place: str, key: str, kind: type) -> Any:
    if key not in table:
        raise _BadError(f"{place}.{key}: missing")
    if type(table[key]) is not kind:
        raise _BadError(f"{place}.{key}: {kind.__name__} is needed, not {table[key]!r}")
    return table[key]


def _form(table: Mapping[str, Any], place: str, key: str, form: re.Pattern[str]) -> str:
    value: str = _get(table, place, key, str)
    if not form.fullmatch(value) or ".." in value.split("/"):
        raise _BadError(f"{place}.{key}: {value!r} has not the form of one")
    return value


def _sha256(table: Mapping[str, Any], place: str) -> str:
    value: str = _get(table, place, "sha256", str)
    if not _SHA256.fullmatch(value):
        raise _BadError(f"{place}.sha256: {value!r} is not 64 hex digits")
    return value


def _size(table: Mapping[str, Any], place: str) -> int:
    value: int = _get(table, place, "size", int)
    if value <= 0:
        raise _BadError(f"{place}.size: {value} is not a size in bytes")
    return value


def _unique(names: list[str], place: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise _BadError(f"{place}: {', '.join(twice)} stands there twice")
