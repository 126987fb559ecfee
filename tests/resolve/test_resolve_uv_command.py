from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from pathlib import Path

import pytest

from reprobuild.errors import ResolveError
from reprobuild.host import process
from reprobuild.lock.model import Lock
from reprobuild.lock.packages import PythonPackage
from reprobuild.net.session import session
from reprobuild.resolve.target import TargetPython
from reprobuild.resolve.uv_command import _read, resolve_python
from support.index import Index, serve_index, wheel
from support.resolving import LINUX, request, resolution
from support.server import serve

pytest_plugins = ["support.family"]

TARGET = TargetPython("3.11", "amd64", (2, 36))


def lock_of(python: Collection[PythonPackage]) -> Lock:
    return Lock(
        request=request(), platform="linux/amd64", epoch=0, python=tuple(python), debian=(), variables={}
    )


def resolve(
    *requirements: str,
    as_of: date | None = None,
    existing: Collection[PythonPackage] = (),
    upgrade: Collection[str] | None = (),
    target: TargetPython = TARGET,
) -> dict[str, PythonPackage]:
    with session(retries=0) as http:
        about = resolution(
            http,
            request(**({} if as_of is None else {"as-of": as_of})),
            target=target,
            existing=lock_of(existing) if existing else None,
            upgrade=None if upgrade is None else frozenset(upgrade),
        )
        found = resolve_python(requirements, about)
    return {package.name: package for package in found}


def versions(found: dict[str, PythonPackage]) -> dict[str, str]:
    return {name: package.version for name, package in found.items()}


@pytest.mark.parametrize(("order", "found"), [(("b", "a"), ("1", "2")), ((), ("2", "1"))])
def test_of_two_solutions_that_of_the_imported_file_is_taken(
    index: Index, order: Sequence[str], found: tuple[str, str]
) -> None:
    """gradio and fastapi of LLaMA-Factory: the project's own uv starts with what it lists first."""
    for name, other in (("a", "b"), ("b", "a")):
        index.add(name, "1")
        index.add(name, "2", requires=[f"{other}<2"])
    with session(retries=0) as http:
        about = resolution(http, target=TARGET, order=order)
        assert tuple(p.version for p in resolve_python(["a", "b"], about)) == found


@pytest.mark.parametrize("json", [True, False], ids=["json", "html"])
def test_one_wheel_with_all_that_a_lock_needs(family: Index, json: bool) -> None:
    family.json = json
    family.add("numpy", "2.1.0", tag="cp311-cp311-manylinux_2_28_x86_64")
    family.add("numpy", "2.1.0", tag="cp311-cp311-macosx_11_0_arm64")
    found = resolve("numpy", "pip")
    assert versions(found) == {"numpy": "2.1.0", "pip": "24.2"}
    wheel = found["numpy"].wheel
    file = next(file for file in family.files if file.name == wheel.filename)
    assert wheel.filename == "numpy-2.1.0-cp311-cp311-manylinux_2_28_x86_64.whl"
    assert (wheel.sha256, wheel.size) == (file.sha256, len(file.body))
    assert wheel.url == f"{family.root}/files/{file.name}"
    assert str(wheel.uploaded) == "2024-09-04 19:14:13+00:00"


def test_closure_with_markers_for_the_target(family: Index) -> None:
    assert versions(resolve("torch==2.4.1")) == {
        "torch": "2.4.1",
        "filelock": "1.1",
        "nvidia-cuda-runtime-cu12": "12.1.105",
    }
    assert versions(resolve("torch==2.9.0"))["nvidia-cuda-runtime"] == "13.0.96"


@pytest.mark.parametrize("head", [405, 404])
def test_size_where_head_is_not_answered(family: Index, head: int) -> None:
    family.json = False
    for file in family.files:
        file.head = head
    found = resolve("pip")["pip"].wheel
    assert found.size == len(next(file.body for file in family.files if file.name == found.filename))


def test_unknown_package(family: Index) -> None:
    with pytest.raises(ResolveError, match="nonsense was not found in the package registry"):
        resolve("nonsense")


def test_impossible_version(family: Index) -> None:
    with pytest.raises(ResolveError, match=r"no version of numpy==99") as caught:
        resolve("numpy==99", as_of=date(2025, 1, 1))
    assert "2025-01-01" in caught.value.hint


def test_source_distributions_are_refused(family: Index) -> None:
    family.add_sdist("old", "1.0")
    with pytest.raises(ResolveError, match=r"old==1\.0 has no usable wheels") as caught:
        resolve("old==1.0")
    assert caught.value.hint.startswith("ask for a version that has a wheel")


@pytest.mark.parametrize("json", [True, False], ids=["json", "html"])
def test_where_the_index_has_no_hash_uv_makes_it(family: Index, json: bool) -> None:
    family.json = json
    file = family.add("bare", "1.0", hashed=False)
    assert resolve("bare")["bare"].wheel.sha256 == file.sha256


@pytest.mark.parametrize(
    ("packages", "message"),
    [
        ("wheels = [{name = 'a-1-py3-none-any.whl', url = 'https://h.example/a', hashes = {md5 = '0'}}]",
         r"no SHA-256 for a-1-py3-none-any\.whl"),
        ("wheels = [{name = 'a-1-cp27-cp27m-win32.whl', url = 'https://h.example/a', hashes = {md5 = '0'}}]",
         r"a 1 has no wheel for Python 3\.11"),
        ("sdist = {name = 'a-1.tar.gz', url = 'https://h.example/a', hashes = {md5 = '0'}}",
         r"a 1 has no wheel"),
        ("wheels = 3", "cannot be read"),
    ],
)  # fmt: skip
def test_answers_of_uv_that_cannot_be_locked(packages: str, message: str) -> None:
    text = f"lock-version = '1.0'\ncreated-by = 'uv'\n[[packages]]\nname = 'a'\nversion = '1'\n{packages}\n"
    with session(retries=0) as http, pytest.raises(ResolveError, match=message):
        _read(text, TARGET, "file:///x/", http, hashes={})


def test_as_of_includes_the_whole_day(family: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    family.add("numpy", "2.2.0", tag=LINUX, uploaded="2024-12-08T23:59:59Z")
    family.add("numpy", "2.2.1", tag=LINUX, uploaded="2024-12-09T00:00:00Z")
    assert versions(resolve("numpy", as_of=date(2024, 12, 8))) == {"numpy": "2.2.0"}


def test_pins_stay_unless_upgraded(family: Index) -> None:
    before = resolve("numpy<2", "filelock<1.1").values()
    old = {"numpy": "1.26.4", "filelock": "1.0"}
    assert versions(resolve("numpy", "filelock", existing=before)) == old
    assert versions(resolve("numpy>=2", "filelock", existing=before)) == old | {"numpy": "2.1.0"}
    one = resolve("numpy", "filelock", existing=before, upgrade=["filelock"])
    assert versions(one) == {"numpy": "1.26.4", "filelock": "1.1"}
    every = resolve("numpy", "filelock", existing=before, upgrade=None)
    assert versions(every) == {"numpy": "2.1.0", "filelock": "1.1"}


def test_new_release_is_not_taken_up_by_itself(family: Index) -> None:
    before = resolve("pip").values()
    family.add("pip", "25.0")
    assert versions(resolve("pip", existing=before)) == {"pip": "24.2"}
    assert versions(resolve("pip", existing=before, upgrade=["pip"])) == {"pip": "25.0"}


def test_no_secret_in_lock_error_or_log(
    family: Index, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    family.login = "someone:hunter2 secret"
    monkeypatch.setenv("UV_DEFAULT_INDEX", family.url_with_login)
    assert resolve("numpy")["numpy"].wheel.url.startswith(family.root)
    assert {sent for _, path, sent in family.log if path.startswith("/files/")} != {""}
    with pytest.raises(ResolveError) as caught:
        resolve("nonsense")
    text = caught.value.message + caught.value.hint + caplog.text
    assert not [word for word in ("hunter2", "someone") if word in text]


def test_pip_s_index_is_handed_on(family: Index, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = tmp_path / "pip.conf"
    with serve_index() as other:
        other.add("numpy", "9.9", tag=LINUX)
        config.write_text(f"[global]\nindex-url = {family.url}\nextra-index-url =\n  {other.url}\n")
        monkeypatch.delenv("UV_DEFAULT_INDEX")
        monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
        assert versions(resolve("numpy", "pip")) == {"numpy": "9.9", "pip": "24.2"}


def test_folder_of_wheels(family: Index, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "my wheels"
    folder.mkdir()
    file = family.files.pop(next(i for i, f in enumerate(family.files) if f.name.startswith("pip-")))
    (folder / file.name).write_bytes(file.body)
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    wheel = resolve("pip")["pip"].wheel
    assert wheel.url == (folder / file.name).as_uri()
    assert (wheel.size, wheel.sha256) == (len(file.body), file.sha256)


def test_page_of_wheels_with_a_login(family: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve() as server:
        body = wheel("other", "1.0")
        name = "other-1.0-py3-none-any.whl"
        server.add(f"/{name}", body, login="me:geheim")
        page = f'<a href="{name}">{name}</a>'.encode()
        links = server.add("/links.html", page, login="me:geheim", content_type="text/html")
        monkeypatch.setenv("UV_FIND_LINKS", links.replace("://", "://me:geheim@"))
        found = resolve("other")["other"].wheel
        assert (found.url, found.size) == (f"{server.url}/{name}", len(body))


def test_what_the_user_set_for_other_work_has_no_part(
    family: Index, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "c.txt").write_text("numpy<2\n")
    for name in ("UV_CONSTRAINT", "UV_OVERRIDE"):
        monkeypatch.setenv(name, str(tmp_path / "c.txt"))
    monkeypatch.setenv("UV_EXCLUDE_NEWER", "2001-01-01")
    monkeypatch.setenv("UV_RESOLUTION", "lowest")
    (tmp_path / "uv.toml").write_text('exclude-newer = "2001-01-01"\n')
    monkeypatch.delenv("UV_NO_CONFIG")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert versions(resolve("numpy")) == {"numpy": "2.1.0"}


def test_temporary_folders_go_away(family: Index, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    resolve("numpy")
    with pytest.raises(ResolveError):
        resolve("nonsense")
    assert not list(tmp_path.iterdir())


def test_uv_that_hangs(family: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(argv: list[str], **_: object) -> process.Completed:
        raise process.ProcessTimeout(argv, 900)

    monkeypatch.setattr("reprobuild.resolve.uv_command.run", hang)
    with pytest.raises(ResolveError, match="the packages were not resolved within 900 s"):
        resolve("numpy")


def test_uv_is_held_to_the_memory_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of 6 MB that unpacks to 6 GB took 12 GB; here uv alone takes more than the limit, and waits."""
    monkeypatch.setenv("REPROBUILD_MEMORY", "4M")
    with serve() as server:
        server.add("/numpy/", b"<html>", content_type="text/html", stall_at=1)
        monkeypatch.setenv("UV_DEFAULT_INDEX", server.url)
        with pytest.raises(ResolveError, match=r"not resolved: it took more than 4 MiB of memory"):
            resolve("numpy")


def test_a_file_of_one_name_with_other_bytes_on_another_index_is_refused(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.add("a", "1")
    locked = resolve("a")
    with serve_index() as other:
        other.add("a", "1", requires=["b"])
        other.add("b", "1")
        monkeypatch.setenv("UV_DEFAULT_INDEX", other.url)
        with pytest.raises(ResolveError, match=r"gives other bytes .*; it was locked from") as caught:
            resolve("a", existing=locked.values())
        assert "two indexes have different files of one name" in caught.value.hint
        assert set(resolve("a", existing=locked.values(), upgrade=["a"])) == {"a", "b"}
