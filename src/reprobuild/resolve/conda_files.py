"""Find files that both conda packages and wheels of a lock install, from their own lists.

Neither conda nor uv knows of the other's: conda's ``opencv`` and the wheel ``opencv-python`` have no name in
common (https://github.com/conda-forge/opencv-feedstock/issues/188).
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import requests
from packaging.utils import canonicalize_name

from ..errors import BuildError, ResolveError
from ..fetch.conda_archive import listed_files
from ..host.console import first_of
from ..lock.model import Lock
from ..lock.packages import CondaPackage
from .wheel_metadata import ranged_file

_SITE = re.compile(r"(?:lib/python3[^/]*/)?site-packages/(.+)")
_SCRIPT = re.compile(r"(?:bin|python-scripts)/(.+)")
_DIST_INFO = re.compile(r"([^/]+)-[^/-]+\.(?:dist|egg)-info/.+")

_Files = Mapping[str, tuple[int, str]]


def shared_with_conda(
    lock: Lock,
    sizes: Mapping[str, Mapping[str, int]],
    hashes: Mapping[str, Mapping[str, str]],
    session: requests.Session,
) -> Iterator[str]:
    """Yield a line for each conda package and wheel that install one path with different bytes.

    ``sizes`` and ``hashes`` are those of the wheels' files: package → where it is installed → which. Raises
    `ResolveError` for a package that both install, which no build takes.
    """
    asked = [package for package in lock.conda if package.is_python] if sizes else []
    with ThreadPoolExecutor(16, "conda-files") as pool:
        found = list(pool.map(lambda package: _read(package, session), asked))
    for package, files in zip(asked, found, strict=True):
        _refuse_second_copy(package, files or {}, lock)
        for name in sorted(sizes):
            paths = [
                path
                for path, (size, sha256) in sorted((files or {}).items())
                if path in sizes[name]
                and (size != sizes[name][path] or sha256 != hashes[name].get(path, sha256))
            ]
            if paths:
                yield (
                    f"{package.name} from conda and the wheel of {name} both install "
                    f"{first_of(paths)}, with different bytes; those of the wheel are "
                    f"taken. Ask for one of the two: without the wheel by overrides = "
                    f"[\"{name} ; python_version < '0'\"]"
                )
    unread = [package.name for package, files in zip(asked, found, strict=True) if files is None]
    if unread:
        yield (
            f"{first_of(unread)} from conda: the channel gives no parts of these "
            "packages, so what they share with wheels is unknown"
        )


def _refuse_second_copy(package: CondaPackage, files: _Files, lock: Lock) -> None:
    wheels = {each.name: each.wheel.filename for each in lock.python}
    for path in sorted(files):
        match = _DIST_INFO.fullmatch(path)
        if match and (name := canonicalize_name(match[1])) in wheels:
            raise ResolveError(
                f"{name} would be installed twice: by {package.name} from conda, and as the wheel "
                f"{wheels[name]}",
                hint=f"leave one of them out; without the wheel: "
                f"overrides = [\"{name} ; python_version < '0'\"]",
            )


def _read(package: CondaPackage, session: requests.Session) -> _Files | None:
    """Read where a package's files are installed, in the words of `wheel_files`; None where that fails."""
    try:
        with io.BufferedReader(ranged_file(package.url, session)) as archive:
            files = listed_files(archive, package.filename)
    except (BuildError, requests.RequestException, ValueError, OSError, RecursionError):
        return None
    return {where: what for path, what in files.items() if (where := _installed(path)) is not None}


def _installed(path: str) -> str | None:
    if "__pycache__/" in path:
        return None
    if match := _SITE.fullmatch(path):
        return match[1]
    if match := _SCRIPT.fullmatch(path):
        return f"scripts: {match[1]}"
    return f"data: {path}"
