"""Python for a Debian release that has another one: python-build-standalone, from uv's own list.

uv knows each build with its address and hash, follows the user's mirror (``UV_PYTHON_INSTALL_MIRROR``, or a
list of one's own in ``UV_PYTHON_DOWNLOADS_JSON_URL``), and verifies what it fetches with that hash. Nothing
of the build is run on the host.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from packaging.version import Version

from ..errors import ResolveError
from ..fetch.store import Store
from ..host.home import open_regular, storage_errors
from ..host.host import Host
from ..host.limits import guarded, of_steps
from ..host.process import Completed, named_when_stopped, run
from ..lock.model import Lock
from ..lock.standalone_python import StandalonePython
from ..net.index_settings import PLAIN, PYTHON_MIRROR, uv_environment, uv_program
from ..net.session import scrub, without_credentials
from ..request.model import DEBIAN_PYTHONS, Request

_TIMEOUT = 900.0
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_RELEASE = re.compile(r"/(\d{8})/[^/]+$")
"""The day of a build, in its address."""


def resolve_standalone(
    request: Request,
    machine: str,
    *,
    existing: Lock | None,
    upgrade: frozenset[str],
    fitting: Collection[str] = (),
    host: Host,
) -> StandalonePython | None:
    """Return the build for a request and a machine (``amd64``); None where Python comes from elsewhere.

    That of ``existing`` stays, unless ``upgrade`` names ``python``. Raises `ResolveError` with what would do
    in its place where there is none, or it cannot be fetched; ``fitting`` are the Pythons that may be named,
    by default all.
    """
    if not request.is_standalone:
        return None
    if (before := _kept(request, existing)) is not None and "python" not in upgrade:
        return before
    try:
        version, url = _newest(request, machine)
        with host.home.scratch("python") as folder:
            return _fetched(f"cpython-{version}-linux-{_MACHINES[machine]}-gnu", version, url, folder, host)
    except ResolveError as error:
        raise ResolveError(
            error.message, hint=f"{error.hint}\n{elsewhere(request.python, fitting)}"
        ) from None


def standalone_version(request: Request, machine: str, existing: Lock | None) -> str:
    """Return the version of the build that `resolve_standalone` would return. Raises `ResolveError`."""
    before = _kept(request, existing)
    return _newest(request, machine)[0] if before is None else before.version


def _kept(request: Request, existing: Lock | None) -> StandalonePython | None:
    before = None if existing is None else existing.standalone
    return before if before is not None and before.minor == request.python else None


def elsewhere(python: str, fitting: Collection[str] = ()) -> str:
    """Return where a Python minor version comes from, beside a standalone build; a line each."""
    there = {each: suite for each, suite in DEBIAN_PYTHONS.items() if not fitting or each in fitting}
    debian = ", or ".join(f"--python {minor} ({suite})" for minor, suite in there.items())
    return (
        (f"or take a Python of Debian's: give {debian}\n" if debian else "")
        + f'or conda\'s: [conda] channels = ["conda-forge"], packages = ["python ={python}"] in the request\n'
        f"or a base image that has it: --base-image python:{python}-slim"
    )


def _newest(request: Request, machine: str) -> tuple[str, str]:
    """Return version and address of the newest build that uv knows."""
    key, as_of = f"cpython-{request.python}-linux-{_MACHINES[machine]}-gnu", request.as_of
    done = _uv(["list", key, "--only-downloads", "--all-versions", "--output-format", "json"])
    if done.returncode != 0:
        raise _unreadable(done)
    found = []
    for each in _listed(done.stdout):
        parts, url = each["version_parts"], each["url"]
        version = f"{parts['major']}.{parts['minor']}.{parts['patch']}"
        # Neither a pre-release nor a build for newer processors, free threads or debugging.
        if each["key"] != key.replace(".".join(version.split(".")[:2]), version, 1):
            continue
        day = _RELEASE.search(url)
        if as_of is not None and (day is None or datetime.strptime(day[1], "%Y%m%d").date() > as_of):  # noqa: DTZ007 -- a day
            continue
        found.append((Version(version), version, url))
    if not found:
        until = "" if as_of is None else f" of {as_of} or earlier"
        raise ResolveError(
            f"Python {request.python}: uv knows no standalone build{until}",
            hint="a newer uv may know it: pip install --upgrade uv",
        )
    _, version, url = max(found)
    return version, url


def _listed(output: bytes) -> list[Any]:
    try:
        listed = json.loads(output)
    except ValueError:
        listed = None
    if not isinstance(listed, list):
        raise ResolveError("uv's list of Pythons cannot be read", hint="pip install --upgrade uv")
    return listed


def _fetched(key: str, version: str, url: str, folder: Path, host: Host) -> StandalonePython:
    """Download and verify a build with uv; add its archive to the store."""
    host.console.step(f"fetching Python {version}, a standalone build")
    folder = folder.absolute()
    cache = folder / "archives"
    done = _uv(
        ["install", key, "--install-dir", str(folder / "unpacked"), "--no-bin", "--no-progress"],
        cache=cache,
        mirrored=True,
    )
    archives = [path for path in cache.glob("*") if path.name.endswith(".tar.gz")] if cache.is_dir() else []
    if done.returncode != 0 or len(archives) != 1:
        raise _unreadable(done)
    with storage_errors(folder), open_regular(archives[0]) as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        size = file.tell()
    Store(host.home).add(sha256, archives[0])
    return StandalonePython(version=version, url=without_credentials(url), sha256=sha256, size=size)


def _uv(arguments: Sequence[str], *, cache: Path | None = None, mirrored: bool = False) -> Completed:
    # The lock has the address without a mirror, which is a setting of this machine.
    env = {key: value for key, value in os.environ.items() if mirrored or key != PYTHON_MIRROR}
    env |= PLAIN | uv_environment()
    if cache is not None:
        env["UV_PYTHON_CACHE_DIR"] = str(cache)
    slow = f"try again, or name a mirror in {PYTHON_MIRROR}"
    with guarded(of_steps()) as guard, named_when_stopped(ResolveError, "Python was not found", slow=slow):
        # uv reads the settings of the project that it is called in, which may be a stranger's.
        command, outside = [uv_program(), "python", *arguments], Path("/")
        return run(command, env=env, cwd=outside, timeout=_TIMEOUT, check=False, guard=guard)


def _unreadable(done: Completed) -> ResolveError:
    said = scrub(done.stderr.decode("utf-8", "replace")).strip()
    return ResolveError(
        f"uv could not fetch a standalone build of Python:\n{said[-2000:]}",
        hint=f"a mirror of python-build-standalone can be named in {PYTHON_MIRROR}",
    )
