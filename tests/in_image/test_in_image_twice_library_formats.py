"""What libraries tell at the end of a program of the files that they wrote."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch_python import need_torch, torch_python

from reprobuild.in_image.twice import library_formats
from reprobuild.twice.library_formats import HEAD, told_contents
from reprobuild.twice.recorded_run import HowToRun
from reprobuild.twice.report import verdict, verdict_line
from support.twice import PROGRAMS, compared

LIBRARIES = ("polars", "pyarrow", "h5py", "duckdb")
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


def changing(path: str) -> list[str]:
    """Read a file that is written meanwhile."""
    lines = Path(path).read_text(encoding="ascii").split("\n")
    Path(path).write_bytes(b"five")
    return lines


def test_the_lines_belong_to_the_bytes_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file that is too large, gone, a link or damaged nothing is told."""
    records = tmp_path / "records"
    records.mkdir()
    monkeypatch.setenv("REPROBUILD_TWICE", str(records))
    monkeypatch.setitem(
        library_formats.READERS, "text", lambda path: Path(path).read_text(encoding="ascii").split("\n")
    )
    monkeypatch.setattr(library_formats, "MOST_BYTES", 100)
    for name, content in (("a", b"one\n" + b"2" * 90), ("large", b"1" * 101), ("damaged", b"\xff")):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "b").write_bytes(b"three")
    (tmp_path / "link").symlink_to("b")
    (tmp_path / "changes").write_bytes(b"four")
    monkeypatch.setitem(library_formats.READERS, "changing", changing)
    for name in ("a", "large", "damaged", "gone", "link", "changes"):
        library_formats.note(tmp_path / name, "changing" if name == "changes" else "text")
    library_formats.note(7, "text")  # a descriptor
    library_formats.write()
    digest = hashlib.sha256((tmp_path / "a").read_bytes()).hexdigest()
    assert told_contents(records) == {digest: (f"{HEAD}one", "2" * 90)}
    library_formats.write()
    assert len(list(records.iterdir())) == 1


def test_a_file_is_followed_to_its_new_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(library_formats, "_paths", {})
    renames = library_formats._Renaming(os.rename, library_formats._moved)

    class Accessor:  # as pathlib has it up to Python 3.10
        rename = renames

    calls: list[Any] = [renames, Accessor().rename, lambda a, b: renames(src=a, dst=b)]
    for number, call in enumerate(calls):
        (tmp_path / "a").touch()
        library_formats.note("a", "parquet")
        call(Path("a"), f"b{number}")
        assert library_formats._paths.pop(str(tmp_path / f"b{number}")) == "parquet"
        assert not library_formats._paths
    folder = os.open(tmp_path, os.O_RDONLY)
    library_formats.note("b0", "parquet")
    renames("b0", "c", src_dir_fd=folder, dst_dir_fd=folder)
    os.close(folder)
    assert [*library_formats._paths] == [str(tmp_path / "b0")]


def told(lines: list[str]) -> list[str]:
    return list(library_formats._told(iter(lines), hashlib))


def test_a_long_text_is_told_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each number of a long list of times stands in a line of its own, whatever the lengths of the others."""
    monkeypatch.setattr(library_formats, "LONGEST", 40)
    one = told([f"'log': b'{[0.12, 0.1234567, 12.5, 7.0]!r}\\n{{\"loss\": 0.5}}'"])
    other = told([f"'log': b'{[0.1234567, 0.12, 12.5, 7.0]!r}\\n{{\"loss\": 0.5}}'"])
    assert [a == b for a, b in zip(one, other, strict=True)] == [False, False, True, True, True]
    assert told(["x" * 41]) != told(["x" * 40 + "y"])
    assert told(["a, b" * 20]) != told(["a, b" * 19 + "a", ", b"])


def test_of_many_lines_those_that_come_last_are_told_by_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MOST_LINES", 5), ("BLOCK", 3), ("MOST_VALUES", 20)):
        monkeypatch.setattr(library_formats, name, value)
    lines = [f"{at}" for at in range(13)]
    assert told(lines)[:5] == lines[:5]
    assert len(told(lines)) == 5 + 2 + 1
    assert not any(map(str.isdigit, "".join(line.partition(": ")[2] for line in told(lines)[5:])))
    found = {tuple(told([*lines[:at], "other", *lines[at + 1 :]])) for at in range(13)}
    assert len({*found, tuple(told(lines)), tuple(told(lines[:-1])), tuple(told([*lines, ""]))}) == 16
    with pytest.raises(OverflowError):
        told([f"{at}" for at in range(23)])


def test_bytes_that_are_text_are_shown_as_text() -> None:
    assert library_formats._shown(b'{"seconds": 0.5}') == "b'{\"seconds\": 0.5}'"
    assert library_formats._shown(b"\x000.5") == "x'00302e35'"


def need(library: str) -> None:
    """Skip the test where the Python with torch lacks a library; in CI fail it."""
    need_torch()
    has_it = [torch_python(), "-c", f"import {library}"]
    if subprocess.run(has_it, check=False, capture_output=True).returncode:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{library} is not installed")


PARQUET = """
import sys, pyarrow, pyarrow.parquet
from datetime import datetime
more = ["a"] * 299_999 + [sys.argv[1]]
table = pyarrow.table({"id": list(range(300_000)), "score": [0.5] * 300_000, "more": more})
table = table.append_column("last", [[None, 1] * 150_000])
made = table.replace_schema_metadata({"created": datetime.now().isoformat(), "rows": sys.argv[2]})
pyarrow.parquet.write_table(made, "large.parquet")
"""


DUCKDB = """
import sys, time, duckdb
connection = duckdb.connect("large.duckdb")
rows = "FROM range(1_200_000)"
connection.execute(f"CREATE TABLE large AS SELECT range AS id, 0.5 AS score, NULL AS none {rows}")
connection.execute("CREATE TABLE small AS SELECT ? AS seconds, ? AS name", [time.perf_counter(), sys.argv[2]])
connection.execute("ALTER TABLE large ADD COLUMN more VARCHAR")
connection.execute("UPDATE large SET more = ? WHERE id = 1_199_999", [sys.argv[1]])
connection.close()
"""


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize(("library", "source"), [("pyarrow", PARQUET), ("duckdb", DUCKDB)])
def test_a_large_table_is_told_by_digests_of_its_rows(library: str, source: str, tmp_path: Path) -> None:
    need(library)
    program = tmp_path / "program.py"
    drawn = "__import__('secrets').token_hex(3)[0]"
    for argv, known in ((("'a'", "'many'"), "text"), ((drawn, "'many'"), "parts"), (("'a'", drawn), "parts")):
        program.write_text(source.replace("sys.argv[1]", argv[0]).replace("sys.argv[2]", argv[1]))
        found = compared(torch_python(), [str(program)], tmp_path, how=HowToRun(times=3, trace=False))
        assert verdict(found) == known, verdict_line(found)
        assert known == "text" or "line " in found.ends[0].what, found.ends


IN_A_PROCESS = """
import os, sys, time, pyarrow, pyarrow.parquet
from concurrent.futures import ProcessPoolExecutor
def written(name):
    made = pyarrow.table({"score": [float(sys.argv[1])]}).replace_schema_metadata({"took": repr(time.time())})
    pyarrow.parquet.write_table(made, f"{name}.tmp")
    os.rename(f"{name}.tmp", f"{name}.parquet")
with ProcessPoolExecutor(1) as pool:
    print(list(pool.map(written, "ab")))
"""


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize(("score", "known"), [("0.5", "text"), ("__import__('time').time() % 1", "parts")])
def test_a_file_of_another_process_that_is_renamed_is_read(score: str, known: str, tmp_path: Path) -> None:
    need("pyarrow")
    program = tmp_path / "program.py"
    program.write_text(IN_A_PROCESS.replace("sys.argv[1]", score))
    found = compared(torch_python(), [str(program)], tmp_path, how=HowToRun(times=3, trace=False))
    assert verdict(found) == known, verdict_line(found)


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("library", LIBRARIES)
def test_no_two_contents_have_the_same_lines(library: str, tmp_path: Path) -> None:
    need(library)
    done = subprocess.run(
        [torch_python(), PROGRAMS / "formats_apart.py", library],
        env={**os.environ, "PYTHONPATH": str(Path(library_formats.__file__).parents[1])},
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_time_beside_a_result_in_a_file_of_a_library(library: str, tmp_path: Path) -> None:
    need(library)
    argv = [str(PROGRAMS / "library_formats.py"), library]
    found = compared(torch_python(), [*argv, "0.25"], tmp_path)
    assert verdict(found) == "text", verdict_line(found)
    found = compared(torch_python(), [*argv, "drawn"], tmp_path, how=HowToRun(trace=False))
    assert verdict(found) == "parts", verdict_line(found)
    assert all(end.what.startswith("line ") for end in found.ends)
