"""One path that a conda package and a wheel install with different bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import pytest

from reprobuild.errors import ResolveError
from reprobuild.host.workers import workers
from reprobuild.lock.packages import CondaPackage, PythonPackage
from reprobuild.net.session import session
from reprobuild.resolve.wheel_files import WheelEnds, examine
from support.conda_archives import conda_archive, conda_package, listed, member
from support.index import File, Index
from support.listed_wheels import put
from support.locks import LOCK

pytest_plugins = ["support.family"]


def conda(
    index: Index, name: str, files: Mapping[str, bytes], *, old: bool = False, ranges: bool = True
) -> CondaPackage:
    """Put a conda package on a server that answers range requests."""
    paths = [
        listed(path, sha256=hashlib.sha256(data).hexdigest(), size_in_bytes=len(data))
        for path, data in files.items()
    ]
    data = conda_archive([member(path, data) for path, data in files.items()], paths, name=name, old=old)
    package = conda_package(data, name, old=old)
    index.files.append(File(project=name, name=package.filename, body=data, ranges=ranges))
    return replace(package, url=f"{index.root}/files/{package.filename}", depends=("python >=3.9",))


def lines(conda: CondaPackage, *wheels: PythonPackage) -> list[str]:
    with session(retries=0) as http, workers(2) as pool:
        return examine(replace(LOCK, python=wheels, conda=(conda,)), WheelEnds(http, pool))


SITE = "lib/python3.11/site-packages"


@pytest.mark.parametrize("old", [False, True], ids=["conda", "tar.bz2"])
def test_what_both_install_with_different_bytes_is_named(index: Index, old: bool) -> None:
    wheel = put(
        index,
        "opencv_python",
        {
            "cv2/__init__.py": b"1",
            "cv2/same.py": b"",
            "cv2/longer.py": b"12",
            "own.py": b"",
            "opencv_python-1.data/scripts/cv": b"1",
        },
    )
    files = {f"{SITE}/cv2/__init__.py": b"2", f"{SITE}/cv2/same.py": b"", "bin/cv": b"2"}
    files |= {f"{SITE}/cv2/__pycache__/__init__.cpython-311.pyc": b"", "own.py": b"2"}
    (line,) = lines(conda(index, "py-opencv", files, old=old), wheel)
    assert line == (
        "py-opencv from conda and the wheel of opencv-python both install cv2/__init__.py, scripts: cv, with "
        "different bytes; those of the wheel are taken. Ask for one of the two: without the wheel by "
        "overrides = [\"opencv-python ; python_version < '0'\"]"
    )
    noarch = {"site-packages/cv2/longer.py": b"1", "python-scripts/cv": b"1"}
    (line,) = lines(conda(index, "noarch", noarch, old=old), wheel)
    assert "both install cv2/longer.py, with" in line


def test_a_package_that_both_install_is_refused(index: Index) -> None:
    wheel = put(index, "jinja2", {"jinja2/__init__.py": b""})
    files = {f"{SITE}/Jinja2-3.1.4.dist-info/METADATA": b"Name: Jinja2"}
    with pytest.raises(ResolveError, match="jinja2 would be installed twice: by templates from conda"):
        lines(conda(index, "templates", files), wheel)


def test_a_channel_that_gives_no_parts_is_named(index: Index) -> None:
    wheel = put(index, "a", {"a.py": b""})
    (line,) = lines(conda(index, "b", {f"{SITE}/a.py": b"1"}, ranges=False), wheel)
    assert line.startswith("b from conda: the channel gives no parts of these packages, so what they share")


@pytest.mark.parametrize(
    "listing",
    [b"[" * 200_000, b'{"paths": [1]}', b'{"paths": []}' + b" " * (33 << 20)],
    ids=["deep", "odd", "large"],
)
def test_what_a_channel_says_of_files_is_read_within_bounds(index: Index, listing: bytes) -> None:
    wheel = put(index, "a", {"a.py": b""})
    data = conda_archive([], listing, name="b")
    package = conda_package(data, "b")
    index.files.append(File(project="b", name=package.filename, body=data))
    there = replace(package, url=f"{index.root}/files/{package.filename}", depends=("python",))
    (line,) = lines(there, wheel)
    assert line.startswith("b from conda: the channel gives no parts")
