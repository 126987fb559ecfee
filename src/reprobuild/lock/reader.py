"""Parse the text of a lock; validate every field, and the digest in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from packaging.pylock import Pylock, PylockValidationError

from ..errors import LockError, RequestError
from ..request.model import Request
from ..request.profiles import names
from ..request.reference import Reference
from ..request.table import Table, TableError, refused_as, shown
from ..request.toml_reader import load_toml
from .base_image import BaseImage
from .model import FORMAT, MACHINES, Lock
from .own_files import OwnFiles
from .packages import BuildFiles, CondaPackage, DebianPackage, PythonPackage
from .standalone_python import StandalonePython

RENEW = "restore it from version control, or lock again with `reprobuild lock --upgrade`"
"""What to do about a lock that cannot be used; without ``--upgrade`` its pins would be read, to keep them."""

_OWN_KEYS = (
    *("digest", "format", "platform", "epoch", "request-digest", "request", "stack", "variables"),
    *("architectures", "own-files", "base", "standalone-python", "conda", "debian", "build"),
)
_GPU_TARGET = re.compile(r"(sm|compute)_[0-9]+[a-z]?")
_LONGEST_NAME = 255
"""Of a file, in any file system of Linux."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


def parse_lock(text: str, where: str) -> Lock:
    """Read a lock's text. Raises `LockError` that begins with ``where`` and the place in the file."""
    return parse_table(load_table(text, where), where)


def load_table(text: str, where: str) -> dict[str, Any]:
    """Parse a lock's text into an unchecked table. Raises `LockError`."""
    try:
        return load_toml(text)
    except ValueError as error:
        # Not only TOMLDecodeError: a number of 5,000 digits is a plain ValueError.
        raise LockError(f"{where}: not valid TOML: {error}", hint=RENEW) from None


def parse_table(data: Mapping[str, Any], where: str) -> Lock:
    """Validate a table of a lock for one platform. Raises `LockError`."""
    own = data.get("tool", {})
    foreign = isinstance(own, dict) and "reprobuild" not in own
    hint = f"a request of it is made by `reprobuild lock --from {where}`; if it is a lock of yours, {RENEW}"
    with refused_as(LockError, where, hint if foreign else RENEW):
        lock = _lock(data)
    if data["tool"]["reprobuild"]["digest"] != lock.digest:
        raise edited(where)
    return lock


def edited(where: str) -> LockError:
    """Return the error for a file whose digest is another one."""
    message = f"{where}: its content does not match its digest, so the file was edited by hand"
    return LockError(message, hint=RENEW)


def parse_half(data: dict[str, Any], where: str) -> Lock:
    """Read one side of a merge, whose digests cannot fit: for its pins alone. Raises `LockError`."""
    try:
        own = data["tool"]["reprobuild"]
        own["request-digest"] = Request.from_dict(own["request"], where).digest
    except (RequestError, KeyError, TypeError) as error:
        raise LockError(f"{where}: {error}", hint=RENEW) from None
    with refused_as(LockError, where, RENEW):
        return _lock(data)


def _lock(data: Mapping[str, Any]) -> Lock:
    try:
        Pylock.from_dict(data)
    except (PylockValidationError, ValueError) as error:
        raise TableError(f"not a PEP 751 lock: {error}") from None
    file = Table(
        data, "", ("lock-version", "environments", "requires-python", "created-by", "packages", "tool")
    )
    tool = file.table("tool", default={})
    if not tool.has("reprobuild"):
        raise TableError("[tool.reprobuild] is missing, so another tool wrote this lock")
    tool.only(("reprobuild",))
    own = tool.table("reprobuild")
    if (found := own.value("format", int)) != FORMAT:
        raise own.bad("format", f"expected {FORMAT}, got {found}, by another version of reprobuild")
    own.only(_OWN_KEYS)
    own.value("digest", str)
    request = Request.read(own.table("request"))
    lock = Lock(
        request=request,
        platform=own.choice("platform", list(MACHINES)),
        epoch=own.integer("epoch", 0, 2**33 - 1),
        python=[PythonPackage.read(each) for each in file.tables("packages")],
        debian=[DebianPackage.read(each) for each in own.tables("debian")],
        variables=_variables(own.table("variables"), request),
        conda=[CondaPackage.read(each) for each in own.tables("conda", default=())],
        gpu_targets=own.texts("architectures", _gpu_target, ()),
        base=BaseImage.read(own.table("base")) if own.has("base") else None,
        standalone=StandalonePython.read(own.table("standalone-python"))
        if own.has("standalone-python")
        else None,
        build=BuildFiles.read(own.table("build")) if own.has("build") else BuildFiles(),
        own_files=OwnFiles.read(own.table("own-files")) if own.has("own-files") else None,
    )
    # Each of a kind is laid in one folder by its file's name, where one would take another's place.
    debian = (*lock.debian, *lock.build.debian)
    for listed, place in (
        ([p.name for p in lock.python], "packages"),
        ([p.wheel.filename for p in lock.python], "packages"),
        ([p.name for p in lock.debian], own.where("debian")),
        ([p.name for p in lock.conda], own.where("conda")),
        ([p.filename for p in lock.debian], own.where("debian")),
        ([p.filename for p in lock.conda], own.where("conda")),
        ([p.name for p in debian], own.where("build.debian")),
        ([p.filename for p in debian], own.where("build.debian")),
        ([p.pin for p in lock.build.python], own.where("build.packages")),
    ):
        if twice := sorted(name for name, times in Counter(listed).items() if times > 1):
            raise TableError(f"{place}: {', '.join(twice)} is listed more than once")
        if long := next((name for name in listed if len(name) > _LONGEST_NAME), ""):
            raise TableError(
                f"{place}: {shown(long)} is too long: expected at most {_LONGEST_NAME} characters"
            )
    _held_requirements(lock, own)
    _derived(lock, file, own)
    _named_base(lock, own)
    return lock


def _gpu_target(text: str) -> str:
    if not _GPU_TARGET.fullmatch(text):
        raise ValueError(f"{text!r} is not a GPU: expected one like sm_80 or compute_90")
    return text


def _variables(table: Table, request: Request) -> dict[str, str]:
    variables = dict(table.data)
    for key, value in variables.items():
        if not _VARIABLE.fullmatch(key) or not isinstance(value, str) or not value.isprintable():
            raise table.bad(key, "expected a name and one line of text")
    if strange := sorted(variables.keys() - names(request)):
        # LD_PRELOAD, BASH_ENV or PIP_INDEX_URL would change what runs in the image.
        raise table.bad(strange[0], f"is not a variable of the profile {request.profile}")
    for key, value in request.environment:
        if variables.get(key) != value:
            raise table.bad(key, "is not what the request's environment has")
    return variables


def _derived(lock: Lock, file: Table, own: Table) -> None:
    for key, value in lock.header.items():
        if file.data.get(key) != value:
            raise file.bad(key, f"expected {value!r}, got {file.data.get(key)!r}")
    if own.data.get("stack") != lock.stack:
        raise own.bad("stack", "does not match the locked packages")
    if own.data.get("request-digest") != lock.request.digest:
        raise own.bad("request-digest", "does not match the request in the lock")
    if lock.request.platforms and lock.platform not in lock.request.platforms:
        raise own.bad("platform", f"{lock.platform} is not one of the request's platforms")
    if bool(lock.conda) != (lock.request.conda is not None):
        raise own.bad("conda", "does not match the request in the lock")
    if (lock.base is None) != (lock.request.base_image is None):
        raise own.bad("base", "does not match the request in the lock")
    python = None if lock.standalone is None else lock.standalone.minor
    if python != (lock.request.python if lock.request.is_standalone else None):
        raise own.bad("standalone-python", "does not match the request in the lock")
    if lock.base is not None and lock.platform not in lock.base.manifests:
        raise own.bad("base.manifests", f"{lock.platform} is missing")
    missing = {"torch", "numpy", "pip"} - lock.distributions.keys()
    if missing:
        raise TableError(f"packages: {', '.join(sorted(missing))} not found")
    if "python" not in lock.stack:
        where = "conda: python" if lock.conda else f"debian: python{lock.request.python}"
        raise TableError(f"{own.place}.{where} not found")


def _named_base(lock: Lock, own: Table) -> None:
    """Raise for a base image that is not the request's: the request is what people review."""
    asked = Reference.parse(lock.request.base_image or "")
    if lock.base is not None and asked is not None and str(asked) != lock.base.image:
        raise own.bad("base.image", f"{shown(lock.base.image)} is not what the request in the lock names")


def _held_requirements(lock: Lock, own: Table) -> None:
    """Raise for a build requirement that is not locked, or files for builds that no package needs."""
    built = [p.source for p in lock.python if p.source is not None]
    wanted = {pin for source in built for pin in source.requires}
    there = {p.pin for p in lock.build.python}
    image = {p.pin for p in lock.python if p.source is None}
    image_wheels = {(p.pin, p.wheel.sha256) for p in lock.python}
    if twice := sorted(p.pin for p in lock.build.python if (p.pin, p.wheel.sha256) in image_wheels):
        raise own.bad("build.packages", f"{twice[0]} is among the image's packages already")
    if missing := sorted(wanted - there - image):
        raise own.bad("build.packages", f"{missing[0]} is missing, which a build requires")
    if extra := sorted(there - wanted):
        raise own.bad("build.packages", f"{extra[0]} is there, but no build requires it")
    if lock.build.debian and not built:
        raise own.bad("build.debian", "no package is built from source")
