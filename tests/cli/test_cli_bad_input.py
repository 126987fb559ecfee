"""What a user can give that cannot be locked: the message, the exit status, and nothing half-written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import requests

from reprobuild.errors import ImageError, RequestError, ResolveError
from support.index import Index
from support.locks import TEXT
from support.registry import serve_registry

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.family"]

FOLDER_ONLY = """\
lock-version = "1.0"
created-by = "another tool"
[[packages]]
name = "homemade"
version = "1.0"
[packages.directory]
path = "homemade"
"""


def refused(call: Call, *argv: str, status: int) -> str:
    """Call, and hold that nothing but an error came of it; return what was said."""
    said = call(*argv)
    assert (said.status, said.out) == (status, ""), said.err
    assert not list(Path().rglob("pylock.*.toml")) or Path("pylock.toml").exists()
    assert not Path("envs").exists()
    return said.err


def test_a_day_before_torch_had_that_cuda(family: Index, apt: None, call: Call) -> None:
    family.add(
        "torch", "1.13.1", requires=["nvidia-cuda-runtime-cu11==11.7.99"], uploaded="2022-12-01T00:00:00Z"
    )
    said = refused(call, "lock", "--cuda", "12.1", "--as-of", "2023-01-15", status=ResolveError.exit_code)
    assert "no torch for Python 3.11" in said
    assert "published by 2023-01-15 is built for CUDA 12.1" in said
    assert "torch 2.4.0 is the first, published later" in said


def test_a_package_that_the_index_has_as_source_only(family: Index, apt: None, call: Call) -> None:
    family.add_sdist("homemade", "1.0")
    Path("requirements.txt").write_text("homemade==1.0\n")
    argv = ("lock", "--from", "requirements.txt", "--cuda", "12.1", "--only-wheels")
    said = refused(call, *argv, status=ResolveError.exit_code)
    assert "homemade==1.0 has no usable wheels" in said
    assert "ask for a version that has a wheel" in said


def test_another_tool_s_lock_of_a_folder(family: Index, apt: None, call: Call) -> None:
    Path("pylock.toml").write_text(FOLDER_ONLY)
    said = refused(call, "lock", "--from", "pylock.toml", "--cuda", "12.1", status=RequestError.exit_code)
    assert "pylock.toml: packages (homemade): " in said
    assert "no such folder" in said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: a\nchannel: [x]\ndependencies: [python]\n", "environment.yml: channel: unknown key"),
        (
            "channels: ['http://127.0.0.1:9']\ndependencies: [python]\n",
            "a conda channel cannot be read",
        ),
        (
            "channels: [defaults]\ndependencies: [python]\n",
            "is not a channel but the name of several of Anaconda's\n  hint: give --loosen defaults",
        ),
        (
            "channels: [x]\ndependencies: [python]\nvariables:\n  LANG: b\n",
            "environment.yml: variables: environment.LANG: reprobuild sets LANG itself\n  hint: leave it",
        ),
    ],
)
def test_an_environment(family: Index, apt: None, call: Call, text: str, says: str) -> None:
    Path("environment.yml").write_text(text)
    status = ResolveError.exit_code if "cannot be read" in says else RequestError.exit_code
    assert says in refused(call, "lock", "--from", "environment.yml", "--cuda", "12.1", status=status)


@pytest.mark.parametrize("name", ["environment.yml", "envs/a.toml"])
def test_a_file_in_utf_16(call: Call, name: str) -> None:
    Path("envs").mkdir()
    Path(name).write_text("torch", encoding="utf-16")
    argv = ["envs/a.toml"] if name.startswith("envs") else ["--from", name, "--cuda", "12.1"]
    said = call("lock", *argv)
    assert (said.status, said.out) == (3, "")
    assert f"{name}: not valid UTF-8 text\n  hint: save it as UTF-8" in said.err


@pytest.mark.parametrize("name", ["docker:", "UPPER/case:1", "reg.example/a b:1", "reg.example/Team/x"])
def test_an_image_s_name_that_is_none(call: Call, name: str) -> None:
    said = refused(call, "doctor", name, status=ImageError.exit_code)
    assert name.rpartition(":")[0] in said


def test_an_image_for_other_machines(call: Call, tmp_path: Path) -> None:
    """A list of manifests, as a registry has it for several platforms."""
    kind = "application/vnd.oci.image.index.v1+json"
    there = {"mediaType": kind, "schemaVersion": 2, "manifests": []}
    with serve_registry(tmp_path / "registry") as host:
        put = requests.put(
            f"http://{host}/v2/team/x/manifests/1",
            data=json.dumps(there),
            headers={"Content-Type": kind},
            timeout=30,
        )
        assert put.status_code == 201, put.text
        said = refused(call, "doctor", f"{host}/team/x:1", status=ImageError.exit_code)
    assert f"{host}/team/x:1 is not for linux/" in said


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        ("lock adir", 3, "adir is a folder: expected a request, or the name of one"),
        ("image report.json", 3, "report.json is a file, but not a TOML file"),
        (
            "doctor nosuch",
            3,
            "envs/nosuch.toml: no such file\n  hint: if nosuch is an image, name it",
        ),
        ("selftest report.json", 2, "report.json is a file; a report is compared with --against or --fleet"),
        ("twice --against no.repeat x -- true", 2, "--against: no.repeat: No such file or directory"),
        ("twice --against report.json x -- true", 2, "--against: report.json is not a recording of a run"),
        ("selftest --against report.json", 2, "report.json: not a self-test report: it names no schema"),
        ("check ./adir", 10, "adir: not an OCI layout: index.json: No such file or directory"),
        ("check adir", 10, "write ./adir for what is here; for the image, run the command in another folder"),
        ("convert lock.toml --to requirements -o no/x", 11, "no/x: no is not a folder"),
        ("lock lock.toml", 3, "lock.toml is a lock, not a request"),
    ],
)
def test_a_name_that_means_something_else(argv: str, status: int, words: str, call: Call) -> None:
    Path("adir").mkdir()
    Path("report.json").write_text("{}")
    Path("lock.toml").write_text(TEXT)
    said = call(*argv.split())
    assert (said.status, said.out) == (status, ""), said.err
    assert words in said.err


def test_a_lock_of_any_name_is_a_lock(call: Call) -> None:
    Path("old.toml").write_text(TEXT)
    said = call("render", "old.toml", "-o", "out", "--no-artifacts")
    assert said.status == 0, said.err
    assert Path("out/Dockerfile").is_file()


def test_a_broken_request_that_was_not_named_says_why_it_is_read(call: Call) -> None:
    Path("envs").mkdir()
    Path("envs/other.toml").write_text('cuda = "cpu"\napt = "git"\n')
    said = call("image", "--cuda", "99.9")
    assert said.status == 3
    assert "envs/other.toml: apt: expected a list" in said.err
    assert "to find the one for CUDA 99.9, every request in envs/ is read" in said.err
