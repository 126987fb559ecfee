"""The base image of a request, read from a real docker-registry on loopback."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import requests

from reprobuild.errors import FetchError, RegistryError, ResolveError
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.lock.base_image import BaseImage
from reprobuild.lock.model import Lock
from reprobuild.lock.reader import parse_lock
from reprobuild.request.table import Table
from reprobuild.resolve.resolver import Upgrade, resolve
from support.base_images import locked
from support.bases import PYTHON, Form, Pusher, digest_of, files, packed
from support.fixtures import fixtures_of
from support.hosts import quiet_host
from support.images import Entry, layer
from support.index import Index
from support.registry import PASSWORD, USER, gate_before, serve_registry
from support.resolving import request
from support.server import serve

pytest_plugins = ["support.family"]
globals().update(fixtures_of("support.base_images"))


@pytest.mark.parametrize("form", ["docker", "oci"])
def test_a_list_of_platforms(team: Pusher, form: Form) -> None:
    below, above = layer("etc/one"), files()
    mine = team.image([below, above], form=form, tag="mine", Env=["PATH=/usr/local/bin:/bin", "A=b=c"])
    other = team.image([below], form=form, tag="other", architecture="arm64")
    third = team.image([above], form=form, tag="third", architecture="s390x")
    every = {"linux/amd64": mine, "linux/arm64": other, "linux/s390x": third}
    index = team.index(every, form=form)
    found = locked(f"{team.name}:1")
    assert (found.image, found.index) == (f"{team.name}:1", index)
    assert found.manifests == {"linux/amd64": mine, "linux/arm64": other}
    assert found.env == {"PATH": "/usr/local/bin:/bin", "A": "b=c"}
    assert (found.system, found.suite, found.glibc) == ("Toy 1", "", "2.36")
    assert (found.python, found.python_version) == ("/usr/local/bin/python3.11", PYTHON)
    assert [y.diff_id for y in found.layers] == [digest_of(below), digest_of(above)]
    assert {y.media_type for y in found.layers} == {"application/vnd.oci.image.layer.v1.tar+gzip"}
    store = Store(Home.from_environment())
    assert [store.path(y.sha256).read_bytes() for y in found.layers] == [
        packed(below),
        packed(above),
    ]
    assert BaseImage.read(Table(found.to_dict())) == found


def test_an_image_alone_and_one_by_its_digest(team: Pusher) -> None:
    digest = team.image([files()])
    found = locked(f"{team.name}:1")
    assert (found.index, found.manifests) == (None, {"linux/amd64": digest})
    team.image([files(), layer("etc/newer")])
    pinned = locked(f"{team.name}@{digest}")
    assert pinned.layers == found.layers


def test_apt_packages_need_debian(team: Pusher) -> None:
    team.image([files()])
    with pytest.raises(ResolveError, match="is Toy 1; apt packages can be locked for Debian only"):
        locked(f"{team.name}:1", apt=["git"])


def test_a_variable_that_changes_numbers(team: Pusher) -> None:
    team.image([files()], Env=["TORCH_BLAS_PREFER_CUBLASLT=1"])
    with pytest.raises(ResolveError, match="sets TORCH_BLAS_PREFER_CUBLASLT"):
        locked(f"{team.name}:1")


def test_steps_that_a_build_would_run(team: Pusher) -> None:
    team.image([files()], OnBuild=["RUN date"])
    with pytest.raises(ResolveError, match="ONBUILD"):
        locked(f"{team.name}:1")


def test_the_pin_stays_until_it_is_moved(team: Pusher, family: Index) -> None:
    first = team.image([files()])
    wanted = request(base={"image": f"{team.name}:1"})

    def lock(existing: Lock | None, *packages: str) -> Lock:
        upgrade = Upgrade(packages=packages)
        return resolve(wanted, existing=existing, upgrade=upgrade, host=quiet_host())

    def digest(found: Lock) -> str:
        assert found.base is not None
        return found.base.manifests["linux/amd64"]

    before = lock(None)
    assert before.debian == ()
    assert parse_lock(before.dump(), "test") == before
    assert digest(before) == first
    assert lock(None).dump() == before.dump()
    second = team.image([files(), layer("etc/newer")])
    assert lock(before).dump() == before.dump()
    assert lock(before, "numpy").base == before.base
    assert digest(lock(before, f"{team.name}:1")) == second
    # Another Python in the same image: it is looked into again, and it is the same image.
    other = resolve(
        replace(wanted, python="3.11", cuda="12.4"),
        existing=before,
        upgrade=Upgrade(),
        host=quiet_host(),
    )
    assert digest(other) == first


def test_torch_that_is_too_new_for_the_base(team: Pusher, family: Index) -> None:
    runtime = ["nvidia-cuda-runtime-cu12==12.1.105", "filelock"]
    family.add("torch", "2.4.9", tag="cp311-cp311-manylinux_2_31_x86_64", requires=runtime)
    old = Entry(path="usr/lib/x/libc.so.6", content=b"stable release version 2.28.")
    team.image([files(), layer(old)])
    wanted = request(base={"image": f"{team.name}:1"})
    found = resolve(wanted, existing=None, upgrade=Upgrade(), host=quiet_host())
    assert found.version_of("torch") == "2.4.1"


class TestDate:
    def test_made_later(self, team: Pusher) -> None:
        team.image([files()], created="2024-09-16T00:00:00.123456789Z")
        with pytest.raises(ResolveError, match="was made on 2024-09-16, after as-of 2024-09-15"):
            locked(f"{team.name}:1", **{"as-of": date(2024, 9, 15)})
        assert locked(f"{team.name}:1", **{"as-of": date(2024, 9, 16)})

    @pytest.mark.parametrize("created", ["", "1970-01-01T00:00:00Z"])
    def test_that_says_nothing(self, team: Pusher, capsys: pytest.CaptureFixture[str], created: str) -> None:
        team.image([files()], created=created)
        assert locked(f"{team.name}:1", **{"as-of": date(2024, 9, 15)})
        assert "does not say when it was made" in capsys.readouterr().err


class TestRefusals:
    def test_no_such_tag(self, team: Pusher) -> None:
        team.image([files()])
        with pytest.raises(RegistryError, match=r"team/base has no 2: .*unknown"):
            locked(f"{team.name}:2")

    def test_no_such_platform(self, team: Pusher) -> None:
        team.index({"linux/arm64": team.image([files()], tag="x", architecture="arm64")})
        for tag in ("1", "x"):
            with pytest.raises(ResolveError, match="not available for linux/amd64; it is for linux/arm64"):
                locked(f"{team.name}:{tag}")

    def test_nobody_there(self, team: Pusher) -> None:
        with pytest.raises(RegistryError, match="the connection failed"):
            locked("127.0.0.1:9/team/base:1")

    def test_layers_of_another_kind(self, team: Pusher) -> None:
        document = {"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json"}
        config = json.dumps(
            {"os": "linux", "architecture": "amd64", "rootfs": {"diff_ids": [digest_of(b"x")]}}
        ).encode()
        foreign = {"mediaType": "application/vnd.example.odd"}
        entry = {"digest": team.blob(config), "size": len(config), "mediaType": "x"}
        one = {**foreign, "digest": team.blob(b"x"), "size": 1}
        team.manifest({**document, "config": entry, "layers": [one]}, "1")
        with pytest.raises(ResolveError, match="is not supported: application/vnd"):
            locked(f"{team.name}:1")

    def test_bytes_of_another_digest(self, team: Pusher, tmp_path: Path) -> None:
        content = files()
        team.image([content])
        blob = digest_of(packed(content))[7:]
        path = tmp_path / f"registry/data/docker/registry/v2/blobs/sha256/{blob[:2]}/{blob}/data"
        data = bytearray(path.read_bytes())
        data[-9] ^= 1
        path.write_bytes(data)
        with pytest.raises(FetchError, match="gives another file than the one locked"):
            locked(f"{team.name}:1")
        assert blob not in Store(Home.from_environment()).sizes()

    def test_a_manifest_of_another_digest(self, team: Pusher, tmp_path: Path) -> None:
        digest = team.image([files()])
        path = tmp_path / f"registry/data/docker/registry/v2/blobs/sha256/{digest[7:9]}/{digest[7:]}/data"
        path.write_bytes(path.read_bytes() + b" ")
        with pytest.raises(RegistryError, match=f"do not match the digest {digest}"):
            locked(f"{team.name}@{digest}")


def keep_login(host: str, password: str) -> None:
    config = Path.home() / ".docker/config.json"
    config.parent.mkdir(parents=True, exist_ok=True)
    secret = base64.b64encode(f"{USER}:{password}".encode()).decode()
    config.write_text(json.dumps({"auths": {host: {"auth": secret}}}))


@pytest.mark.parametrize("kind", ["basic", "token"])
def test_a_login(tmp_path: Path, kind: str, host: str) -> None:
    Pusher(host, "team/base").image([files()])
    with serve_registry(tmp_path / "locked", login=True) as guarded, gate_before(host) as gate:
        Pusher(guarded, "team/base", (USER, PASSWORD)).image([files()])
        gate.token = "abc"
        where = guarded if kind == "basic" else gate.host
        for password in (None, "wrong"):
            if password:
                keep_login(where, password)
            with pytest.raises(RegistryError, match="401") as refused:
                locked(f"{where}/team/base:1")
            assert f"docker login {where}" in refused.value.hint
        keep_login(where, PASSWORD)
        assert locked(f"{where}/team/base:1").python_version == PYTHON
        assert all("scope=repository%3Ateam%2Fbase%3Apull" in each for each in gate.scopes)
        assert not any("push" in each for each in gate.scopes)


def test_a_name_without_a_host_is_docker_s(team: Pusher, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import docker.auth

    Pusher(host, "library/toy").image([files()])
    monkeypatch.setattr(docker.auth, "INDEX_URL", f"http://{host}/v1/")
    assert locked("toy:1").image == "docker.io/library/toy:1"


@pytest.mark.parametrize(
    "said",
    [
        b"no json",
        b"[]",
        b"{}",
        b'{"config": 1}',
        b'{"config": {}}',
        b'{"manifests": 1}',
        b'{"manifests": [1]}',
        b'{"manifests": [{"platform": {"os": "linux", "architecture": "amd64"}}]}',
    ],
)
def test_an_answer_that_is_no_manifest(said: bytes) -> None:
    with serve() as server:
        server.add("/v2/", b"{}")
        server.add("/v2/team/base/manifests/1", said)
        with pytest.raises((RegistryError, ResolveError)) as bad:
            locked(f"{server.url[7:]}/team/base:1")
    assert "team/base" in bad.value.message


@pytest.mark.parametrize("config", [{"Env": ["A-B=c"]}, {"Env": ["A=b\nc"]}, {"Env": [1]}, {"Env": 1}])
def test_a_configuration_that_no_lock_can_hold(team: Pusher, config: Any) -> None:
    team.image([files()], **config)
    with pytest.raises((RegistryError, ResolveError), match="team/base:1"):
        locked(f"{team.name}:1")


@pytest.mark.parametrize("size", [0, -1, 1 << 36])
def test_a_layer_s_size_that_no_layer_has(team: Pusher, size: Any) -> None:
    """As of a registry from which a download would not end."""
    digest = team.image([files()])
    document = requests.get(f"{team.root}/manifests/{digest}", timeout=10).json()
    document["layers"][0]["size"] = size
    team.manifest(document, "1")
    with pytest.raises((RegistryError, ResolveError)):
        locked(f"{team.name}:1")


def test_a_layer_s_size_one_too_large(team: Pusher) -> None:
    digest = team.image([files()])
    document = requests.get(f"{team.root}/manifests/{digest}", timeout=10).json()
    document["layers"][0]["size"] += 1
    team.manifest(document, "1")
    with pytest.raises((RegistryError, FetchError)):
        locked(f"{team.name}:1")
