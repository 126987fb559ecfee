"""The compiler's answer: bytecode of what it was given, and nothing else."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import strategies as st

from reprobuild.errors import BuildError
from reprobuild.in_image import bytecode
from reprobuild.layers.bytecode_stream import BYTECODE, SOURCES, Bytecode, Sources
from support.fuzz import for_long, quickly

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
TAG = f"cpython-{PYTHON.replace('.', '')}"
SITE = f"opt/venv/lib/python{PYTHON}/site-packages"
MODULE = f"{SITE}/toy/a.py"
COMPILED = f"{SITE}/toy/__pycache__/a.{TAG}.pyc"
SENT = {MODULE: 6}


def good() -> bytes:
    """Return what the compiler really says to ``A = 1``."""
    sources, out = io.BytesIO(), io.BytesIO()
    bytecode.write(sources, f"/{MODULE}", b"A = 1\n")
    sources.seek(0)
    bytecode.compile_stream(sources, out)
    out.seek(0)
    ((path, content),) = bytecode.read(out)
    assert path == f"/{COMPILED}"
    return content


def answer(stage: Path, *entries: tuple[str, bytes], package: str = "toy") -> Path:
    with (stage / f"{package}{BYTECODE}").open("wb") as file:
        for path, content in entries:
            bytecode.write(file, path, content)
    return stage


def read(stage: Path, sent: Mapping[str, Mapping[str, int]] | None = None) -> dict[str, bytes]:
    found = Bytecode(stage, {"toy": SENT} if sent is None else sent, PYTHON)
    return {path: found.read(path) for path in found.paths()}


def test_what_was_asked_for_is_taken(tmp_path: Path) -> None:
    assert read(answer(tmp_path, (f"/{COMPILED}", good()))) == {COMPILED: good()}


def test_of_two_packages_with_one_path_the_first_counts(tmp_path: Path) -> None:
    answer(tmp_path, (f"/{COMPILED}", good()))
    answer(tmp_path, (f"/{COMPILED}", good() + b"more"), package="other")
    assert read(tmp_path, {"toy": SENT, "other": SENT}) == {COMPILED: good()}


def test_sources_remember_what_was_sent(tmp_path: Path) -> None:
    sources = Sources((tmp_path / f"toy{SOURCES}").open("wb"))
    sources.add(MODULE, b"A = 1\n")
    sources.close()
    assert sources.sizes == SENT
    with (tmp_path / f"toy{SOURCES}").open("rb") as file:
        assert list(bytecode.read(file)) == [(f"/{MODULE}", b"A = 1\n")]


@pytest.mark.parametrize(
    "path",
    [
        "/etc/profile.d/evil.sh",
        f"/{MODULE}",
        f"/{SITE}/toy/__pycache__/b.{TAG}.pyc",
        f"/{SITE}/toy/__pycache__/a.cpython-27.pyc",
        f"/{SITE}/toy/a.pyc",
        f"/{SITE}/toy/../toy/__pycache__/a.{TAG}.pyc",
        f"//{COMPILED}",
        COMPILED,
        "",
    ],
)
def test_a_path_that_was_not_asked_for(tmp_path: Path, path: str) -> None:
    with pytest.raises(BuildError, match=r"gave bytecode that is refused: toy: it (has|cannot be read)"):
        read(answer(tmp_path, (path, good())))


def test_an_answer_given_twice(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="not asked for"):
        read(answer(tmp_path, (f"/{COMPILED}", good()), (f"/{COMPILED}", good())))


@pytest.mark.parametrize(
    ("start", "new"),
    [
        (0, b"\x00\x00"),  # of another Python
        (2, b"xx"),
        (4, b"\x00"),  # by time stamp: the source would be compiled anew
        (4, b"\x03"),  # checked hash: likewise
        (16, b"i"),  # not a code object
    ],
)
def test_another_head(tmp_path: Path, start: int, new: bytes) -> None:
    content = good()
    content = content[:start] + new + content[start + len(new) :]
    with pytest.raises(BuildError, match="is not bytecode"):
        read(answer(tmp_path, (f"/{COMPILED}", content)))


@pytest.mark.parametrize("size", [0, 16, (1 << 20) + 1])
def test_a_size_out_of_reason(tmp_path: Path, size: int) -> None:
    content = (good() + bytes(size))[:size]
    with pytest.raises(BuildError, match=f"has {size} bytes, and its source 6"):
        read(answer(tmp_path, (f"/{COMPILED}", content)))


def test_an_answer_that_is_cut_short(tmp_path: Path) -> None:
    file = answer(tmp_path, (f"/{COMPILED}", good())) / f"toy{BYTECODE}"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(BuildError, match="cut short"):
        read(tmp_path)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "none"])
def test_an_archive_that_is_no_file(tmp_path: Path, kind: str) -> None:
    """A link would be read on this machine, and a pipe waited for."""
    archive = tmp_path / f"toy{BYTECODE}"
    if kind == "link":
        archive.symlink_to(answer(tmp_path, (f"/{COMPILED}", good()), package="secret") / f"secret{BYTECODE}")
    elif kind == "pipe":
        os.mkfifo(archive)
    elif kind == "folder":
        archive.mkdir()
    with pytest.raises(BuildError, match="missing" if kind == "none" else "not a regular file"):
        read(tmp_path)


RUBBISH = st.binary(max_size=200) | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(
    lambda value: json.dumps(value).encode() + b"\n"
)
"""Bytes, and lines of JSON of another form."""


def rubbish_is_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("stage")
    (folder / f"toy{BYTECODE}").write_bytes(data)
    if data:
        with pytest.raises(BuildError):
            read(folder)
    else:
        assert read(folder) == {}


def changed_answers_are_still_bytecode(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = answer(tmp_path_factory.mktemp("stage"), (f"/{COMPILED}", good()))
    whole = bytearray((folder / f"toy{BYTECODE}").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    (folder / f"toy{BYTECODE}").write_bytes(bytes(whole))
    try:
        found = read(folder)
    except BuildError:
        return
    assert set(found) <= {COMPILED}
    assert all(content[:8] == good()[:8] for content in found.values())


test_rubbish_is_refused = quickly(data=RUBBISH)(rubbish_is_refused)
test_rubbish_for_long = for_long(data=RUBBISH)(rubbish_is_refused)
test_changed_answers_are_still_bytecode = quickly(data=st.data())(changed_answers_are_still_bytecode)
test_changed_answers_for_long = for_long(data=st.data())(changed_answers_are_still_bytecode)
