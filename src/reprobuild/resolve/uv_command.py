"""Resolve Python packages with uv: one wheel each, for one target, with size and SHA-256."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import requests
import tomli_w
from packaging.pylock import Package, PackageWheel, Pylock, PylockValidationError
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from ..errors import FetchError, ResolveError
from ..fetch.http_errors import reason_of
from ..host.limits import guarded, of_steps
from ..host.machine_errors import refuse_full_temporary
from ..host.process import Completed, named_when_stopped, run
from ..lock.model import Lock
from ..lock.packages import PythonPackage, Wheel
from ..net.index_settings import (
    PLAIN,
    UV_RULES,
    check_find_links,
    check_no_backend,
    find_links,
    indexes,
    uv_program,
)
from ..net.local_files import check_address
from ..net.session import scrub, uv_environment, without_credentials
from ..request.direct import Direct
from ..request.toml_reader import load_toml
from .index_page import check_pages
from .resolution import Resolution
from .target import TargetPython
from .uv_refusal import CORRECT, RefusedError, UnreachableError, refused
from .uv_rules import write_rules
from .uv_standins import write_standins

ALWAYS = ("numpy", "pip")
"""Packages of every image in addition to torch: numpy, and pip for derived images."""

_TIMEOUT = 900.0
# Variables that change *what* uv picks. Those that say where it looks (indexes, proxies, logins, caches)
# are the user's to set; with these, the same request would give another lock elsewhere. The torch backend is
# the request's own to name.
_DROPPED = frozenset(
    f"UV_{name}"
    for name in (
        *UV_RULES,
        *("REQUIRE_HASHES", "PYTHON", "CONFIG_SETTINGS", "CUSTOM_COMPILE_COMMAND", "PROJECT"),
        "WORKING_DIRECTORY",
    )
)

_STANDINS = "conda"
"""Folder of the stand-ins for conda's packages."""

SOURCES = "sources"
"""Folder of the stand-ins for packages built from source."""

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")

_OWN_BUILD = re.compile(r"={2,3}[0-9.]+\+(cpu|cu[0-9]+)")
"""The versions of PyTorch's own index."""

_MOST_CHECKED = 3
"""Packages of a refusal whose index pages are looked at."""


def resolve_python(
    requirements: Sequence[str], resolution: Resolution, *, standins: Mapping[str, bytes] | None = None
) -> tuple[PythonPackage, ...]:
    """Return the packages that uv picks for requirements, closure included.

    What conda brings has to fit them, and the constraints and overrides of the request count. ``standins``
    are wheels by file name that stand for packages without one: such a package has no hash of its own yet.
    Of several wheels of one version those in the resolution's hashes, or in its earlier lock, count.
    Raises `RefusedError` with uv's reason when nothing fits, `UnreachableError` and `UnreadError` when uv
    does not say whether something fits, `ResolveError` when a package has no wheel or no SHA-256.
    """
    request, target, session = resolution.request, resolution.target, resolution.session
    existing, upgrade, backend = resolution.existing, resolution.upgrade, resolution.backend
    if not requirements:
        return ()
    if resolution.order:
        order = {name: number for number, name in enumerate(resolution.order)}
        requirements = sorted(
            requirements, key=lambda text: order.get(canonicalize_name(Requirement(text).name), len(order))
        )
    with tempfile.TemporaryDirectory(prefix="reprobuild-uv-") as folder:
        output = Path(folder, "pylock.toml")
        # uv takes settings from the nearest file in the folders above, and anybody may write to /tmp.
        Path(folder, "uv.toml").touch()
        arguments = ["--refresh"]
        if upgrade is not None:
            # uv keeps the versions that it finds in the file which it is to write.
            if existing is not None:
                output.write_text(_preferences(existing, upgrade), "utf-8")
            arguments = [word for name in sorted(upgrade) for word in ("--refresh-package", name)]
        if standins:
            (Path(folder) / SOURCES).mkdir()
            for name, content in standins.items():
                (Path(folder) / SOURCES / name).write_bytes(content)
        if resolution.provided:
            arguments += _given(Path(folder), resolution.provided)
        arguments += write_rules(request, requirements, Path(folder))
        if resolution.until is not None:
            arguments += ["--exclude-newer", resolution.until.strftime("%Y-%m-%dT%H:%M:%SZ")]
        check_find_links()
        if backend is not None:
            arguments += ["--torch-backend", backend]
        else:
            check_no_backend()
        result = _compile(requirements, target, arguments, output)
        if result.returncode != 0:
            refuse_full_temporary("", Path(folder))
            raise _checked_refusal(_refusal(result, request.as_of, backend), session)
        # A file: address in uv's output is relative to the folder of the file.
        text = output.read_text("utf-8")
        found = _read(
            text,
            target,
            output.as_uri(),
            session,
            provided=resolution.provided,
            standins=standins or (),
            hashes=_preferred(resolution.hashes, existing, upgrade),
        )
    _check_addresses(found)
    _check_named_hashes(found, requirements)
    if existing is not None and upgrade is not None:
        _check_same_bytes(found, existing, upgrade)
    return found


def _check_addresses(found: Collection[PythonPackage]) -> None:
    """Refuse a file of this machine, or a server on its link, that an index names and no setting does."""
    for package in found:
        if package.source is None:
            try:
                check_address(package.wheel.url)
            except FetchError as error:
                raise ResolveError(
                    f"{package.name}: an index names {package.wheel.url}, and none of your settings does",
                    hint=error.hint,
                ) from None


def _check_named_hashes(found: Collection[PythonPackage], requirements: Sequence[str]) -> None:
    """Verify wheels by the hashes in the addresses of their requirements."""
    by_name = {package.name: package.wheel for package in found}
    for requirement in map(Requirement, requirements):
        wanted = Direct.parse(requirement.url).sha256 if requirement.url is not None else None
        wheel = by_name.get(canonicalize_name(requirement.name))
        if wanted is not None and wheel is not None and wheel.sha256 != wanted:
            raise ResolveError(
                f"{requirement.name}: {wheel.url} has the SHA-256 {wheel.sha256}, not {wanted} "
                "as its address says",
                hint="correct the hash, if you trust what is there now",
            )


def _check_same_bytes(found: Collection[PythonPackage], existing: Lock, upgrade: Collection[str]) -> None:
    """Raise `ResolveError` for a file that has other bytes than when it was locked, here or elsewhere."""
    locked = {package.wheel.filename: package.wheel for package in existing.python if package.source is None}
    for package in found:
        wheel, before = package.wheel, locked.get(package.wheel.filename)
        known = before is not None and package.source is None and wheel.sha256
        if before is None or not known or package.name in upgrade or before.sha256 == wheel.sha256:
            continue
        moved = "" if before.url == wheel.url else f"; it was locked from {before.url}"
        raise ResolveError(
            f"{package.name}: {wheel.url} gives other bytes than when it was locked: SHA-256 "
            f"{wheel.sha256}, not {before.sha256}{moved}",
            hint=(
                "two indexes have different files of one name: ask only the one that you trust; if it is the "
                "new one,"
                if moved
                else "whoever serves it has replaced the file; if you trust the new one,"
            )
            + f" `reprobuild lock --upgrade {package.name}`",
        )


def _given(folder: Path, provided: Mapping[str, str]) -> list[str]:
    """Return the uv arguments that pin conda's packages."""
    standins = folder / _STANDINS
    standins.mkdir()
    versions = write_standins(standins, provided)
    pins = "".join(f"{name}=={version}\n" for name, version in versions.items())
    (folder / "pins.txt").write_text(pins, "utf-8")
    # A marker that never holds takes a package out wherever it is asked for.
    rest = sorted(name for name in provided.keys() - versions.keys() if _NAME.fullmatch(name))
    (folder / "rest.txt").write_text("".join(f"{name} ; python_version < '0'\n" for name in rest), "utf-8")
    return ["--constraint", "pins.txt", "--override", "rest.txt"]


def _compile(
    requirements: Sequence[str], target: TargetPython, arguments: list[str], output: Path
) -> Completed:
    env = {key: value for key, value in os.environ.items() if key not in _DROPPED} | PLAIN
    command = [uv_program(), "pip", "compile", "--format", "pylock.toml", "--output-file", output.name]
    command += ["--quiet", "--python", sys.executable, "--python-version", target.version]
    command += ["--python-platform", target.uv_platform, "--only-binary", ":all:", "--no-header"]
    command += ["--resolution", "highest", "--prerelease", "if-necessary-or-explicit", *arguments, "-"]
    text = "".join(f"{_for_uv(requirement)}\n" for requirement in requirements)
    env |= uv_environment()
    # Not as an argument, which would take the place of the user's own, and those may have passwords.
    folders = [str(path) for name in (_STANDINS, SOURCES) if (path := output.parent / name).exists()]
    if folders:
        env["UV_FIND_LINKS"] = ",".join(filter(None, [*folders, env.get("UV_FIND_LINKS")]))
    asked = [without_credentials(url) for url in (*indexes().all, *find_links())]
    slow = f"try again; one of these may be slow: {', '.join(asked)}"
    with (
        guarded(of_steps()) as guard,
        named_when_stopped(ResolveError, "the packages were not resolved", slow=slow),
    ):
        # What an index serves is a stranger's, and uv holds each page whole.
        return run(
            command,
            env=env,
            cwd=output.parent,
            stdin=text.encode(),
            timeout=_TIMEOUT,
            check=False,
            guard=guard,
        )


def _for_uv(text: str) -> str:
    """Return a requirement without the hash in its address, which uv would apply to the file."""
    requirement = Requirement(text)
    if requirement.url is not None:
        requirement.url = str(dataclasses.replace(Direct.parse(requirement.url), sha256=None))
    if not (text := str(requirement)).isprintable():
        raise ResolveError(
            f"{requirement.name}: its requirement has a line break or another control character"
        )
    return text


def _preferences(existing: Lock, upgrade: Collection[str]) -> str:
    kept = [{"name": p.name, "version": p.version} for p in existing.python if p.name not in upgrade]
    return tomli_w.dumps({"lock-version": "1.0", "created-by": "reprobuild", "packages": kept})


def _checked_refusal(refusal: ResolveError, session: requests.Session) -> ResolveError:
    """Return uv's refusal, or raise its reason: to uv, a login page is an index without any version.

    A redirect without end is an answer that lacks a header.
    """
    named: Collection[str] = refusal.refusal.named if isinstance(refusal, RefusedError) else ()
    if isinstance(refusal, UnreachableError) and refusal.project:
        named = (refusal.project,)
    for name in sorted(named)[:_MOST_CHECKED]:
        check_pages(name, session)
    return refusal


def _refusal(result: Completed, as_of: date | None, backend: str | None) -> ResolveError:
    """Return the error for uv's output, with a remedy."""
    error = refused(scrub(result.stderr.decode("utf-8", "replace")), backend=backend)
    if not isinstance(error, RefusedError):
        return error
    refusal, hints = error.refusal, list(error.refusal.hints)
    if backend is None and any(
        n.startswith("torch") and _OWN_BUILD.fullmatch(v) for n, v in refusal.versions
    ):
        hints = ["PyTorch's own index may have that build: give --index pytorch"]
    if refusal.only_sources:
        hints = ["ask for a version that has a wheel, or publish one to your own index"]
    if any(version.endswith("+conda") for _, version in refusal.versions):
        hints.append("a version that ends in +conda is that of a conda package; ask for versions that fit it")
    if as_of is not None:
        hints.append(f"the request's as-of allows only what was published by {as_of}")
        if backend is not None:
            hints.append("PyTorch's own index gives no dates, so as-of cannot be combined with index")
    error.hint = "\n".join(hints) or CORRECT
    return error


def _read(
    text: str,
    target: TargetPython,
    base: str,
    session: requests.Session,
    *,
    provided: Collection[str] = (),
    standins: Collection[str] = (),
    hashes: Mapping[str, frozenset[str]],
) -> tuple[PythonPackage, ...]:
    try:
        lock = Pylock.from_dict(load_toml(text))
    except (PylockValidationError, ValueError) as error:
        raise ResolveError(
            f"uv's output cannot be read: {error}", hint="install another version of uv"
        ) from None
    chosen = [
        _choose(package, target, hashes.get(package.name, frozenset()))
        for package in lock.packages
        if package.name not in provided
    ]
    with ThreadPoolExecutor(16, "wheel-size") as pool:
        return tuple(pool.map(lambda pair: _locked(pair[0], pair[1], base, session, standins), chosen))


def _preferred(
    hashes: Mapping[str, frozenset[str]], existing: Lock | None, upgrade: Collection[str] | None
) -> Mapping[str, frozenset[str]]:
    """Return the hashes that are wanted, with those of what stays: a version may get another wheel later."""
    if existing is None or upgrade is None:
        return hashes
    locked = {p.name: frozenset({p.wheel.sha256}) for p in existing.python if p.name not in upgrade}
    return {**locked, **hashes}


def _choose(
    package: Package, target: TargetPython, preferred: Collection[str]
) -> tuple[Package, PackageWheel]:
    if package.archive is not None and (address := package.archive.url or package.archive.path) is not None:
        return _at_address(package, address, package.archive.hashes, target)
    wheels = {wheel.filename: wheel for wheel in package.wheels or ()}
    named = [name for name, wheel in wheels.items() if wheel.hashes.get("sha256", "").lower() in preferred]
    best = target.best(named) or target.best(sorted(wheels))
    if best is None or package.version is None:
        raise ResolveError(
            f"{package.name} {package.version or ''} has no wheel for Python {target.python} on "
            f"{target.uv_platform}; only wheels can be locked",
            hint="ask for a version that has one, or publish a wheel to your own index",
        )
    return package, wheels[best]


def _at_address(
    package: Package, url: str, hashes: Mapping[str, str], target: TargetPython
) -> tuple[Package, PackageWheel]:
    """Return the wheel of a requirement that names it by its address; uv has hashed the file."""
    bare = url.partition("#")[0]
    name = unquote(bare.rpartition("/")[2])
    if target.best([name]) is None:
        raise ResolveError(
            f"{package.name}: {name} is not a wheel for Python {target.python} on {target.uv_platform}",
            hint="name the wheel for this Python and machine, or another python in the request",
        )
    wheel = PackageWheel(name=name, url=bare, hashes=dict(hashes))
    return dataclasses.replace(package, version=parse_wheel_filename(name)[1]), wheel


def _locked(
    package: Package, wheel: PackageWheel, base: str, session: requests.Session, standins: Collection[str]
) -> PythonPackage:
    if wheel.filename in standins:
        unknown = Wheel(filename=wheel.filename, url="", sha256="", size=0)
        return PythonPackage(name=package.name, version=str(package.version), wheel=unknown)
    address = wheel.url or urljoin(base, wheel.path or "")
    sha256 = wheel.hashes.get("sha256")
    if sha256 is None:
        raise ResolveError(
            f"the index gives no SHA-256 for {wheel.filename}",
            hint="use an index that does: without it a file cannot be locked",
        )
    return PythonPackage(
        name=package.name,
        version=str(package.version),
        wheel=Wheel(
            filename=wheel.filename,
            url=without_credentials(address),
            sha256=sha256.lower(),
            size=wheel.size or file_size(address, session),
            uploaded=_whole_second(wheel.upload_time),
        ),
    )


def _whole_second(time: datetime | None) -> datetime | None:
    return None if time is None else time.astimezone(UTC).replace(microsecond=0)


def file_size(address: str, session: requests.Session) -> int:
    """Query the server for the size of a file, which HTML indexes lack. Raises `ResolveError`."""
    parts = urlsplit(address)
    try:
        if parts.scheme == "file":
            return Path(unquote(parts.path)).stat().st_size
        with session.head(address, allow_redirects=True, headers={"Accept-Encoding": "identity"}) as answer:
            if answer.ok and answer.headers.get("Content-Length", "0") != "0":
                return int(answer.headers["Content-Length"])
        # Some servers do not answer HEAD, or without a length.
        header = {"Range": "bytes=0-0", "Accept-Encoding": "identity"}
        with session.get(address, headers=header, stream=True) as answer:
            answer.raise_for_status()
            whole = answer.headers.get("Content-Range", "").rpartition("/")[2]
            return int(whole or answer.headers["Content-Length"])
    except (requests.RequestException, OSError, KeyError, ValueError) as error:
        raise ResolveError(
            f"the size of {without_credentials(address)} cannot be determined: {reason_of(error)}",
            hint="try again; the server must report the size of a file",
        ) from None
