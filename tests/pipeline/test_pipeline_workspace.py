from __future__ import annotations

import os
from pathlib import Path

import pytest

from conftest import GOLDEN
from reprobuild.errors import LockError, RequestError
from reprobuild.pipeline.workspace import (
    Env,
    all_envs,
    env_for,
    is_env,
    new_env,
    read_env,
    read_layers,
    read_lock,
)
from reprobuild.request.model import Request


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("envs").mkdir()


def write(name: str, /, **keys: str) -> Path:
    path = Path("envs") / f"{name}.toml"
    path.write_text("".join(f'{key} = "{value}"\n' for key, value in {"cuda": "12.1", **keys}.items()))
    return path


def request(**keys: str) -> Request:
    return Request.from_dict({"cuda": "12.1", **keys}, "test")


def pick(cuda: str = "12.1", **keys: str) -> Env:
    def fits(found: Request) -> bool:
        return all(getattr(found, key) == value for key, value in keys.items())

    return env_for(cuda, fits, lambda: request(cuda=cuda, **keys))


def test_a_request_is_named_by_its_file_and_its_lock_lies_beside_it() -> None:
    path = write("frames")
    for text in ("frames", str(path), str(path.absolute())):
        env = read_env(text)
        assert env.request.name == "frames"
        assert env.lock_file == env.file.with_name("pylock.frames.toml")
    assert read_env(str(path)).file == path


@pytest.mark.parametrize("kind", ["device", "pipe", "large"])
def test_a_lock_and_a_request_are_regular_files_of_a_bounded_size(kind: str) -> None:
    for file in (Path("envs/pylock.odd.toml"), Path("envs/odd.toml"), Path("envs/layers.json")):
        if kind == "device":
            file.symlink_to("/dev/zero")
        elif kind == "pipe":
            os.mkfifo(file)
        else:
            with file.open("wb") as opened:
                opened.truncate(20 << 30)
        with pytest.raises((LockError, RequestError), match=r"not a regular file|has more than 64 MiB"):
            read_lock(file) if "lock" in file.name else read_layers(
                file
            ) if "json" in file.name else read_env("odd")


def test_a_name_that_is_not_the_file_s_is_refused() -> None:
    write("frames", name="other")
    with pytest.raises(RequestError, match=r"envs/frames.toml: name: is 'other'") as caught:
        read_env("frames")
    assert 'name = "frames"' in caught.value.hint


def test_a_file_whose_name_cannot_be_one() -> None:
    write("My_Env")
    with pytest.raises(RequestError, match="'My_Env' is not a valid name"):
        read_env("My_Env")


def test_what_is_not_there_and_what_is_no_request() -> None:
    write("one")
    write("two")
    with pytest.raises(RequestError, match=r"envs/three\.toml: no such file") as caught:
        read_env("three")
    assert caught.value.hint == "envs/ has one, two"
    with pytest.raises(RequestError, match="is a lock, not a request"):
        read_env("envs/pylock.one.toml")


def test_files_that_cannot_be_read() -> None:
    Path("envs/a.toml").write_bytes(b"\xff")
    with pytest.raises(RequestError, match="not valid UTF-8 text"):
        read_env("a")
    Path("envs/b.toml").mkdir()
    with pytest.raises(RequestError, match="cannot be read: Is a directory"):
        read_env("b")


@pytest.mark.parametrize("name", ["a\\u0000b.yml", "loop.yml", "e.txt", "../../e.yml"])
def test_a_file_that_a_request_may_not_name(name: str) -> None:
    Path("envs/loop.yml").symlink_to("loop.yml")
    Path("envs/a.toml").write_text(f'cuda = "cpu"\n[conda]\nenvironment = "{name}"\n')
    with pytest.raises(RequestError, match=r"envs/a\.toml: conda\.environment: "):
        read_env("a")


@pytest.mark.parametrize("key", ["platforms", "packages"])
def test_a_wrong_type_beside_an_environment_is_named(key: str) -> None:
    Path("envs/e.yml").write_text("dependencies: [python=3.11]\nchannels: [https://index.example/c]\n")
    Path("envs/a.toml").write_text(f'cuda = "cpu"\n{key} = 3\n[conda]\nenvironment = "e.yml"\n')
    with pytest.raises(RequestError, match=rf"envs/a\.toml: {key}: expected a list"):
        read_env("a")


def test_a_name_that_no_file_can_have() -> None:
    assert not is_env("a" * 300)
    with pytest.raises(RequestError, match="File name too long"):
        read_env("a" * 300)
    with pytest.raises(RequestError, match="at most 100"):
        request(name="a" * 101)


def test_all_requests_are_listed_without_the_locks() -> None:
    write("two")
    write("one")
    Path("envs/pylock.one.toml").write_text("")
    Path("envs/notes.txt").write_text("")
    assert [env.request.name for env in all_envs()] == ["one", "two"]


def test_a_word_is_a_request_or_a_package() -> None:
    write("frames")
    assert is_env("frames")
    assert is_env("elsewhere/x.toml")
    assert not is_env("numpy")


def test_no_folder_is_no_request() -> None:
    Path("envs").rmdir()
    assert all_envs() == []
    with pytest.raises(RequestError) as caught:
        read_env("x")
    assert caught.value.hint == "envs/ has no requests"


def test_a_new_request_is_saved_once() -> None:
    Path("envs").rmdir()
    env = new_env(request(name="fresh"))
    assert env.save()
    assert not env.save()
    assert read_env("fresh") == env
    assert new_env(request(name="fresh")) == env


def test_a_request_that_is_there_is_not_written_over() -> None:
    write("fresh", torch="2.4.0")
    with pytest.raises(
        RequestError, match=r"asks for something else \(torch: not set, there 2.4.0\)"
    ) as caught:
        new_env(request(name="fresh"))
    assert "another --name" in caught.value.hint


def test_the_one_that_fits_is_taken_else_a_new_one() -> None:
    assert pick().file == Path("envs/torch-cu121.toml")
    write("frames", torch="2.4.0")
    assert pick().request.name == "frames"
    assert pick(torch="2.4.0").request.name == "frames"
    assert pick(torch="2.4.1").file == Path("envs/torch-cu121.toml")
    assert pick("cpu").file == Path("envs/torch-cpu.toml")


def test_among_several_the_usual_name_counts() -> None:
    write("frames")
    write("videos")
    with pytest.raises(
        RequestError, match=r"more than one request is for CUDA 12\.1: envs/frames\.toml, envs/videos\.toml"
    ):
        pick()
    write("torch-cu121")
    assert pick().request.name == "torch-cu121"


def test_locks_are_read_by_file() -> None:
    assert read_lock(GOLDEN / "pylock.torch-cu121.toml").request.name == "torch-cu121"
    with pytest.raises(LockError, match="no such file") as caught:
        read_lock(Path("envs/pylock.x.toml"))
    assert caught.value.hint == "`reprobuild lock` writes one"


@pytest.mark.parametrize(
    "address", ["https://w.example/x-1-py3-none-any.whl", "git+https://g.example/x@main"]
)
def test_an_address_in_a_message_names_the_package_that_has_it(address: str) -> None:
    asked = Request.from_dict({"cuda": "12.1", "packages": [f"x @ {address}", "six", "ours @ .."]}, "test")
    env = Env(asked, Path("a.toml"), places={"x": "r.txt:3", "six": "r.txt:4", "ours": "setup.py"})
    where = address.removeprefix("git+").partition("@")[0]
    assert env.places_in(f"{where} cannot be reached...") == ["x is asked for in r.txt:3"]
