"""What libraries tell at the end of a program of the files that they wrote."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch_python import need_torch, torch_python

from reprobuild.in_image.twice import library_formats
from reprobuild.twice.library_formats import HEAD, told_contents
from reprobuild.twice.recorded_run import HowToRun
from reprobuild.twice.report import verdict, verdict_line
from support.twice import PROGRAMS, compared

_VALUES = st.recursive(
    st.one_of(
        st.none(), st.integers(), st.floats(allow_nan=False), st.text(max_size=4), st.binary(max_size=4)
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=6,
)


@given(_VALUES, _VALUES)
def test_values_that_differ_are_shown_otherwise(one: object, other: object) -> None:
    assert (library_formats._shown(one) == library_formats._shown(other)) == (repr(one) == repr(other))


def test_the_lines_belong_to_the_bytes_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file that is too large, gone, a link or damaged nothing is told."""
    records = tmp_path / "records"
    records.mkdir()
    monkeypatch.setenv("REPROBUILD_TWICE", str(records))
    monkeypatch.setitem(
        library_formats._READERS, "text", lambda path: Path(path).read_text(encoding="ascii").split("\n")
    )
    monkeypatch.setattr(library_formats, "MOST_BYTES", 100)
    for name, content in (("a", b"one\n" + b"2" * 90), ("large", b"1" * 101), ("damaged", b"\xff")):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "link").symlink_to("a")
    for name in ("a", "large", "damaged", "gone", "link"):
        library_formats.note(tmp_path / name, "text")
    library_formats.note(7, "text")  # a descriptor
    library_formats.write()
    digest = hashlib.sha256((tmp_path / "a").read_bytes()).hexdigest()
    assert told_contents(records) == {digest: (f"{HEAD}one", "2" * 90)}
    library_formats.write()
    assert len(list(records.iterdir())) == 1


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("library", ["polars", "pyarrow", "h5py", "duckdb"])
def test_a_time_beside_a_result_in_a_file_of_a_library(library: str, tmp_path: Path) -> None:
    need_torch()
    has_it = [torch_python(), "-c", f"import {library}"]
    if subprocess.run(has_it, check=False, capture_output=True).returncode:
        pytest.skip(f"{library} is not installed")
    argv = [str(PROGRAMS / "library_formats.py"), library]
    found = compared(torch_python(), [*argv, "0.25"], tmp_path)
    assert verdict(found) == "text", verdict_line(found)
    found = compared(torch_python(), [*argv, "drawn"], tmp_path, how=HowToRun(trace=False))
    assert verdict(found) == "parts", verdict_line(found)
    assert all(end.what.startswith("line ") for end in found.ends)
