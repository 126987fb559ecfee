"""Pages and folders of wheels (find-links) beside the indexes, as uv and pip are set up with them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reprobuild.errors import FetchError
from reprobuild.fetch.scheduler import fetch
from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.lock.model import Lock
from reprobuild.lock.reader import parse_lock
from reprobuild.net.index_settings import find_links
from support.index import Index, serve_index, wheel
from support.resolving import LINUX

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.family"]

NEED = ("nvidia-cuda-runtime-cu11==11.8.89",)


@pytest.fixture
def links(family: Index, apt: None, tmp_path: Path) -> Path:
    """A folder with a torch for CUDA 11.8 and one for the CPU, and with files that are none."""
    folder = tmp_path / "my, wheels"
    folder.mkdir()
    family.add("nvidia-cuda-runtime-cu11", "11.8.89", tag="py3-none-manylinux1_x86_64")
    for version, need in (("2.4.1+cu118", NEED), ("2.9.0+cpu", ())):
        (folder / f"torch-{version}-{LINUX}.whl").write_bytes(wheel("torch", version, requires=need))
    (folder / "notes.txt").write_text("torch")
    return folder


def locked(name: str) -> Lock:
    return parse_lock(Path(f"envs/pylock.{name}.toml").read_text(), "")


def by_variable(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("UV_FIND_LINKS", folder.as_uri().replace(",", "%2C"))


def by_a_relative_path(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    folder.rename(folder.with_name("plain"))
    monkeypatch.setenv("UV_FIND_LINKS", "../plain")


def by_a_file(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder.parent / "uv.toml").write_text('find-links = ["my, wheels"]\n')
    monkeypatch.delenv("UV_NO_CONFIG")
    monkeypatch.setenv("UV_CONFIG_FILE", str(folder.parent / "uv.toml"))


def by_pip(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    default = os.environ["UV_DEFAULT_INDEX"]
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    (folder.parent / "pip.conf").write_text(
        f"[global]\nindex-url = {default}\nfind-links =\n  {folder.as_uri()}\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(folder.parent / "pip.conf"))


@pytest.mark.parametrize("named", [by_variable, by_a_relative_path, by_a_file, by_pip])
def test_torch_of_a_folder(
    links: Path,
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    named: Callable[[pytest.MonkeyPatch, Path], None],
) -> None:
    named(monkeypatch, links)
    for cuda, name, version in (("11.8", "torch-cu118", "2.4.1+cu118"), ("cpu", "torch-cpu", "2.9.0+cpu")):
        said = call("lock", "--cuda", cuda)
        assert said.status == 0, said.err
        torch = next(p for p in locked(name).python if p.name == "torch")
        assert torch.version == version
        assert torch.wheel.url.startswith("file:///")


def test_pip_s_count_only_with_pip_s_index(
    links: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", f"{tmp_path / 'a'} https://h.example/b.html")
    assert find_links() == ()
    monkeypatch.setenv("UV_FIND_LINKS", "https://h.example/c.html")
    assert find_links() == ("https://h.example/c.html",)
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    pips = ((tmp_path / "a").as_uri(), "https://h.example/b.html")
    assert find_links() == ("https://h.example/c.html", *pips)


def test_a_folder_that_is_not_there(
    links: Path, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "gone"))
    said = call("lock", "--cuda", "12.1")
    assert said.status == 5
    assert f"{tmp_path / 'gone'}, a folder of wheels by the setting find-links" in said.err


def test_a_page_with_a_password(links: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_index() as pages:
        pages.json, pages.login = False, "me:geheimnis"
        pages.add("torch", "2.4.1+cu118", tag=LINUX, requires=NEED)
        page = pages.url_with_login + "torch/"
        monkeypatch.setenv("UV_FIND_LINKS", page)
        said = call("-v", "lock", "--cuda", "11.8")
        assert said.status == 0, said.err
        torch = next(p for p in locked("torch-cu118").python if p.name == "torch")
        assert torch.wheel.url.startswith(f"{pages.root}/files/torch-2.4.1")
        monkeypatch.setenv("UV_FIND_LINKS", page.replace("geheimnis", "verkehrt"))
        refused = call("-v", "lock", "--upgrade", "torch", "torch-cu118")
        assert (refused.status, "401" in refused.err) == (5, True)
    every = said.out + said.err + refused.out + refused.err + Path("envs/pylock.torch-cu118.toml").read_text()
    assert not [word for word in ("geheimnis", "verkehrt") if word in every]


@pytest.mark.parametrize("strategy", ["", "first-index", "unsafe-best-match"])
def test_which_of_two_indexes_has_a_package(
    links: Path, family: Index, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, strategy: str
) -> None:
    """A private index with a password before the default one, by uv's rules, set in uv's own file."""
    with serve_index() as private:
        private.login = "team:s3cret"
        private.add("numpy", "1.0", tag=LINUX)
        private.add("torch", "2.4.0", tag=LINUX, requires=["nvidia-cuda-runtime-cu12==12.1.105"])
        line = f'index-strategy = "{strategy}"\n' if strategy else ""
        (tmp_path / "uv.toml").write_text(
            f'{line}[[index]]\nname = "own"\nurl = "{private.url}"\n'
            f'[[index]]\nurl = "{family.url}"\ndefault = true\n'
        )
        monkeypatch.delenv("UV_NO_CONFIG")
        monkeypatch.delenv("UV_DEFAULT_INDEX")
        monkeypatch.setenv("UV_CONFIG_FILE", str(tmp_path / "uv.toml"))
        monkeypatch.setenv("UV_INDEX_OWN_USERNAME", "team")
        monkeypatch.setenv("UV_INDEX_OWN_PASSWORD", "s3cret")
        said = call("-v", "lock", "--cuda", "12.1", "--package", "numpy")
        assert said.status == 0, said.err
        found = {p.name: p.wheel.url for p in locked("torch-cu121").python}
        best = family.root if strategy == "unsafe-best-match" else private.root
        assert [found[name].startswith(best) for name in ("torch", "numpy")] == [True, True]
        assert found["pip"].startswith(family.root)
        # A private index that does not answer is no reason to take the package from elsewhere.
        private.status = 503
        down = call("-v", "lock", "--upgrade", "--", "torch-cu121")
        assert down.status == 5
    every = said.out + said.err + down.err + Path("envs/pylock.torch-cu121.toml").read_text()
    assert "s3cret" not in every


@pytest.mark.parametrize("json", [True, False], ids=["json", "html"])
def test_an_index_whose_hash_is_not_that_of_its_file(
    links: Path, family: Index, call: Call, tmp_path: Path, json: bool
) -> None:
    """What the page says stands in the lock, whoever resolves; the bytes decide."""
    family.json = json
    pip = next(file for file in family.files if file.project == "pip")
    pip.claims = "a" * 64
    assert call("lock", "--cuda", "12.1").status == 0
    whole = locked("torch-cu121")
    lock = replace(whole, python=[p for p in whole.python if p.name == "pip"], debian=())
    assert lock.python[0].wheel.sha256 == pip.claims
    store = Store(Home(tmp_path / "home"))
    with pytest.raises(FetchError) as caught:
        fetch(lock, store, Console(quiet=True))
    host = family.root.removeprefix("http://")
    for part in (pip.name, host, pip.claims, hashlib.sha256(pip.body).hexdigest()):
        assert part in caught.value.message
    assert "the index names a hash that its own file does not have" in caught.value.hint
    assert not store.has(pip.claims, len(pip.body))
