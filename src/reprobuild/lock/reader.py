"""A lock's text → `Lock`; every field checked, and the digest that it carries."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from packaging.pylock import Pylock, PylockValidationError
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from ..errors import LockError, RequestError
from ..request import toml_reader
from ..request.model import Request
from ..request.profiles import names
from .base_image import BaseImage
from .direct_source import ADDRESSED, BadSourceError, read_addressed
from .model import (
    FORMAT,
    MACHINES,
    BuildFiles,
    CondaPackage,
    DebianPackage,
    Lock,
    PythonPackage,
    SourceArchive,
    Wheel,
)
from .own_files import OwnFiles
from .standalone_python import StandalonePython

RENEW = "restore it from version control, or lock again with `reprobuild lock --upgrade`"
"""What to do about a lock that cannot be used; without ``--upgrade`` its pins would be read, to keep them."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SDIST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+!-]*\.(tar\.gz|tgz|tar\.bz2|tar\.xz|zip)")
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_PIN = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*==[A-Za-z0-9.+!-]+")
_WHEEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+!-]*\.whl")
_POOL_PATH = re.compile(r"pool/[A-Za-z0-9+.~_/-]+\.deb")
_DEBIAN_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_DEBIAN_VERSION = re.compile(r"[A-Za-z0-9.+~:-]+")
_CONDA_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+!-]*\.(conda|tar\.bz2)")
_CONDA_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+!-]*")
_SUBDIR = re.compile("linux-64|linux-aarch64|noarch")
_MD5 = re.compile("[0-9a-f]{32}")
_GPU_TARGET = re.compile(r"(sm|compute)_[0-9]+[a-z]?")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")

_KINDS = {str: "text", int: "a whole number", dict: "a table", list: "a list"}


def parse_lock(text: str, where: str) -> Lock:
    """Read a lock's text. Raises `LockError` that begins with ``where`` and the place in the file."""
    return parse_table(load_table(text, where), where)


def load_table(text: str, where: str) -> dict[str, Any]:
    """Read a lock's text as a table that nothing has checked. Raises `LockError`."""
    try:
        return toml_reader.load_toml(text)
    except ValueError as error:
        # Not only TOMLDecodeError: a number of 5,000 digits is a plain ValueError.
        raise LockError(f"{where}: not valid TOML: {error}", hint=RENEW) from None


def parse_table(data: Mapping[str, Any], where: str) -> Lock:
    """Check a table in the form of a lock of one platform. Raises `LockError`."""
    try:
        lock = _lock(data)
        recorded = data["tool"]["reprobuild"]["digest"]
    except _BadError as error:
        raise LockError(f"{where}: {error}", hint=RENEW) from None
    if recorded != lock.digest:
        raise LockError(
            f"{where}: its content does not match its digest, so the file was edited by hand",
            hint=RENEW,
        )
    return lock


def parse_half(data: dict[str, Any], where: str) -> Lock:
    """Read one side of a merge, whose digests cannot fit: for its pins alone. Raises `LockError`."""
    try:
        own = data["tool"]["reprobuild"]
        own["request-digest"] = Request.from_dict(own["request"], where).digest
        return _lock(data)
    except (_BadError, RequestError, KeyError, TypeError) as error:
        raise LockError(f"{where}: {error}", hint=RENEW) from None


class _BadError(Exception):
    """A place in the file and what is wrong there; `parse_lock` adds the file's name."""


def _lock(data: Mapping[str, Any]) -> Lock:
    try:
        Pylock.from_dict(data)
    except (PylockValidationError, ValueError) as error:
        raise _BadError(f"not a PEP 751 lock: {error}") from None
    _keys(data, "", "lock-version environments requires-python created-by packages tool")
    tool = data.get("tool", {})
    if "reprobuild" not in tool:
        raise _BadError("[tool.reprobuild] is missing, so another tool wrote this lock")
    _keys(tool, "tool", "reprobuild")
    own = _get(tool, "tool", "reprobuild", dict)
    place = "tool.reprobuild"
    if _get(own, place, "format", int) != FORMAT:
        raise _BadError(
            f"{place}.format: expected {FORMAT}, got {own['format']}, by another version of reprobuild"
        )
    _keys(
        own,
        place,
        "digest format platform epoch request-digest request stack variables architectures own-files base "
        "standalone-python conda debian build",
    )
    _get(own, place, "digest", str)
    platform = _get(own, place, "platform", str)
    if platform not in MACHINES:
        raise _BadError(f"{place}.platform: {platform!r} is not one of {', '.join(MACHINES)}")
    epoch = _get(own, place, "epoch", int)
    if not 0 <= epoch < 2**33:
        raise _BadError(f"{place}.epoch: {epoch} is not a valid epoch: expected seconds since 1970")
    try:
        request = Request.from_dict(_get(own, place, "request", dict), f"{place}.request")
        base = BaseImage.from_dict(_get(own, place, "base", dict), place) if "base" in own else None
        files = _get(own, place, "own-files", dict) if "own-files" in own else None
        own_files = None if files is None else OwnFiles.from_dict(files, f"{place}.own-files")
        python = _get(own, place, "standalone-python", dict) if "standalone-python" in own else None
        standalone = None if python is None else StandalonePython.from_dict(python, place)
    except (RequestError, LockError) as error:
        raise _BadError(error.message) from None
    variables = _variables(own, place, request)
    known = _get(own, place, "architectures", list) if "architectures" in own else []
    if not all(isinstance(each, str) and _GPU_TARGET.fullmatch(each) for each in known):
        raise _BadError(f"{place}.architectures: expected a list like ['sm_80', 'compute_90']")
    lock = Lock(
        request=request,
        platform=platform,
        epoch=epoch,
        python=[_package(table, f"packages[{i}]") for i, table in enumerate(data["packages"])],
        debian=[
            _debian(table, f"{place}.debian[{i}]") for i, table in enumerate(_get(own, place, "debian", list))
        ],
        variables=variables,
        conda=[
            _conda(table, f"{place}.conda[{i}]")
            for i, table in enumerate(_get(own, place, "conda", list) if "conda" in own else [])
        ],
        gpu_targets=known,
        base=base,
        standalone=standalone,
        build=_build(_get(own, place, "build", dict), f"{place}.build") if "build" in own else BuildFiles(),
        own_files=own_files,
    )
    _unique([p.name for p in lock.python], "packages")
    _unique([p.name for p in lock.debian], f"{place}.debian")
    _unique([p.name for p in lock.conda], f"{place}.conda")
    # Each of a kind is laid in one folder by its file's name, where one would take another's place.
    _unique([p.filename for p in lock.debian], f"{place}.debian")
    _unique([p.filename for p in lock.conda], f"{place}.conda")
    _unique([p.name for p in (*lock.debian, *lock.build.debian)], f"{place}.build.debian")
    _unique([p.filename for p in (*lock.debian, *lock.build.debian)], f"{place}.build.debian")
    _unique([p.pin for p in lock.build.python], f"{place}.build.packages")
    _held_requirements(lock, place)
    _derived(lock, data, own, place)
    return lock


def _variables(own: Mapping[str, Any], place: str, request: Request) -> dict[str, str]:
    variables: dict[str, str] = _get(own, place, "variables", dict)
    for key, value in variables.items():
        if not _VARIABLE.fullmatch(key) or not isinstance(value, str) or not value.isprintable():
            raise _BadError(f"{place}.variables.{key}: expected a name and one line of text")
    if strange := sorted(variables.keys() - names(request)):
        # LD_PRELOAD, BASH_ENV or PIP_INDEX_URL would change what runs in the image.
        raise _BadError(f"{place}.variables.{strange[0]}: is not a variable of the profile {request.profile}")
    for key, value in request.environment:
        if variables.get(key) != value:
            raise _BadError(f"{place}.variables.{key}: is not what the request's environment has")
    return variables


def _derived(lock: Lock, data: Mapping[str, Any], own: Mapping[str, Any], place: str) -> None:
    for key, value in lock.header.items():
        if data.get(key) != value:
            raise _BadError(f"{key}: expected {value!r}, got {data.get(key)!r}")
    if own.get("stack") != lock.stack:
        raise _BadError(f"{place}.stack: does not match the locked packages")
    if own.get("request-digest") != lock.request.digest:
        raise _BadError(f"{place}.request-digest: does not match the request in the lock")
    if lock.request.platforms and lock.platform not in lock.request.platforms:
        raise _BadError(f"{place}.platform: {lock.platform} is not one of the request's platforms")
    if bool(lock.conda) != (lock.request.conda is not None):
        raise _BadError(f"{place}.conda: does not match the request in the lock")
    if (lock.base is None) != (lock.request.base_image is None):
        raise _BadError(f"{place}.base: does not match the request in the lock")
    python = None if lock.standalone is None else lock.standalone.minor
    if python != (lock.request.python if lock.request.is_standalone else None):
        raise _BadError(f"{place}.standalone-python: does not match the request in the lock")
    if lock.base is not None and lock.platform not in lock.base.manifests:
        raise _BadError(f"{place}.base.manifests: {lock.platform} is missing")
    missing = {"torch", "numpy", "pip"} - lock.distributions.keys()
    if missing:
        raise _BadError(f"packages: {', '.join(sorted(missing))} not found")
    if "python" not in lock.stack:
        where = "conda: python" if lock.conda else f"debian: python{lock.request.python}"
        raise _BadError(f"{place}.{where} not found")


def _package(table: Mapping[str, Any], place: str) -> PythonPackage:
    if table.keys() & {"sdist", *ADDRESSED}:
        return _built_package(table, place)
    _keys(table, place, "name version wheels")
    wheels = table.get("wheels", [])
    if len(wheels) != 1:
        raise _BadError(f"{place}.wheels: expected one wheel, found {len(wheels)}")
    name, version = _get(table, place, "name", str), Version(_get(table, place, "version", str))
    wheel = _wheel(wheels[0], f"{place}.wheels[0]", name, version)
    return PythonPackage(name=name, version=str(version), wheel=wheel)


def _built_package(table: Mapping[str, Any], place: str) -> PythonPackage:
    """Read a package that is built from its source archive."""
    kind = next(key for key in ("sdist", *ADDRESSED) if key in table)
    _keys(table, place, f"name version {kind} tool")
    name, version = _get(table, place, "name", str), Version(_get(table, place, "version", str))
    tool = _get(table, place, "tool", dict)
    _keys(tool, f"{place}.tool", "reprobuild")
    own, inner = _get(tool, f"{place}.tool", "reprobuild", dict), f"{place}.tool.reprobuild"
    _keys(own, inner, "wheel requires tree" if kind in ("vcs", "directory") else "wheel requires")
    requires = _get(own, inner, "requires", list)
    if not all(isinstance(pin, str) and _PIN.fullmatch(pin) for pin in requires) or requires != sorted(
        set(requires)
    ):
        raise _BadError(f"{inner}.requires: expected a sorted list like ['setuptools==80.9.0']")
    return PythonPackage(
        name=name,
        version=str(version),
        wheel=_wheel(_get(own, inner, "wheel", dict), f"{inner}.wheel", name, version, built=True),
        source=replace(
            _sdist(table["sdist"], f"{place}.sdist")
            if kind == "sdist"
            else _addressed(name, table[kind], own.get("tree"), kind, place),
            requires=tuple(requires),
        ),
    )


def _addressed(name: str, table: Any, tree: Any, kind: str, place: str) -> SourceArchive:
    try:
        return read_addressed(name, table, tree, kind)
    except BadSourceError as error:
        raise _BadError(f"{place}.{error}") from None


def _sdist(sdist: Mapping[str, Any], spot: str) -> SourceArchive:
    _keys(sdist, spot, "name upload-time url size hashes")
    return SourceArchive(
        filename=_form(sdist, spot, "name", _SDIST, "the file name of a source archive"),
        url=_url(sdist, spot),
        sha256=_sha256(_get(sdist, spot, "hashes", dict), f"{spot}.hashes"),
        size=_size(sdist, spot),
        uploaded=_uploaded(sdist, spot),
    )


def _wheel(wheel: Any, spot: str, name: str, version: Version, *, built: bool = False) -> Wheel:
    if not isinstance(wheel, dict):
        raise _BadError(f"{spot}: expected a table")
    _keys(wheel, spot, "name size hashes" if built else "name upload-time url size hashes")
    _keys(_get(wheel, spot, "hashes", dict), f"{spot}.hashes", "sha256")
    return Wheel(
        filename=_filename(wheel, spot, name, version),
        url="" if built else _url(wheel, spot),
        sha256=_sha256(wheel["hashes"], f"{spot}.hashes"),
        size=_size(wheel, spot),
        uploaded=_uploaded(wheel, spot),
    )


def _build(table: Mapping[str, Any], place: str) -> BuildFiles:
    _keys(table, place, "packages debian")
    packages = _get(table, place, "packages", list) if "packages" in table else []
    debian = _get(table, place, "debian", list) if "debian" in table else []
    found = []
    for i, each in enumerate(packages):
        spot = f"{place}.packages[{i}]"
        if not isinstance(each, dict) or "sdist" in each or not isinstance(each.get("wheels"), list):
            raise _BadError(f"{spot}: expected a table with a wheel")
        name, version = (
            _form(each, spot, "name", _NAME, "a normalised name"),
            _get(each, spot, "version", str),
        )
        try:
            Version(version)
        except InvalidVersion:
            raise _BadError(f"{spot}.version: {version!r} is not a version") from None
        found.append(_package({**each, "name": name}, spot))
    return BuildFiles(
        python=found, debian=[_debian(each, f"{place}.debian[{i}]") for i, each in enumerate(debian)]
    )


def _held_requirements(lock: Lock, place: str) -> None:
    """Raise for a build requirement that is not locked, or files for builds that no package needs."""
    built = [p.source for p in lock.python if p.source is not None]
    wanted = {pin for source in built for pin in source.requires}
    there = {p.pin for p in lock.build.python}
    image = {p.pin for p in lock.python if p.source is None}
    own = {(p.pin, p.wheel.sha256) for p in lock.python}
    if twice := sorted(p.pin for p in lock.build.python if (p.pin, p.wheel.sha256) in own):
        raise _BadError(f"{place}.build.packages: {twice[0]} is among the image's packages already")
    if missing := sorted(wanted - there - image):
        raise _BadError(f"{place}.build.packages: {missing[0]} is missing, which a build requires")
    if extra := sorted(there - wanted):
        raise _BadError(f"{place}.build.packages: {extra[0]} is there, but no build requires it")
    if lock.build.debian and not built:
        raise _BadError(f"{place}.build.debian: no package is built from source")


def _filename(wheel: Mapping[str, Any], place: str, name: str, version: Version) -> str:
    value = _form(wheel, place, "name", _WHEEL, "the file name of a wheel")
    try:
        found = parse_wheel_filename(value)[:2]
    except InvalidWheelFilename:
        found = None
    if found != (name, version):  # newer versions of packaging have looked already
        raise _BadError(f"{place}.name: {value!r} is not a wheel of {name} {version}")
    return value


def _url(wheel: Mapping[str, Any], place: str) -> str:
    value: str = _get(wheel, place, "url", str)
    try:
        parts = urlsplit(value)
        good = parts.scheme == "file" or (parts.scheme in ("https", "http") and bool(parts.hostname))
        secret = parts.username is not None or parts.password is not None
    except ValueError:  # brackets that hold no IPv6 address
        good = secret = False
    if not good or not value.isprintable() or " " in value:
        raise _BadError(f"{place}.url: expected an https, http or file URL")
    if secret:
        raise _BadError(f"{place}.url: contains a user name or password")
    return value


def _uploaded(wheel: Mapping[str, Any], place: str) -> datetime | None:
    value = wheel.get("upload-time")
    if value is None:
        return None
    try:
        if isinstance(value, datetime) and value.tzinfo is not None:
            return value.astimezone(UTC).replace(microsecond=0)
    except OverflowError:  # a zone that moves it out of the years 1 to 9999
        pass
    raise _BadError(f"{place}.upload-time: {value} is not a time with a time zone")


def _debian(table: Any, place: str) -> DebianPackage:
    if not isinstance(table, dict):
        raise _BadError(f"{place}: expected a table")
    _keys(table, place, "name version architecture archive path size sha256")
    return DebianPackage(
        name=_form(table, place, "name", _DEBIAN_NAME, "a Debian package's name"),
        version=_form(table, place, "version", _DEBIAN_VERSION, "a Debian version"),
        architecture=_form(table, place, "architecture", re.compile(r"[a-z0-9]+"), "one like amd64"),
        archive=_form(table, place, "archive", re.compile(r"[a-z][a-z-]*"), "one like debian-security"),
        path=_form(table, place, "path", _POOL_PATH, "one like pool/main/…/NAME.deb"),
        sha256=_sha256(table, place),
        size=_size(table, place),
    )


def _conda(table: Any, place: str) -> CondaPackage:
    if not isinstance(table, dict):
        raise _BadError(f"{place}: expected a table")
    _keys(table, place, "name version build subdir url size sha256 md5 upload-time depends constrains")
    url = _url(table, place)
    if not _CONDA_FILE.fullmatch(url.rpartition("/")[2]):
        raise _BadError(f"{place}.url: does not name a conda package")
    return CondaPackage(
        name=_form(table, place, "name", _CONDA_WORD, "a conda package's name"),
        version=_form(table, place, "version", _CONDA_WORD, "a conda version"),
        build=_form(table, place, "build", _CONDA_WORD, "a conda build string"),
        subdir=_form(table, place, "subdir", _SUBDIR, "linux-64, linux-aarch64 or noarch"),
        url=url,
        sha256=_sha256(table, place),
        md5=_form(table, place, "md5", _MD5, "32 lower-case hex digits") if "md5" in table else None,
        size=_size(table, place),
        depends=_specs(table, place, "depends"),
        uploaded=_uploaded(table, place),
        constrains=_specs(table, place, "constrains") if "constrains" in table else (),
    )


def _specs(table: Mapping[str, Any], place: str, key: str) -> tuple[str, ...]:
    specs = _get(table, place, key, list)
    if not all(isinstance(spec, str) and spec.isprintable() for spec in specs):
        raise _BadError(f"{place}.{key}: expected a list of text")
    return tuple(specs)


def _keys(table: Mapping[str, Any], place: str, known: str) -> None:
    for key in table:
        if key not in known.split():
            raise _BadError(f"{place}.{key}: unknown key".lstrip("."))


def _get(table: Mapping[str, Any], place: str, key: str, kind: type) -> Any:
    if key not in table:
        raise _BadError(f"{place}.{key}: missing")
    if type(table[key]) is not kind:
        raise _BadError(f"{place}.{key}: expected {_KINDS[kind]}, got {table[key]!r}")
    return table[key]


def _form(table: Mapping[str, Any], place: str, key: str, form: re.Pattern[str], like: str) -> str:
    value: str = _get(table, place, key, str)
    if not form.fullmatch(value) or ".." in value.split("/"):
        raise _BadError(f"{place}.{key}: {value!r} is not a valid {key}: expected {like}")
    return value


def _sha256(table: Mapping[str, Any], place: str) -> str:
    value: str = _get(table, place, "sha256", str)
    if not _SHA256.fullmatch(value):
        raise _BadError(f"{place}.sha256: {value!r} is not a SHA-256: expected 64 lower-case hex digits")
    return value


def _size(table: Mapping[str, Any], place: str) -> int:
    value: int = _get(table, place, "size", int)
    if value <= 0:
        raise _BadError(f"{place}.size: {value} is not a valid size: expected a number of bytes, at least 1")
    return value


def _unique(names: list[str], place: str) -> None:
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise _BadError(f"{place}: {', '.join(twice)} is listed more than once")
