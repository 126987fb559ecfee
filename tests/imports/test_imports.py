"""A team's files → a request."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from conftest import GOLDEN
from reprobuild.errors import RequestError
from reprobuild.imports import common
from reprobuild.imports.poetry import specifier
from reprobuild.imports.reader import read_import, request_table

Write = Callable[[str, str], Path]
PYTORCH = "pytorch.org"


@pytest.fixture(autouse=True)
def _amd64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "architecture", lambda: "amd64")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def writer(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return writer


def table(file: Path, **given: Any) -> dict[str, Any]:
    """The keys of the request that a file makes."""
    return request_table(read_import(file), given)


# --- requirements.txt ---


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
        ("-e .", 2, "is no folder of a Python project"),
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
    for name, says in (("a\0b", "not the name of a file"), ("loop.txt", "cannot be read: Too many levels")):
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


def test_addresses_as_pip_takes_them(write: Write, tmp_path: Path) -> None:
    (tmp_path / "libs/x").mkdir(parents=True)
    (tmp_path / "libs/x/setup.py").write_text("from setuptools import setup\nsetup(name='Our.X')")
    file = write(
        "requirements.txt",
        "-e git+https://h.example/team/taming.git@master#egg=taming-transformers\n"
        "git+https://h.example/team/b@v1#subdirectory=py\n"
        "clip @ git+https://h.example/c.git\n"
        "-e ./libs/x[more]\n"
        "https://h.example/w/gradio-4.37.2%2Bcustom.20-py3-none-any.whl ; python_version > '3'\n"
        "https://h.example/w/later-1-py3-none-any.whl; python_version > '4'\n"
        "https://h.example/w/old_name-1.0.tar.gz#sha256=" + "a" * 64 + "\ntorch==2.4.1+cpu\n",
    )
    assert [f"{r.name} {r.url}" for r in read_import(file).requirements if r.url] == [
        "taming-transformers git+https://h.example/team/taming.git@master",
        "b git+https://h.example/team/b@v1#subdirectory=py",
        "clip git+https://h.example/c.git",
        f"Our.X file://{tmp_path}/libs/x",
        "gradio https://h.example/w/gradio-4.37.2%2Bcustom.20-py3-none-any.whl",
        "later https://h.example/w/later-1-py3-none-any.whl",
        "old-name https://h.example/w/old_name-1.0.tar.gz#sha256=" + "a" * 64,
    ]


POETRY = """
[tool.poetry]
name = "x"
[tool.poetry.dependencies]
python = "^3.10"
[tool.poetry.dev-dependencies]
pytest = "^8"
[tool.poetry.group.train.dependencies]
torch = "2.4.1"
"""
OF_TWO = (
    "[project]\nname = 'x'\n[project.optional-dependencies]\nall = ['a']\n[dependency-groups]\ntest = ['b']\n"
    "[tool.poetry.group.train.dependencies]\ntorch = '^2.4'\n"
)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            "[tool.black]\n",
            "write what the project needs into project.dependencies, or into a requirements.txt",
        ),
        (POETRY, "name a group with --group: dev, train"),
        (OF_TWO, "name a group with --group: test, train; or name an extra with --extra: all"),
    ],
)
def test_a_project_without_dependencies_says_where_there_are_some(write: Write, text: str, hint: str) -> None:
    file = write("pyproject.toml", text)
    with pytest.raises(RequestError, match="no dependencies") as caught:
        read_import(file)
    assert caught.value.hint.startswith(hint)
    write("requirements.txt", "a\n")
    with pytest.raises(RequestError) as caught:
        read_import(file)
    assert caught.value.hint.startswith(f"import a requirements file: --from {file.parent}/requirements.txt")


@pytest.mark.parametrize(
    ("text", "group", "found"),
    [(POETRY, "train", "torch==2.4.1"), (POETRY, "dev", "pytest<9,>=8"), (OF_TWO, "train", "torch<3,>=2.4")],
)
def test_poetry_s_groups(write: Write, text: str, group: str, found: str) -> None:
    imported = read_import(write("pyproject.toml", text), groups=[group])
    assert [str(each) for each in imported.requirements] == [found]


def test_a_folder_that_is_none_beside_the_file_is_one_of_the_working_directory(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pip takes it: `uv export -o requirements/all.txt` writes `-e .` for the project above."""
    (tmp_path / "requirements").mkdir()
    write("pyproject.toml", "[project]\nname = 'ours'\n")
    file = write("requirements/all.txt", "-e .\n")
    monkeypatch.chdir(tmp_path)
    assert [str(each) for each in read_import(file).requirements] == [f"ours @ {tmp_path.resolve().as_uri()}"]
    write("requirements/pyproject.toml", "[project]\nname = 'inner'\n")
    assert [each.name for each in read_import(file).requirements] == ["inner"]


def test_a_folder_is_named_from_the_request(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "setup.cfg").write_text("[metadata]\nname = ours\n")
    file = write("requirements.txt", "-e .\ntorch==2.4.1+cpu\n")
    assert table(file)["packages"] == ["ours @ .."]


@pytest.mark.parametrize(
    "line",
    [
        "torch @ https://download.{host}/whl/cu118/torch-2.0.1%2Bcu118-cp311-cp311-linux_x86_64.whl",
        "https://download.{host}/whl/cu118/torch-2.0.1%2Bcu118-cp311-cp311-linux_x86_64.whl",
    ],
)
def test_a_wheel_of_pytorch_s_index_is_its_version(write: Write, line: str) -> None:
    found = table(write("requirements.txt", line.format(host=PYTORCH)))
    assert (found["torch"], found["cuda"], found["index"]) == ("2.0.1+cu118", "11.8", "pytorch")


def test_torch_from_elsewhere_is_refused(write: Write) -> None:
    file = write("requirements.txt", "torch @ https://h.example/torch-2.0.1-cp311-cp311-linux_x86_64.whl\n")
    with pytest.raises(RequestError, match="torch comes from an address"):
        table(file, cuda="cpu")


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


# --- Which CUDA, which torch ---


@pytest.mark.parametrize(
    ("lines", "given", "cuda", "torch"),
    [
        ("torch==2.4.1+cu118", {}, "11.8", "2.4.1+cu118"),
        ("torch==2.4.1+cpu", {}, "cpu", "2.4.1+cpu"),
        ("torch==2.4.1", {"cuda": "12.1"}, "12.1", "2.4.1"),
        ("torch>=2.1,<2.3", {"cuda": "12.1"}, "12.1", "<2.3,>=2.1"),
        ("torch", {"cuda": "cpu"}, "cpu", None),
        ("pandas", {"cuda": "cpu", "torch": "2.2"}, "cpu", "2.2"),
        ("torch==2.9\ncuda-toolkit[cudart]==13.0.2", {}, "13.0", "2.9"),
        ("torch==2.4.1+cu118", {"cuda": "12.1", "torch": "2.5"}, "12.1", "2.5"),
    ],
)
def test_cuda_and_torch(
    write: Write, lines: str, given: dict[str, str], cuda: str, torch: str | None
) -> None:
    found = table(write("requirements.txt", lines), **given)
    assert (found["cuda"], found.get("torch")) == (cuda, torch)


def test_a_build_of_torch_for_another_cuda(write: Write) -> None:
    file = write(
        "requirements.txt", "torch==2.0.1+cu118\ntorchvision==0.15.2+cu118\nnvidia-x==1\nnvidia-y==2\n"
    )
    with pytest.raises(RequestError, match=r"pins torch 2\.0\.1\+cu118, a build for CUDA 11\.8") as caught:
        table(file, cuda="12.8")
    assert caught.value.hint == "give --cuda 11.8, or --loosen torch to get the newest for CUDA 12.8"
    loose = request_table(read_import(file, loosen=["Torch", "nvidia-*"]), {"cuda": "12.8"})
    assert (loose.get("torch"), loose["packages"]) == (
        None,
        ["torchvision==0.15.2+cu118", "nvidia-x", "nvidia-y"],
    )
    assert loose["loosened"] == ["nvidia-x==1", "nvidia-y==2", "torch==2.0.1+cu118"]
    with pytest.raises(RequestError, match="--loosen: pins no version of pandas"):
        read_import(file, loosen=["pandas"])


def test_no_word_of_cuda_is_an_error(write: Write) -> None:
    with pytest.raises(RequestError, match="does not say which CUDA") as caught:
        table(write("requirements.txt", "torch==2.4.1"))
    assert "--cuda" in caught.value.hint


# --- pylock.toml ---


def test_our_own_lock_is_read_like_any_other() -> None:
    imported = read_import(GOLDEN / "pylock.torch-cu121.toml")
    found = request_table(imported, {})
    assert (found["name"], found["python"], found["cuda"], found["torch"]) == (
        "torch-cu121",
        "3.11",
        "12.1",
        "2.4.1",
    )
    assert "numpy==1.26.4" in found["packages"]
    assert len(imported.hashes["numpy"]) == 1


def test_a_source_archive_is_a_pin_with_its_hash(write: Write) -> None:
    text = 'lock-version = "1.0"\ncreated-by = "x"\n'
    sdist = (
        f'{{name = "first-1.0.tar.gz", url = "https://example.org/x", hashes = {{sha256 = "{"0" * 64}"}}}}'
    )
    text += f'[[packages]]\nname = "first"\nversion = "1.0"\nsdist = {sdist}\n'
    imported = read_import(write("pylock.toml", text))
    assert [str(each) for each in imported.requirements] == ["first==1.0"]
    assert imported.hashes == {"first": frozenset({"0" * 64})}


def test_repositories_archives_and_folders_of_a_lock_are_addresses(write: Write, tmp_path: Path) -> None:
    commit, digest = "1" * 40, "0" * 64
    text = f"""
lock-version = "1.0"
created-by = "x"
[[packages]]
name = "repo"
vcs = {{type = "git", url = "https://git.example/repo.git", commit-id = "{commit}", subdirectory = "py"}}
[[packages]]
name = "archive"
archive = {{url = "https://x.example/a-1.tar.gz", subdirectory = "py", hashes = {{sha256 = "{digest}"}}}}
[[packages]]
name = "own"
directory = {{path = "libs/own", editable = true}}
[[packages]]
name = "elsewhere"
marker = "sys_platform == 'win32'"
directory = {{path = "libs/elsewhere"}}
"""
    (tmp_path / "libs/own").mkdir(parents=True)
    (tmp_path / "libs/own/pyproject.toml").write_text('[project]\nname = "own"\n')
    imported = read_import(write("pylock.toml", text))
    assert [str(each) for each in imported.requirements] == [
        f"repo @ git+https://git.example/repo.git@{commit}#subdirectory=py",
        f"archive @ https://x.example/a-1.tar.gz#sha256={digest}&subdirectory=py",
        f"own @ file://{tmp_path}/libs/own",
    ]


def test_a_lock_s_hashes_are_those_of_what_it_installs_here(write: Write) -> None:
    """A package that is taken out by a marker may come by way of another, in another version."""
    text = 'lock-version = "1.0"\ncreated-by = "x"\n' + "".join(
        f'[[packages]]\nname = "{name}"\nversion = "1"\nmarker = "{marker}"\n[[packages.wheels]]\n'
        f'url = "https://x.example/{name}-1-py3-none-any.whl"\nhashes = {{sha256 = "{"0" * 64}"}}\n'
        for name, marker in (
            ("here", "sys_platform == 'linux'"),
            ("new", "python_version >= '3.13'"),
            ("gone", "sys_platform == 'never'"),
        )
    )
    assert list(read_import(write("pylock.toml", text)).hashes) == ["here", "new"]


def test_what_a_lock_names_nothing_of_is_named(write: Write) -> None:
    head = 'lock-version = "1.0"\ncreated-by = "x"\n'
    text = head + "".join(f'[[packages]]\nname = "{name}"\nversion = "1.0"\n' for name in ("first", "second"))
    with pytest.raises(RequestError, match=r"source archive, repository or folder of first, second$"):
        read_import(write("pylock.toml", text))
    hg = f'vcs = {{type = "hg", url = "https://x.example/a", commit-id = "{"1" * 40}"}}'
    with pytest.raises(RequestError, match=r"pylock\.toml: packages \(a\): comes from hg, and only git"):
        read_import(write("pylock.toml", f'{head}[[packages]]\nname = "a"\n{hg}\n'))


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("pylock.toml", "a = [", "not valid TOML"),
        ("pylock.toml", 'lock-version = "1.0"', "not a PEP 751 lock"),
        ("pyproject.toml", "project = 1", "expected a table"),
        ("environment.lock", "", "not a file that can be imported"),
        ("pyproject.toml", '[project]\nname = "a"\ndynamic = ["dependencies"]', "not in the file"),
        ("pyproject.toml", '[project]\nname = "a"', "no dependencies"),
        ("pyproject.toml", '[project]\nname = "a"\ndependencies = [1]', "a list of requirements"),
        ("uv.lock", "version = 1", "is not in the same folder"),
        ("pyproject.toml", '[project]\nname = "a"\ndynamic = 3', "project.dynamic: expected a list"),
        ("pyproject.toml", "[tool.poetry.dependencies]\npython = 'x'\na = '1'", "is not a range of versions"),
    ],
)
def test_bad_files(write: Write, name: str, text: str, says: str) -> None:
    with pytest.raises(RequestError, match=re.escape(says)) as caught:
        read_import(write(name, text))
    assert name in caught.value.message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no such file"):
        read_import(tmp_path / "requirements.txt")


# --- pyproject.toml and uv.lock ---

PROJECT = """\
[project]
name = "Our.Project"
version = "1"
requires-python = "==3.12.*"
dependencies = ["filelock==1.0"]
[project.optional-dependencies]
plot = ["numpy<2"]
[dependency-groups]
train = ["torch==2.4.1+cu121", {include-group = "base"}]
base = ["pip"]
"""


@pytest.mark.parametrize(
    ("times", "groups", "reason"),
    [(2, 40, "more than 100,000 lines"), (1, 200, "includes groups more than 50 deep")],
)
def test_groups_that_include_one_another_without_end(
    write: Write, times: int, groups: int, reason: str
) -> None:
    inner = '{include-group = "g%d"}, ' * times
    lines = [f"g{at} = [{inner % ((at + 1,) * times)} 'pip']" for at in range(groups)]
    text = '[project]\nname = "x"\n[dependency-groups]\n' + "\n".join(lines) + f"\ng{groups} = ['pip']\n"
    with pytest.raises(RequestError, match=f"dependency-groups: g0: {reason}"):
        read_import(write("pyproject.toml", text), extras=[], groups=["g0"])


def test_a_project_with_an_extra_and_a_group(write: Write) -> None:
    file = write("pyproject.toml", PROJECT)
    imported = read_import(file, extras=["plot"], groups=["train"])
    assert request_table(imported, {}) == {
        "name": "our-project", "python": "3.12", "cuda": "12.1", "torch": "2.4.1+cu121",
        "packages": ["filelock==1.0", "numpy<2", "pip"],
    }  # fmt: skip


@pytest.mark.parametrize("which", [{"extras": ["none"]}, {"groups": ["none"]}])
def test_an_unknown_extra_or_group(write: Write, which: dict[str, list[str]]) -> None:
    with pytest.raises(RequestError, match="none") as caught:
        read_import(
            write("pyproject.toml", PROJECT), extras=which.get("extras", ()), groups=which.get("groups", ())
        )
    assert "plot" in caught.value.hint or "train" in caught.value.hint


def test_extras_of_a_file_that_has_none(write: Write) -> None:
    with pytest.raises(RequestError, match="has no extras"):
        read_import(write("requirements.txt", "a"), extras=["x"])


WINDOWS = """
lock-version = "1.0"
created-by = "uv"
[[packages]]
name = "pywin32"
version = "306"
marker = "sys_platform == 'win32'"
sdist = {name = "pywin32-306.tar.gz", url = "https://index.example/pywin32-306.tar.gz"}
[[packages]]
name = "ours"
marker = "sys_platform == 'win32'"
directory = {path = "."}
[[packages]]
name = "a"
version = "1.0"
wheels = [{name = "a-1.0-py3-none-any.whl", url = "https://index.example/a-1.0-py3-none-any.whl"}]
"""


def test_a_lock_s_packages_for_another_system_and_wheels_without_a_hash(write: Write) -> None:
    imported = read_import(write("pylock.toml", WINDOWS))
    assert table(write("pylock.toml", WINDOWS), cuda="cpu")["packages"] == ["a==1.0"]
    assert imported.hashes == {}


def test_an_error_in_a_lock_names_the_package(write: Write) -> None:
    with pytest.raises(RequestError, match=r"packages\[2\] \(a\)"):
        read_import(write("pylock.toml", WINDOWS.replace("wheels = [{", "wheels = 3 # [{")))


# --- Indexes in a file, and options of builds ---


@pytest.mark.parametrize(
    ("lines", "cuda", "torch"),
    [
        ("--extra-index-url https://download.{host}/whl/cu118\ntorch==2.4.1", "11.8", "2.4.1"),
        ("-f https://download.{host}/whl/torch_stable.html\ntorch==2.0.1+cu117", "11.7", "2.0.1+cu117"),
        ("--index-url=https://download.{host}/whl/cpu\r\ntorch==2.4.1", "cpu", "2.4.1"),
    ],
)
def test_pytorch_s_index_becomes_the_request_s(write: Write, lines: str, cuda: str, torch: str) -> None:
    found = table(write("requirements.txt", lines.format(host=PYTORCH)))
    assert (found["index"], found["cuda"], found["torch"]) == ("pytorch", cuda, torch)


def test_an_index_that_is_set_up_may_stand_in_the_file(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://user:secret@index.example/simple")
    file = write("requirements.txt", "-i https://index.example/simple/\ntorch==2.4.1+cu121\n")
    assert "index" not in table(file)


def test_another_index_is_the_user_s_to_set_up(write: Write) -> None:
    file = write("requirements.txt", "--extra-index-url https://u:secret@index.example/simple\ntorch\n")
    with pytest.raises(RequestError) as caught:
        read_import(file)
    assert "export UV_INDEX=https://index.example/simple)" in caught.value.hint
    assert "secret" not in caught.value.message + caught.value.hint


def test_an_index_that_the_user_allows(write: Write) -> None:
    file = write(
        "requirements.txt",
        "-i https://index.example/simple\n-f https://files.index.example/whl.html\ntorch==2.4.1+cpu\n",
    )
    with pytest.raises(RequestError, match="--index-url: the index is a setting") as caught:
        read_import(file)
    assert "--index-from-file index.example" in caught.value.hint
    with pytest.raises(RequestError, match="--find-links"):
        read_import(file, hosts=["index.example"])
    assert read_import(file, hosts=["index.example", "files.index.example"]).settings == {
        "UV_DEFAULT_INDEX": ("https://index.example/simple",),
        "UV_FIND_LINKS": ("https://files.index.example/whl.html",),
    }


def test_a_password_in_a_file_s_index_is_not_taken(write: Write) -> None:
    file = write("requirements.txt", "-i https://u:secret@index.example/simple\n")
    with pytest.raises(RequestError) as caught:
        read_import(file, hosts=["index.example"])
    assert "secret" not in caught.value.message + caught.value.hint


def test_the_index_that_counts_without_a_setting_may_be_named(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://mirror.example/simple")
    file = write("requirements.txt", f"-i {PYPI_SIMPLE_ENDPOINT}\ntorch==2.4.1+cpu\n")
    assert read_import(file).settings == {}


def test_what_only_a_build_heeds_is_left_out(write: Write) -> None:
    file = write(
        "requirements.txt",
        "--no-build-isolation\n--no-binary :all:\n--pre\n"
        'numpy==1.26.4 --config-settings "x=y z" --global-option=a\ntorch==2.4.1+cu121\n',
    )
    assert table(file)["packages"] == ["numpy==1.26.4"]


# --- requires-python ---


@pytest.mark.parametrize(
    ("requires", "python"),
    [
        (">=3.9", "3.11"),
        (">=3.12", "3.13"),
        (">=3.12,<3.15", "3.13"),
        ("==3.11.4", "3.11"),
        ("~=3.10", "3.11"),
        (">=3.8,<3.11", "3.10"),
        ("==3.12.*", "3.12"),
        ("<3.9", "3.8"),
    ],
)
def test_the_python_that_a_project_allows(write: Write, requires: str, python: str) -> None:
    text = f"[project]\nname = 'a'\nrequires-python = '{requires}'\ndependencies = ['torch==2.4.1+cu121']\n"
    assert table(write("pyproject.toml", text))["python"] == python


@pytest.mark.parametrize(
    ("requires", "given", "message"),
    [
        (">=4", {}, "requires-python is >=4, which none of 3.11, 3.13, 3.12, 3.10, 3.14, 3.9, 3.8 fits"),
        (">=3.12", {"python": "3.11"}, "requires-python is >=3.12, which Python 3.11 does not fit"),
    ],
)
def test_a_python_that_a_project_does_not_allow(
    write: Write, requires: str, given: dict[str, str], message: str
) -> None:
    text = f"[project]\nname = 'a'\nrequires-python = '{requires}'\ndependencies = ['torch==2.4.1+cu121']\n"
    with pytest.raises(RequestError, match=re.escape(message)) as caught:
        table(write("pyproject.toml", text), **given)
    assert caught.value.hint == ("give --python 3.13, which fits" if given else "correct the file")


@pytest.mark.parametrize(
    ("said", "python"),
    [("3.12.4\n", "3.12"), ("# ours\ncpython-3.10\n", "3.10"), ("3.9", "3.11"), ("pypy", "3.11")],
)
def test_a_python_version_beside_the_project_counts_where_it_fits(
    write: Write, said: str, python: str
) -> None:
    write(".python-version", said)
    text = "[project]\nname = 'a'\nrequires-python = '>=3.10'\ndependencies = ['torch==2.4.1+cu121']\n"
    assert table(write("pyproject.toml", text))["python"] == python


# --- Poetry, and dependencies in other files ---


@pytest.mark.parametrize(
    ("poetry", "standard"),
    [
        ("^1.2.3", ">=1.2.3,<2"), ("^0.2.3", ">=0.2.3,<0.3"), ("^0.0.3", ">=0.0.3,<0.0.4"), ("^0", ">=0,<1"),
        ("~1.2.3", ">=1.2.3,<1.3"), ("~1", ">=1,<2"), ("~=1.2", "~=1.2"), ("1.2", "==1.2"), ("1.*", "==1.*"),
        ("*", ""), (">=1, <2", ">=1,<2"), (">=1 <2", ">=1,<2"), ("!=1.5", "!=1.5"),
    ],
)  # fmt: skip
def test_a_constraint_of_poetry_s(poetry: str, standard: str) -> None:
    assert specifier(poetry, "") == standard


REPO = "repo @ git+https://h.example/repo.git@v1"
POETRY = """
[tool.poetry]
name = "ours"
[tool.poetry.dependencies]
python = ">=3.12,<4"
torch = "2.4.1+cu121"
pandas = {version = "^2.1", extras = ["excel"], markers = "sys_platform == 'linux'"}
mac = {version = "*", markers = "sys_platform == 'darwin'"}
plots = {version = "~1.0", optional = true}
repo = {git = "https://h.example/repo.git", tag = "v1"}
two = [{version = "1.0", python = "<3.9"}, {version = "2.0", python = ">=3.9"}]
[tool.poetry.extras]
draw = ["plots"]
[tool.poetry.group.dev.dependencies]
pytest = "*"
"""


def test_a_project_of_poetry_s(write: Write) -> None:
    file = write("pyproject.toml", POETRY)
    found = table(file)
    assert (found["name"], found["python"], found["cuda"]) == ("ours", "3.13", "12.1")
    assert found["packages"] == ["pandas[excel]<3,>=2.1", REPO, "two==2.0"]
    more = request_table(read_import(file, extras=["draw"], groups=["dev"]), {})["packages"]
    assert more == ["pandas[excel]<3,>=2.1", "plots<1.1,>=1.0", REPO, "two==2.0", "pytest"]


@pytest.mark.parametrize(
    ("line", "says"),
    [("a = {git = 'https://me:x@h.example/a'}", "user name or password"), ("a = '^1 || ^2'", "alternatives"),
     ("a = '^x'", "is not a version")],
)  # fmt: skip
def test_what_poetry_has_and_cannot_be_locked(write: Write, line: str, says: str) -> None:
    file = write("pyproject.toml", f"[tool.poetry.dependencies]\n{line}\n")
    with pytest.raises(RequestError, match=rf"tool\.poetry\.dependencies\.a: .*{says}"):
        read_import(file)


@pytest.mark.parametrize(
    "tool",
    [
        "[tool.setuptools.dynamic]\ndependencies = {file = ['needs.txt']}\n",
        "[tool.setuptools.dynamic]\ndependencies = {file = 'needs.txt'}\n",
        "[tool.hatch.metadata.hooks.requirements_txt]\nfiles = ['needs.txt']\n",
    ],
)
def test_dependencies_that_a_project_reads_from_a_file(write: Write, tool: str) -> None:
    write("needs.txt", "torch==2.4.1+cu121\nnumpy<2\n")
    file = write("pyproject.toml", f"[project]\nname = 'a'\ndynamic = ['dependencies']\n{tool}")
    assert table(file)["packages"] == ["numpy<2"]


@pytest.mark.parametrize(
    "text",
    [
        "[tool.poetry]\nextras = []\nname = 'a'\n[tool.poetry.dependencies]\na = {extras = 3}\n",
        "[tool.poetry]\ngroup = {x = 3}\n[tool.poetry.dependencies]\n",
        "[project]\nname = 'a'\ndynamic = ['dependencies']\n[tool]\nsetuptools = 3\n",
        "[project]\nname = 'a'\ndynamic = ['dependencies']\n[tool.hatch]\nmetadata = []\n",
    ],
)
def test_tables_that_are_none(write: Write, text: str) -> None:
    with pytest.raises(RequestError):
        read_import(write("pyproject.toml", text), groups=["x"])


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


def test_a_marker_on_groups_of_a_lock(write: Write) -> None:
    head, _, last = WINDOWS.rpartition("[[packages]]\n")
    lock = f"{head}[[packages]]\nmarker = \"'dev' not in dependency_groups\"\n{last}"
    assert table(write("pylock.toml", lock), cuda="cpu")["packages"] == ["a==1.0"]
