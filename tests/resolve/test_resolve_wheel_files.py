"""The files of locked wheels: shared paths, and wheels that contradict their RECORD."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reprobuild.errors import ResolveError
from reprobuild.host.workers import workers
from reprobuild.lock.packages import PythonPackage
from reprobuild.net.session import session
from reprobuild.resolve.wheel_files import WheelEnds, examine
from support.index import Index
from support.listed_wheels import put, row
from support.locks import LOCK
from support.resolving import request

pytest_plugins = ["support.family"]


def lines(
    *packages: PythonPackage,
    allowed: tuple[str, ...] = (),
    first: tuple[str, ...] = (),
    overrides: tuple[str, ...] = (),
) -> list[str]:
    keys = {"allow-bad-record": allowed, "file-priority": first, "overrides": overrides}
    asked = request(**{key: list(value) for key, value in keys.items()})
    with session(retries=0) as http, workers(2) as pool:
        return examine(replace(LOCK, python=packages, request=asked), WheelEnds(http, pool))


def test_one_path_with_different_bytes_is_named_with_the_package_that_has_its_way(index: Index) -> None:
    b = put(index, "b", {"tests/__init__.py": b"", "cv2/a.py": b"1", "cv2/b.py": b"1", "own.py": b""})
    a = put(index, "a", {"tests/__init__.py": b"", "cv2/a.py": b"2", "a-1.data/purelib/cv2/b.py": b"2"})
    said = "a and b both install cv2/a.py, cv2/b.py, with different bytes; those of a are taken."
    (line,) = lines(b, a)
    assert line.startswith(said)
    assert "--file-priority b" in line
    assert lines(b, a, first=("b",)) == []
    (line,) = lines(b, a, first=("a", "b"))
    assert line.startswith(said)
    with pytest.raises(ResolveError, match="file-priority: cv2: not among the locked Python packages"):
        lines(b, a, first=("b", "cv2"))
    assert lines(put(index, "c", {"tests/__init__.py": b""}), a) == []


def test_what_was_begun_while_others_work_is_not_asked_for_again(index: Index) -> None:
    b, a = put(index, "b", {"x.py": b"1"}), put(index, "a", {"x.py": b"2"})
    with session(retries=0) as http, workers(2) as pool:
        ends = WheelEnds(http, pool)
        ends.begin([a, b])
        ends.read([a, b])
        index.status = 500
        (line,) = examine(replace(LOCK, python=(b, a), request=request()), ends)
    assert line.startswith("a and b both install x.py, with different bytes")


@pytest.mark.parametrize(
    ("record", "wrong"),
    [
        (row("x.py", b"12"), "x.py has 1 bytes, not 2"),
        (row("x-1.dist-info/METADATA", b"Name: y\n"), "the SHA-256 of x-1.dist-info/METADATA is another"),
        # Padded hashes and paths from the root are odd, and right.
        (row("/x.py", b"1", "=") + row("x-1.dist-info/METADATA", b"Name: x\n", "="), ""),
    ],
)
def test_a_wheel_that_contradicts_its_record_is_refused_unless_it_is_allowed(
    index: Index, record: str, wrong: str
) -> None:
    package = put(index, "x", {"x.py": b"1"}, record)
    if wrong:
        with pytest.raises(ResolveError, match=f"x 1 is not what its own RECORD says: {wrong}") as caught:
            lines(package)
        assert "--allow-bad-record x" in (caught.value.hint or "")
    assert lines(package, allowed=("x",)) == []


def test_a_wheel_that_cannot_be_read_in_parts_is_named(index: Index) -> None:
    (line,) = lines(put(index, "x", {"x.py": b"1"}, ranges=False))
    assert line.startswith("x: the index gives no parts of these wheels")


def test_a_wheel_that_requires_what_the_lock_lacks_is_named(index: Index) -> None:
    """uv takes what the index says of it, or what another wheel of the release requires."""
    needs = ["B>1", "c ; sys_platform == 'win32'", "d ; extra == 'x'", "e", "f~=1.0 ; python_version > '3'"]
    metadata = "Name: a\n" + "".join(f"Requires-Dist: {each}\n" for each in needs)
    a, b = put(index, "a", {}, metadata=metadata), put(index, "b", {}, metadata="Requires-Dist: a>=1.dev0\n")
    (line,) = lines(a, b, put(index, "f", {}))
    assert line.startswith(
        "the wheel of a 1 requires B>1 (1 is locked), e (none is locked), which the metadata"
    )
    assert lines(a, b, put(index, "f", {}), overrides=("b", "e<1")) == []
