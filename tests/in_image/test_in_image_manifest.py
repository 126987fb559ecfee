"""The program that lists an image's files, as the Dockerfile runs it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprobuild.in_image import manifest


def run(*folders: Path, **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, manifest.__file__, *map(str, folders)],
        env={"PATH": os.environ["PATH"], **env},
        capture_output=True,
        check=False,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "sub").mkdir(parents=True)
    (root / "sub/file").write_bytes(b"abc")
    (root / "sub/file").chmod(0o4750)
    (root / "sub.txt").write_bytes(b"")
    (root / "sub.txt").chmod(0o600)
    (root / "link").symlink_to("nowhere at all")
    (root / "loop").symlink_to(root)
    for folder in (root, root / "sub"):
        folder.chmod(0o755)
    return root


def test_a_line_a_path_sorted_by_path(tree: Path) -> None:
    abc, empty = hashlib.sha256(b"abc").hexdigest(), hashlib.sha256(b"").hexdigest()
    assert run(tree).stdout.decode().splitlines() == [
        f"dir\t755\t-\t{tree}",
        f"link\t777\tnowhere at all\t{tree}/link",
        f"link\t777\t{tree}\t{tree}/loop",
        f"dir\t755\t-\t{tree}/sub",
        f"file\t600\t{empty}\t{tree}/sub.txt",
        f"file\t4750\t{abc}\t{tree}/sub/file",
    ]


def test_the_order_of_the_arguments_does_not_matter(tree: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert run(tree, other).stdout == run(other, tree).stdout


@pytest.mark.parametrize("env", [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"LC_ALL": "C.UTF-8", "TZ": "UTC"}])
def test_any_name_is_written_whatever_the_locale(tree: Path, env: dict[str, str]) -> None:
    (tree / "néw 文").touch()
    Path(os.fsdecode(os.fsencode(tree) + b"/\xff\xfe")).touch()
    done = run(tree, **env)
    assert done.returncode == 0, done.stderr
    assert f"{tree}/néw 文\n".encode() in done.stdout
    assert os.fsencode(tree) + b"/\xff\xfe\n" in done.stdout


BREAKING = [
    "tab\there",
    "new\nline",
    "a\r",
    "a\x0bb",
    "a\x0cb",
    "a\x1cb",
    "a\x85b",
    "a\u2028b",
    "\x1b[2J",
    "\\x",
]
FORGED = "x\nfile\t755\t" + "0" * 64 + "\t"


@pytest.mark.parametrize("name", [*BREAKING, FORGED])
def test_a_name_that_would_break_a_line_is_escaped(tree: Path, name: str) -> None:
    (tree / name).touch()
    (tree / "to").symlink_to(name)
    done = run(tree)
    assert done.returncode == 0
    found = {path: content for _, _, content, path in manifest.read(done.stdout)}
    assert found[f"{tree}/{name}"] == hashlib.sha256(b"").hexdigest()
    assert found[f"{tree}/to"] == name
    assert len(found) == len(done.stdout.splitlines()) == len(done.stdout.decode().splitlines()) == 8


@given(st.tuples(*[st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))] * 4))
def test_what_is_written_is_read_back(fields: tuple[str, str, str, str]) -> None:
    line = manifest.written(*fields)
    assert len(f"{line}.".splitlines()) == 1
    assert list(manifest.read(f"{line}\n".encode())) == [fields]


@pytest.mark.parametrize(
    "line", ["a\tb\tc", "a\tb\tc\td\te", "\\a\tb\tc\td", "a\x0b\tb\tc\td", "\\\\u0041\tb\tc\td", ""]
)
def test_a_line_that_nobody_wrote_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"line of a manifest|values to unpack"):
        list(manifest.read(f"{line}\n".encode()))


def test_a_plain_line_reads_as_before() -> None:
    """Names that break nothing are written as they are, so most manifests have no backslash at all."""
    assert manifest.written("link", "777", "a b", "/usr/dev\\x2dsda") == "link\t777\ta b\t/usr/dev\\x2dsda"


OWN = "/opt/venv/lib/python3.11/site-packages"
RESERVED = [
    *(
        "/opt/reprobuild/json.py",
        "/usr/lib/python3.11/reprobuild_hook.py",
        f"{OWN}/reprobuild_hook/__init__.py",
    ),
    *(f"{OWN}/__pycache__/reprobuild_hook.cpython-311.pyc", "/usr/lib/python3/dist-packages/reprobuild.pth"),
    *(f"{OWN}/sitecustomize.py", f"{OWN}/usercustomize/__init__.py", f"{OWN}/reprobuild_hook.so"),
    f"{OWN}/reprobuild_hook.py",
]
FREE = [
    *("/usr/lib/python3.11/sitecustomize.py", f"{OWN}/reprobuild_hooks.py", f"{OWN}/a/sitecustomize.py"),
    *("/opt/reprobuilder", f"{OWN}/my_reprobuild_hook.py"),
]


def test_names_that_are_reprobuild_s_own() -> None:
    assert [path for path in RESERVED + FREE if manifest.reserved(path)] == RESERVED


def test_a_name_of_reprobuild_s_own_is_refused(tree: Path) -> None:
    (tree / "sub/reprobuild_hook.py").touch()
    done = run(tree)
    assert done.returncode != 0
    assert b"is a name of reprobuild's own" in done.stderr


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    done = run(tmp_path / "missing")
    assert done.returncode != 0
    assert b"FileNotFoundError" in done.stderr
