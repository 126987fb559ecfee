"""PyTorch's own index beside the default one: builds with local versions such as 2.4.1+cu118."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reprobuild.lock.reader import parse_lock
from support.index import Index, serve_index
from support.resolving import LINUX
from support.server import serve

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.family"]


@pytest.fixture
def own(family: Index, apt: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """An index as PyTorch's: HTML, no upload times, one CUDA, all that torch needs of NVIDIA's."""
    with serve_index() as index:
        index.json = False
        for version in ("2.3.1", "2.4.1"):
            need = ["nvidia-cuda-runtime-cu11==11.8.89; platform_system == 'Linux'", "filelock"]
            index.add("torch", f"{version}+cu118", tag=LINUX, requires=need, uploaded=None)
        index.add("nvidia-cuda-runtime-cu11", "11.8.89", tag="py3-none-manylinux1_x86_64", uploaded=None)
        monkeypatch.setenv("UV_INDEX", index.url)
        yield index


def wheels(name: str) -> dict[str, str]:
    return {p.name: p.wheel.url for p in parse_lock(Path(f"envs/pylock.{name}.toml").read_text(), "").python}


def test_a_cuda_that_only_pytorchs_index_has(own: Index, family: Index, call: Call) -> None:
    said = call("lock", "--cuda", "11.8")
    assert said.status == 0, said.err
    found = wheels("torch-cu118")
    assert found["torch"] == f"{own.root}/files/torch-2.4.1%2Bcu118-{LINUX}.whl"
    assert found["nvidia-cuda-runtime-cu11"].startswith(own.root)
    assert found["numpy"].startswith(family.root)
    assert "PyTorch  2.4.1+cu118" in said.out
    assert call("lock", "--check", "torch-cu118").status == 0


def test_without_it_the_error_says_how_to_name_it(
    own: Index, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UV_INDEX")
    said = call("lock", "--cuda", "11.8")
    assert said.status == 5
    assert "12.1 (torch 2.4.1)" in said.err
    assert "or give --index pytorch" in said.err


def test_a_file_of_this_machine_that_an_index_names_is_refused(
    family: Index, apt: None, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with serve_index() as index:
        index.json = False
        wheel = index.add("evil", "2.0", uploaded=None)
        (tmp_path / "there/files").mkdir(parents=True)
        (tmp_path / "there/files" / wheel.name).write_bytes(wheel.body)
        monkeypatch.setenv("UV_INDEX", index.url)
        argv = ("lock", "--cuda", "12.1", "--package", "evil", "--name", "evil")
        assert call(*argv).status == 0
        index.elsewhere = (tmp_path / "there").as_uri()
        Path("envs/pylock.evil.toml").unlink()
        said = call("lock", "evil")
        assert (said.status, Path("envs/pylock.evil.toml").exists()) == (5, False), said.err
        assert f"evil: an index names {index.elsewhere}/files/{wheel.name}" in said.err
        monkeypatch.setenv("REPROBUILD_LOCAL_FILES", str(tmp_path / "there"))
        assert call("lock", "evil").status == 0


def test_a_password_of_that_index_goes_nowhere(
    own: Index, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.login = "team:s3cret"
    monkeypatch.setenv("UV_INDEX", own.url_with_login)
    said = call("-v", "lock", "--cuda", "11.8")
    assert said.status == 0, said.err
    assert "s3cret" not in said.out + said.err + Path("envs/pylock.torch-cu118.toml").read_text()
    monkeypatch.setenv("UV_INDEX", own.url)
    said = call("lock", "--upgrade", "torch-cu118")
    assert said.status == 5
    assert "401" in said.err


def test_cpu_only_from_such_an_index(own: Index, call: Call) -> None:
    own.files.clear()
    own.add("torch", "2.4.1+cpu", tag=LINUX, requires=["filelock"], uploaded=None)
    said = call("lock", "--cuda", "cpu", "--torch", "2.4.1")
    assert said.status == 0, said.err
    assert set(wheels("torch-cpu")) == {"torch", "numpy", "pip", "filelock"}
    assert "PyTorch  2.4.1+cpu" in said.out


@pytest.mark.parametrize(
    "content",
    [b"<FORM action='/login'><input name='user'></form>", b"<div id=root></div><script src=a.js></script>"],
)
def test_a_login_page_is_not_an_index_without_versions(
    content: bytes, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers answer 200 with it, and uv takes it for an index that has nothing."""
    page = b"<html><body>" + content + b"</body></html>"
    with serve() as server:
        server.add("/simple/torch/", page, content_type="text/html")
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"{server.url}/simple")
        said = call("lock", "--cuda", "cpu")
    assert said.status == 5
    assert "a web page with a form or a script, as a login has" in said.err


def test_a_redirect_without_end(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """uv follows some, and then says that the answer lacks a header."""
    with serve() as server:
        server.add("/simple/torch/", location="/simple/torch/")
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"{server.url}/simple")
        said = call("lock", "--cuda", "cpu", "--torch", "2.4.1")
    assert said.status == 5
    assert f"{server.url}/simple/torch/ cannot be read: Exceeded 30 redirects" in said.err
