"""A standalone Python becomes a layer, compiled by itself in a real sandbox."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.errors import BuildError
from reprobuild.layers import standalone_python
from reprobuild.layers.standalone_python import write_standalone
from reprobuild.lock.model import Lock
from reprobuild.oci.tar_writer import LayerWriter, Record
from support.locks import LOCK
from support.python_root import PYTHON, python_root
from support.resolving import request
from support.standalone_python import archive, locked

SUITE = "trixie" if PYTHON != "3.13" else "bookworm"


def lock_of(body: bytes) -> Lock:
    return replace(
        LOCK, request=request(python=PYTHON, base={"debian": SUITE}), standalone=locked(body), debian=()
    )


def written(body: bytes, below: Path, folder: Path) -> Mapping[str, Record]:
    """Return the entries of the layer of an archive, by path."""
    folder.mkdir()
    (folder / "archive").write_bytes(body)
    (folder / "scratch").mkdir()
    writer = LayerWriter(io.BytesIO())
    write_standalone(lock_of(body), folder / "archive", [below], folder / "scratch", writer)
    return {record.path: record for record in writer.records}


@pytest.mark.slow
def test_the_build_is_laid_out_and_compiled_the_same_each_time(tmp_path: Path) -> None:
    needs("crun")
    body = archive()
    below = python_root(tmp_path / "below")
    (below / "bin").mkdir()
    shutil.copy(Path("/bin/sh").resolve(), below / "bin/sh")
    found = written(body, below, tmp_path / "one")
    library = f"opt/python/lib/python{PYTHON}"
    assert list(found)[:2] == ["opt", "opt/python"]
    assert (found["opt/python/bin/python3"].kind, found["opt/python/bin/python3"].content) == (
        "link",
        f"python{PYTHON}",
    )
    assert found[f"opt/python/bin/python{PYTHON}"].mode == 0o755
    assert found[f"{library}/os.py"].mode == 0o644
    assert found[f"{library}/__pycache__/os.cpython-{PYTHON.replace('.', '')}.pyc"].kind == "file"
    assert not [path for path in found if "site-packages" in path]
    assert written(body, below, tmp_path / "two") == found


def odd(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.mark.parametrize(
    ("member", "says"),
    [
        (odd("python/../../etc/passwd"), "leads out"),
        (odd("/etc/passwd"), "is not below python/"),
        (odd("other/file"), "is not below python/"),
        (odd("python/lib/out", tarfile.SYMTYPE, "../../../etc/passwd"), "leads outside"),
        (odd("python/lib/out", tarfile.SYMTYPE, "/etc/passwd"), "leads outside"),
        (odd("python/lib/pipe", tarfile.FIFOTYPE), "is neither a file nor a link"),
        (odd(f"python/bin/python{PYTHON}"), "is there twice"),
        (odd(f"python/bin/python{PYTHON}/x"), "is there twice, or is a folder too"),
        (odd("python/bin"), "two of its entries have one name"),
    ],
)
def test_an_archive_of_a_stranger_s_is_refused(member: tarfile.TarInfo, says: str, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=f"^python.tar.gz: .*{says}"):
        written(archive(member), tmp_path, tmp_path / "one")


def test_what_is_no_archive_and_what_is_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = archive()
    for number, cut in enumerate((b"", b"no archive", body[: len(body) // 2])):
        with pytest.raises(BuildError, match=r"^python.tar.gz: (it cannot be read|it has no python/bin)"):
            written(cut, tmp_path, tmp_path / f"{number}")
    monkeypatch.setattr(standalone_python, "_MOST_BYTES", 1 << 20)
    with pytest.raises(BuildError, match="it has more than 100,000 files or 0 GiB"):
        written(body, tmp_path, tmp_path / "one")
    monkeypatch.setattr(standalone_python, "_MOST_BYTES", 2 << 30)
    monkeypatch.setattr(standalone_python, "_MOST_FILES", 20)
    with pytest.raises(BuildError, match="it has more than 20 files or 2 GiB"):
        written(body, tmp_path, tmp_path / "two")


def test_modes_are_one_of_two(tmp_path: Path) -> None:
    """Whatever the archive says: neither set-user-id, nor what anybody may write."""
    some = [odd("python/bin/tool"), odd("python/lib/readme")]
    some[0].mode, some[1].mode = 0o4777, 0o1666
    (tmp_path / "archive").write_bytes(archive(*some))
    (tmp_path / "root").mkdir()
    found = standalone_python._unpack(locked(b""), tmp_path / "archive", tmp_path / "root")
    assert [found[f"opt/python/{each.name[7:]}"].mode for each in some] == [0o755, 0o644]
