"""The program that lists an image's files, as the Dockerfile runs it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("name", ["tab\there", "new\nline"])
def test_a_name_that_breaks_a_line_is_refused(tree: Path, name: str) -> None:
    (tree / name).touch()
    done = run(tree)
    assert done.returncode != 0
    assert b"ValueError" in done.stderr


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    done = run(tmp_path / "missing")
    assert done.returncode != 0
    assert b"FileNotFoundError" in done.stderr
