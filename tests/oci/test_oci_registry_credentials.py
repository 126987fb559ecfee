from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from reprobuild.errors import HostError, RegistryError
from reprobuild.oci.registry import credentials
from reprobuild.oci.registry.credentials import Login, login_for

HOST = "registry.example:5000"


def basic(text: str) -> dict[str, str]:
    return {"auth": base64.b64encode(text.encode()).decode()}


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run")}


def write(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))


def helper(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = folder / "docker-credential-vault"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_none_is_kept(env: dict[str, str]) -> None:
    assert login_for(HOST, "team/x", env) is None


def test_podman_s_file_comes_before_docker_s(env: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path / ".docker/config.json", {"auths": {HOST: basic("d:1")}})
    assert login_for(HOST, "x", env) == Login("d", "1")
    write(tmp_path / ".config/containers/auth.json", {"auths": {HOST: basic("c:2")}})
    assert login_for(HOST, "x", env) == Login("c", "2")
    write(tmp_path / "run/containers/auth.json", {"auths": {HOST: basic("r:3")}})
    assert login_for(HOST, "x", env) == Login("r", "3")
    write(tmp_path / "own.json", {"auths": {HOST: basic("o:4:5")}})
    assert login_for(HOST, "x", env | {"REGISTRY_AUTH_FILE": str(tmp_path / "own.json")}) == Login("o", "4:5")


def test_the_longest_name_that_fits_counts(env: dict[str, str], tmp_path: Path) -> None:
    auths = {HOST: basic("all:1"), f"{HOST}/team": basic("team:2"), f"{HOST}/team/x": basic("x:3")}
    write(tmp_path / ".docker/config.json", {"auths": auths})
    assert login_for(HOST, "team/x", env) == Login("x", "3")
    assert login_for(HOST, "team/y", env) == Login("team", "2")
    assert login_for(HOST, "teams/x", env) == Login("all", "1")
    assert login_for("other.example", "team/x", env) is None


def test_old_docker_wrote_addresses_and_new_ones_may_keep_tokens(env: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path / ".docker/config.json", {"auths": {f"https://{HOST}": {"identitytoken": "abc"}}})
    login = login_for(HOST, "x", env)
    assert login == Login("<token>", "abc")
    assert login.is_token
    # As it still does for its own registry.
    write(tmp_path / ".docker/config.json", {"auths": {f"https://{HOST}/v1/": basic("hub:1")}})
    assert login_for(HOST, "library/x", env) == Login("hub", "1")


@pytest.mark.parametrize("key", ["credsStore", "credHelpers"])
def test_a_helper_is_asked(
    env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    value = "vault" if key == "credsStore" else {HOST: "vault"}
    write(tmp_path / ".docker/config.json", {key: value})
    script = (
        f"""read host; [ "$host" = {HOST} ] && [ "$1" = get ] && echo '{{"Username":"u","Secret":"s"}}'"""
    )
    helper(tmp_path, monkeypatch, script)
    assert login_for(HOST, "x", env) == Login("u", "s")


def test_a_helper_that_has_nothing_or_fails_or_is_missing(
    env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / ".docker/config.json", {"credsStore": "vault", "auths": {HOST: basic("a:b")}})
    with pytest.raises(HostError, match="docker-credential-vault is not installed"):
        login_for(HOST, "x", env)
    helper(tmp_path, monkeypatch, "echo credentials not found in native keychain; exit 1")
    assert login_for(HOST, "x", env) == Login("a", "b")
    helper(tmp_path, monkeypatch, "echo the vault is locked >&2; exit 1")
    with pytest.raises(RegistryError, match="the vault is locked"):
        login_for(HOST, "x", env)
    for rubbish in ("echo hunter2", "echo '[]'", "echo '{}'", "echo 5", """echo '{"Username": "u"}'"""):
        helper(tmp_path, monkeypatch, rubbish)
        with pytest.raises(RegistryError, match="does not answer with a login") as error:
            login_for(HOST, "x", env)
        assert "hunter2" not in error.value.message
    monkeypatch.setattr(credentials, "_HELPER_SECONDS", 0.1)
    helper(tmp_path, monkeypatch, "exec sleep 60")
    with pytest.raises(RegistryError, match="did not end within"):
        login_for(HOST, "x", env)


@pytest.mark.parametrize(
    "bad",
    [
        "[]",
        "[" * 100_000,
        {"auths": [1]},
        {"auths": {HOST: "x"}},
        {"credHelpers": "x"},
        {"auths": {HOST: {"auth": 5}}},
        "{",
        {"auths": {HOST: {"auth": "%%"}}},
        {"auths": {HOST: basic("no-colon")}},
    ],
)
def test_a_file_that_is_no_good_is_named(env: dict[str, str], tmp_path: Path, bad: object) -> None:
    write(tmp_path / ".docker/config.json", bad)
    with pytest.raises(RegistryError, match=r"config\.json"):
        login_for(HOST, "x", env)
