"""requirements.txt → what it asks for, line by line."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports.recognize import read_import
from support.fixtures import fixtures_of
from support.team_files import WINDOWS, Write, table

globals().update(fixtures_of("support.team_files"))


def test_a_requirements_file_in_all_its_forms(write: Write) -> None:
    write("more.txt", "filelock==1.0\n")
    write("limits.txt", "pandas<3\nnever-asked-for==1\n")
    file = write(
        "requirements-train.txt",
        "\ufeff# a comment\n--require-hashes\n-r more.txt\n-c limits.txt\n\n"
        "pandas>=2 # another\ntorch==2.4.1\n"
        "NumPy==1.26.4 \\\n    --hash=sha256:" + "A" * 64 + " \\\n    --hash=sha256:" + "b" * 64 + "\n"
        "colorama==1 ; sys_platform == 'win32'\nnvidia-cuda-runtime-cu12==12.1.105",
    )
    assert table(file) == {
        "name": "train",
        "python": "3.11",
        "cuda": "12.1",
        "torch": "2.4.1",
        "packages": [
            "filelock==1.0",
            "pandas>=2",
            "NumPy==1.26.4",
            "nvidia-cuda-runtime-cu12==12.1.105",
            "pandas<3",
        ],
        "constraints": ["never-asked-for==1"],
    }
    free = read_import(file, loosen=["never-*"])
    assert (free.constraints, free.loosened) == ((), ("never-asked-for==1",))
    assert read_import(file).hashes == {"numpy": frozenset({"a" * 64, "b" * 64})}


@pytest.mark.parametrize(
    ("lines", "bare"),
    [
        ("a==1 --hash=H\nb==1\nc>=2\n", "r.txt:2: b, c have no hash"),
        ("a==1 --hash=H\n-r more.txt\n", "more.txt:1: filelock has no hash"),
        ("a==1 --hash=H\nb @ git+https://git.example/b\n", "r.txt:2: b has no hash"),
        ("a==1 --hash=H\nb==1; python_version < '3.10'\n", "r.txt:2: b has no hash"),
        ("--require-hashes\na==1\n", "r.txt:2: a has no hash"),
        ("--require-hashes\na==1 --hash=H\n", ""),
        ("a==1\nb==1\n", ""),
        ("a==1 --hash=H\nb==1; sys_platform == 'win32'\n", ""),
        ("a==1 --hash=H\na==1; python_version > '3'\n", ""),
        ("a==1 --hash=H\nb @ https://files.example/b-1-py3-none-any.whl#sha256=D\n", ""),
        ("a==1 --hash=H\nfilelock==1.0\n-c limits.txt\n", ""),
    ],
)
def test_a_package_without_a_hash_among_some_with_one_is_named(write: Write, lines: str, bare: str) -> None:
    # pip: "In --require-hashes mode, all requirements must have their hashes pinned"; one hash turns it on.
    write("more.txt", "filelock==1.0\n")
    write("limits.txt", f"filelock==1.0 --hash=sha256:{'0' * 64}\n")
    file = write("r.txt", lines.replace("H", f"sha256:{'0' * 64}").replace("D", "0" * 64))
    ignored = read_import(file).ignored
    assert len(ignored) == bool(bare)
    assert bare in "".join(ignored)


@pytest.mark.parametrize(
    ("line", "place", "says"),
    [
        ("-e .", 2, "not the folder of a Python project"),
        ("-e ./none", 2, "no such folder"),
        ("./wheels/a-1-py3-none-any.whl", 2, "is a file of this machine"),
        ("a @ https://example.org/a", 2, "its last part is not the file name of a wheel"),
        ("a @ https://me:secret@example.org/a-1.tar.gz", 2, "it contains a user name or password"),
        ("a @ svn+https://example.org/a", 2, "expected an address that starts with"),
        ("a @ git+https://example.org/a@-x", 2, "is not a branch, tag or commit"),
        ("a @ git+https://example.org/a#subdirectory=../b", 2, "is not a path below the project"),
        ("https://example.org/a.whl", 2, "does not name a package"),
        ("--extra-index-url https://example.org/simple", 2, "the index is a setting"),
        ("-i https://example.org/simple", 2, "the index is a setting"),
        ("--frobnicate", 2, "the option --frobnicate is not supported"),
        ("a==1 --frobnicate=x", 2, "is not supported"),
        ("a==1 --hash=md5:" + "0" * 32, 2, "no sha256 among its hashes"),
        ("a b c", 2, "is not a requirement"),
        ("b==1 \\\n  --hash=sha256:00\n=x", 4, "is not a requirement"),
        ('--requirement="', 2, "No closing quotation"),
        ("-r https://example.org/r.txt", 2, "is not a local file"),
        ("--index-url http://[x", 2, "is not an address"),
    ],
)
def test_a_line_that_cannot_be_taken_over_is_named(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, place: int, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = write("requirements.txt", f"ok==1\n{line}\n")
    with pytest.raises(RequestError, match=re.escape(says)) as caught:
        read_import(file)
    assert caught.value.message.startswith(f"{file}:{place}: ")


def test_files_that_no_machine_has(write: Write, tmp_path: Path) -> None:
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    for name, says in (("a\0b", "has null characters"), ("loop.txt", "cannot be read: Too many levels")):
        with pytest.raises(RequestError, match=says):
            read_import(write("a.txt", f"-r {name}\n"))


def test_files_that_name_others_twice_each_come_to_an_end(write: Write) -> None:
    write("30.txt", "")
    for number in range(30):
        write(f"{number}.txt", f"-r {number + 1}.txt\n" * 2)
    with pytest.raises(RequestError, match="more than 200 files are included"):
        read_import(write("a.txt", "-r 0.txt\n"))


def test_files_that_name_each_other_end(write: Write) -> None:
    write("b.txt", "-r a.txt\n")
    with pytest.raises(RequestError, match="includes itself"):
        read_import(write("a.txt", "-r b.txt\n"))


@pytest.mark.parametrize(
    "text",
    [
        "-rmore.in\r\ntorch==2.4.1+cpu\r\n",
        "--requirement=more.in --pre\ntorch==2.4.1+cpu",
        "--no-index -f ./wheels\n-r more.in",
    ],
)
def test_options_in_their_short_forms(
    write: Write, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UV_FIND_LINKS", "./wheels")
    write("more.in", "numpy<2\n")
    assert read_import(write("requirements.txt", text)).requirements[0].name == "numpy"


def test_what_only_a_build_heeds_is_left_out(write: Write) -> None:
    file = write(
        "requirements.txt",
        "--no-build-isolation\n--no-binary :all:\n--pre\n"
        'numpy==1.26.4 --config-settings "x=y z" --global-option=a\ntorch==2.4.1+cu121\n',
    )
    assert table(file)["packages"] == ["numpy==1.26.4"]


@pytest.mark.parametrize("marker", ["python_version ~= 'new'", "os_name ~= '1.0'"])
def test_a_marker_that_is_neither_true_nor_false(write: Write, marker: str) -> None:
    says = "a: the marker .* is neither true nor false"
    with pytest.raises(RequestError, match=says):
        table(write("requirements.txt", f"a==1 ; {marker}\n"), cuda="cpu")
    lock = WINDOWS.replace(
        "marker = \"sys_platform == 'win32'\"\ndirectory", f'marker = "{marker}"\ndirectory'
    )
    with pytest.raises(RequestError, match=r"pylock\.toml: ours: the marker"):
        read_import(write("pylock.toml", lock))


@pytest.mark.parametrize("line", ["_libgcc_mutex=0.1=main", "numpy=1.21.2=py38h20f2e39_0", "@EXPLICIT"])
def test_a_list_of_conda_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "requirements.txt").write_text(f"# platform: linux-64\n{line}\n")
    with pytest.raises(
        RequestError, match=r"requirements\.txt:2: .* is a line of `conda list`, not of pip's"
    ):
        read_import(tmp_path / "requirements.txt")


PIP_COMPILE = "#\n# This file is autogenerated by pip-compile with Python 3.{}\n# by the command:\n#\n"
UV_COMPILE = "# This file was autogenerated by uv via the following command:\n#    uv pip compile {}\n"


@pytest.mark.parametrize(
    ("head", "python"),
    [
        (PIP_COMPILE.format(8), "3.8"),
        ("\n" + PIP_COMPILE.format(10).lower(), "3.10"),
        (UV_COMPILE.format("a.in -o a.txt --python-version 3.8 --quiet"), "3.8"),
        (UV_COMPILE.format("a.in -p 3.12.4"), "3.12"),
        (UV_COMPILE.format("--python-version=3.9 a.in"), "3.9"),
        (UV_COMPILE.format("--universal --python-version 3.8 a.in"), None),
        (UV_COMPILE.format("a.in -o a.txt"), None),
        ("six\n" + PIP_COMPILE.format(8), None),
    ],
)
def test_a_compiled_file_is_for_the_python_that_it_was_compiled_for(
    tmp_path: Path, head: str, python: str | None
) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(f"{head}six==1.16.0\n")
    (tmp_path / ".python-version").write_text("3.11\n")
    found = read_import(file)
    assert found.python == (python or "3.11")
    assert found.applied == (() if python is None else (_compiled(file, python),))


def _compiled(file: Path, python: str) -> str:
    return f"{file}: was compiled for Python {python}, so the image has it"


def test_another_python_than_a_file_was_compiled_for_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    for minor, given in ((8, "3.11"), (7, None)):
        file.write_text(f"{PIP_COMPILE.format(minor)}six==1.16.0\n")
        found = read_import(file, python=given)
        assert (found.python, found.applied) == (None, ())
        says = f"{file}: was compiled for Python 3.{minor}: what only another one needs may be missing in it"
        assert found.ignored == (says,)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("--python-platform windows a.in", "windows"),
        ("a.in --python-platform=aarch64-apple-darwin -o a.txt", "aarch64-apple-darwin"),
        ("--python-platform x86_64-unknown-linux-musl a.in", "x86_64-unknown-linux-musl"),
        ("--python-platform aarch64-linux-android a.in", "aarch64-linux-android"),
        ("--python-platform riscv64-unknown-linux a.in", "riscv64-unknown-linux"),
        ("--python-platform linux a.in", None if platform.machine() == "x86_64" else "linux"),
        ("--python-platform s390x-unknown-linux-gnu a.in", "s390x-unknown-linux-gnu"),
        (f"--python-platform {platform.machine()}-unknown-linux-gnu a.in", None),
        (f"--python-platform {platform.machine()}-manylinux_2_28 a.in", None),
        ("--universal --python-platform windows a.in", None),
    ],
)
def test_another_platform_than_a_file_was_compiled_for_is_a_warning(
    tmp_path: Path, options: str, named: str | None
) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(f"{UV_COMPILE.format(options)}six==1.16.0\n")
    says = f"{file}: was compiled for {named}: what only another platform needs may be missing in it"
    assert read_import(file).ignored == (() if named is None else (says,))
