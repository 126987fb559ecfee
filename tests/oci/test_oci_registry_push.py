"""Pushing to a real docker-registry on loopback, partly through a gate that fails by script."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme

from conftest import needs
from reprobuild.engines.embedded import OciEngine
from reprobuild.engines.podman import PodmanEngine
from reprobuild.engines.transfer import load
from reprobuild.errors import ImageError, RegistryError, StorageError
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.oci.recompress import GZIP, Compression
from reprobuild.oci.registry import client as registry_module
from reprobuild.oci.registry.client import Registry, Target
from reprobuild.oci.registry.push import Pushed, push
from reprobuild.oci.store import Image
from support.building import lock_for, no_context, without_debian
from support.disk import make_unreadable
from support.registry import PASSWORD, USER, Gate, gate_before, serve_registry, tags
from support.wheels import put, simple_wheel

CONSOLE = Console(quiet=True)
PAGES = {"blob": r"PUT /v2/team/x/blobs/uploads/.*", "manifest": r"PUT /v2/team/x/manifests/1"}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    without_debian(monkeypatch)
    monkeypatch.setattr(registry_module, "CERTIFICATES", (tmp_path / "docker", tmp_path / "containers"))
    monkeypatch.setattr(Registry.__init__, "__kwdefaults__", {"wait": 0.01})
    return Store(Home(tmp_path / "home"))


class Store:
    """An image of a few layers, and others like it, in an embedded store."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.engine = OciEngine(Host(home, CONSOLE))
        self.image = self.build("first")

    def build(self, package: str) -> Image:
        packages = [put(self.home, name, simple_wheel(name)) for name in ("torch", package)]
        digest = self.engine.build(lock_for(self.home, packages), no_context)
        self.engine.images.name(digest, f"team/{package}:1")
        return self.engine.images.find(digest)

    def push(
        self,
        place: str,
        image: Image | None = None,
        *,
        force: bool = False,
        compression: Compression = "zstd",
    ) -> Pushed:
        images, target = self.engine.images, Target.parse(place)
        return push(images, image or self.image, target, CONSOLE, force=force, compression=compression)

    def blobs(self, image: Image) -> dict[str, int]:
        manifest = self.engine.images.manifest(image.digest)
        return {each["digest"]: each["size"] for each in (manifest["config"], *manifest["layers"])}


@pytest.fixture
def host(tmp_path: Path) -> Iterator[str]:
    with serve_registry(tmp_path / "registry") as found:
        yield found


@pytest.fixture
def gate(host: str) -> Iterator[Gate]:
    with gate_before(host) as found:
        yield found


def pulled(host: str, name: str) -> dict[str, Any]:
    """What another tool sees, which fetches every blob and checks its digest."""
    needs("skopeo")
    command = ["skopeo", "inspect", "--tls-verify=false", f"docker://{host}/{name}"]
    found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found


def test_what_is_pulled_back_is_the_same_image(store: Store, host: str, tmp_path: Path) -> None:
    done = store.push(f"{host}/team/x:1")
    assert done == Pushed(store.image.digest, sum(store.blobs(store.image).values()), 0)
    assert pulled(host, "team/x:1")["Digest"] == store.image.digest
    copy = ["skopeo", "copy", "--quiet", "--src-tls-verify=false", f"docker://{host}/team/x:1"]
    subprocess.run([*copy, f"oci:{tmp_path / 'pulled'}:x"], check=True)
    for digest in (store.image.digest, *store.blobs(store.image)):
        blob = (tmp_path / "pulled/blobs/sha256" / digest[7:]).read_bytes()
        assert blob == store.engine.images.blob(digest).read_bytes()


def test_blobs_that_are_there_are_not_sent_again(store: Store, gate: Gate, host: str) -> None:
    store.push(f"{gate.host}/team/x:1")
    gate.log.clear()
    assert store.push(f"{gate.host}/team/x:1").sent == 0
    assert not [line for line in gate.log if not line.startswith(("GET", "HEAD"))]
    other = store.build("other")
    before, after = store.blobs(store.image), store.blobs(other)
    done = store.push(f"{gate.host}/team/x:2", other)
    assert done.sent == sum(size for digest, size in after.items() if digest not in before)
    assert done.there == sum(size for digest, size in after.items() if digest in before) > 0
    assert pulled(host, "team/x:2")["Digest"] == other.digest


def test_in_gzip_it_has_the_same_configuration_and_files(store: Store, host: str, tmp_path: Path) -> None:
    done = store.push(f"{host}/team/x:1", compression="gzip")
    assert pulled(host, "team/x:1")["Digest"] == done.digest != store.image.digest
    # A copy checks every layer against the configuration, which is the one that was built.
    copy = ["skopeo", "copy", "--quiet", "--src-tls-verify=false", f"docker://{host}/team/x:1"]
    subprocess.run([*copy, f"oci:{tmp_path / 'pulled'}:x"], check=True)
    manifest = json.loads((tmp_path / "pulled/blobs/sha256" / done.digest[7:]).read_bytes())
    assert manifest["config"] == store.engine.images.manifest(store.image.digest)["config"]
    assert {layer["mediaType"] for layer in manifest["layers"]} == {GZIP}
    again = store.push(f"{host}/team/x:1", compression="gzip")
    assert (again.digest, again.sent) == (done.digest, 0)
    with pytest.raises(RegistryError, match="another image already"):
        store.push(f"{host}/team/x:1")
    assert [*(store.home.root / "tmp").iterdir()] == []


def test_a_damaged_layer_is_not_compressed_again(store: Store, host: str) -> None:
    blob, _ = store.engine.images.layers(store.image.digest)[0]
    blob.chmod(0o644)
    blob.write_bytes(blob.read_bytes()[:-1] + b"x")
    with pytest.raises(ImageError, match="the image store is damaged"):
        store.push(f"{host}/team/x:1", compression="gzip")
    assert tags(host, "team/x") == []


def test_a_taken_tag_is_refused_before_anything_is_compressed(store: Store, host: str) -> None:
    """Compressing takes minutes. Here it would fail, since a layer of the other image is damaged."""
    other = store.build("other")
    blob, _ = store.engine.images.layers(other.digest)[-1]
    blob.chmod(0o644)
    blob.write_bytes(blob.read_bytes()[:-1] + b"x")
    store.push(f"{host}/team/gzip:1", compression="gzip")
    for tag in ("gzip", "zstd"):
        if tag == "zstd":
            store.push(f"{host}/team/zstd:1")
        with pytest.raises(RegistryError, match="is another image already"):
            store.push(f"{host}/team/{tag}:1", other, compression="gzip")
    # The same image with its layers in zstd is another one there, too.
    with pytest.raises(RegistryError, match="is another image already"):
        store.push(f"{host}/team/zstd:1", compression="gzip")
    with pytest.raises(ImageError, match="the image store is damaged"):
        store.push(f"{host}/team/zstd:1", other, compression="gzip", force=True)


def test_a_blob_that_cannot_be_read_is_no_fault_of_the_registry(
    store: Store, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob, _ = store.engine.images.layers(store.image.digest)[0]
    make_unreadable(blob, monkeypatch)
    with pytest.raises(StorageError, match=f"{blob}: Input/output error"):
        store.push(f"{host}/team/x:1")
    assert tags(host, "team/x") == []


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("fault", [503, 500, 429, "drop"])
def test_a_registry_that_stumbles_gets_it_again(
    store: Store, gate: Gate, host: str, page: str, fault: Any
) -> None:
    gate.faults[PAGES[page]] = [fault, fault]
    store.push(f"{gate.host}/team/x:1")
    assert gate.faults[PAGES[page]] == []
    assert pulled(host, "team/x:1")["Digest"] == store.image.digest


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("fault", [503, "drop"])
def test_one_that_stays_down_gets_no_tag(store: Store, gate: Gate, host: str, page: str, fault: Any) -> None:
    gate.faults[PAGES[page]] = [fault] * 100
    with pytest.raises(RegistryError, match=f"{gate.host}.*(503|connection)"):
        store.push(f"{gate.host}/team/x:1")
    assert tags(host, "team/x") == []
    gate.faults.clear()
    store.push(f"{gate.host}/team/x:1")
    assert tags(host, "team/x") == ["1"]


def test_nobody_listens(store: Store) -> None:
    with pytest.raises(RegistryError, match=r"127\.0\.0\.1:9: the connection failed: connection refused$"):
        store.push("127.0.0.1:9/team/x:1")


def test_a_tag_of_another_image_is_kept_unless_forced(store: Store, host: str) -> None:
    store.push(f"{host}/team/x:1")
    other = store.build("other")
    with pytest.raises(RegistryError, match="is another image already") as error:
        store.push(f"{host}/team/x:1", other)
    assert "--force" in error.value.hint
    assert pulled(host, "team/x:1")["Digest"] == store.image.digest
    store.push(f"{host}/team/x:1", other, force=True)
    assert pulled(host, "team/x:1")["Digest"] == other.digest


def test_a_read_only_registry(store: Store, tmp_path: Path) -> None:
    with serve_registry(tmp_path / "read-only", read_only=True) as host:
        with pytest.raises(RegistryError, match=r"405 .*read-only"):
            store.push(f"{host}/team/x:1")
        assert tags(host, "team/x") == []


def keep_login(file: Path, host: str, password: str = PASSWORD) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    auth = base64.b64encode(f"{USER}:{password}".encode()).decode()
    file.write_text(json.dumps({"auths": {host: {"auth": auth}}}))


def test_a_login_is_taken_from_docker_s_file(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker-config"))
    with serve_registry(tmp_path / "locked", login=True) as host:
        with pytest.raises(RegistryError, match=r"401 .*no login is kept") as error:
            store.push(f"{host}/team/x:1")
        assert error.value.hint == f"`docker login {host}` or `podman login {host}`"
        keep_login(tmp_path / "docker-config/config.json", host, "wrong")
        with pytest.raises(RegistryError, match=r"401 .*with the login") as error:
            store.push(f"{host}/team/x:1")
        assert "wrong" not in error.value.message
        keep_login(tmp_path / "docker-config/config.json", host)
        assert store.push(f"{host}/team/x:1").digest == store.image.digest


def test_a_token_is_asked_for_where_the_registry_wants_one(
    store: Store, gate: Gate, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "auth.json"))
    gate.token = "a-token"
    with pytest.raises(RegistryError, match="401"):
        store.push(f"{gate.host}/team/x:1")
    keep_login(tmp_path / "auth.json", f"{gate.host}/team")
    store.push(f"{gate.host}/team/x:1")
    assert tags(host, "team/x") == ["1"]
    assert {*gate.scopes} == {"service=here&scope=repository%3Ateam%2Fx%3Apull%2Cpush"}


def test_a_self_signed_registry_is_named_and_its_ca_can_be_kept(store: Store, tmp_path: Path) -> None:
    authority = trustme.CA()
    with serve_registry(tmp_path / "tls", authority=authority) as host:
        with pytest.raises(RegistryError, match="certificate that is not trusted") as error:
            store.push(f"{host}/team/x:1")
        assert error.value.hint == f"put its CA into {tmp_path}/docker/{host}/ca.crt, as for Docker"
        (tmp_path / "docker" / host).mkdir(parents=True)
        authority.cert_pem.write_to_path(str(tmp_path / "docker" / host / "ca.crt"))
        assert store.push(f"{host}/team/x:1").digest == store.image.digest


@pytest.mark.parametrize(
    "text", ["torch:1", "team/torch:1", "docker.io/team/torch", "UPPER.example/X:1", "a b"]
)
def test_a_target_that_names_no_registry(text: str) -> None:
    with pytest.raises(ImageError) as error:
        Target.parse(text)
    assert error.value.hint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("registry.example/a/b:1", Target("registry.example", "a/b", "1")),
        ("localhost/x", Target("localhost", "x", "latest")),
        ("127.0.0.1:5000/x:2", Target("127.0.0.1:5000", "x", "2")),
    ],
)
def test_a_target(text: str, expected: Target) -> None:
    assert Target.parse(text) == expected


@pytest.mark.engines
def test_a_candidate_is_handed_to_nobody(store: Store, host: str) -> None:
    """What has not passed gets no name elsewhere either."""
    candidate = replace(store.image, names=())
    with pytest.raises(ImageError, match="is a candidate"):
        store.push(f"{host}/team/x:1", candidate)
    taker = PodmanEngine(Host(store.home, CONSOLE))
    with pytest.raises(ImageError, match="is a candidate"):
        load(store.engine.images, candidate, "team/x:1", taker, force=True)
    assert tags(host, "team/x") == []
