"""Which Docker: contexts, DOCKER_HOST, a builder elsewhere; and both image stores of Docker."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from reprobuild.engines.docker import DockerEngine
from reprobuild.errors import HostError
from reprobuild.pipeline.workspace import read_lock
from reprobuild.verify.find import tree_of
from support.bench import NAME, Bench
from support.buildkit import serve_buildkit
from support.engines import Site, new_docker, old_docker
from support.hosts import quiet_host

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def classic(debian13: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Docker 26.1 whose images are in its own store of layers."""
    with new_docker(tmp_path_factory.mktemp("engine") / "site", debian13, containerd=False) as site:
        yield site


@pytest.fixture(scope="module")
def modern(docker26: Site) -> Site:
    """Docker 26.1 whose images are in containerd's store, and a context ``there`` that leads to it."""
    docker26.call("context", "create", "there", "--docker", f"host={docker26.env['DOCKER_HOST']}")
    return docker26


def test_the_store_of_layers(bench: Bench, digest: str, classic: Site) -> None:
    """It takes the embedded engine's layers, gives the same files, and keeps the digest of what is loaded."""
    out, _ = bench.run("image", bench.lock, "--engine", "docker", "--json", env=classic.env)
    found = json.loads(out)
    assert (found["name"], found["report"]["verdict"]) == (NAME, "passed")
    manifest = json.loads((bench.home / "oci/blobs/sha256" / digest[7:]).read_bytes())
    assert found["digest"] == manifest["config"]["digest"]
    assert found["digest"] == classic.call("image", "inspect", "--format", "{{.Id}}", NAME).strip()
    bench.run("compare", f"oci:{NAME}", f"docker:{NAME}", env=classic.env)
    bench.run("check", f"docker:{NAME}", env=classic.env)


def test_what_is_built_in_the_store_of_layers_has_a_digest_of_its_own(
    bench: Bench, classic: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = build_small(bench, None, classic.env, monkeypatch)
    assert "cannot rewrite time stamps" in capsys.readouterr().err
    assert digest in images(classic)


def test_a_builder_that_cannot_hand_its_image_on(
    bench: Bench, digest: str, classic: Site, modern: Site
) -> None:
    modern.call("context", "create", "classic", "--docker", f"host={classic.env['DOCKER_HOST']}")
    argv = ("image", bench.lock, "--engine", "docker", "--builder", "classic", "--tag", "team/x:1")
    _, err = bench.run(*argv, status=HostError.exit_code, env=modern.env)
    assert "--builder classic" in err
    assert "DOCKER_CONTEXT=classic" in err
    assert "team/x:1" not in [*classic.names(), *modern.names()]


@pytest.mark.parametrize("by", ["variable", "docker context use"])
def test_the_context_in_use_is_taken(bench: Bench, digest: str, modern: Site, by: str) -> None:
    env = {"DOCKER_CONFIG": modern.env["DOCKER_CONFIG"]}
    if by == "variable":
        env["DOCKER_CONTEXT"] = "there"
    else:
        config = Path(env["DOCKER_CONFIG"]) / "config.json"
        config.write_text(json.dumps({"currentContext": "there"}))
    name = f"team/{by.rsplit(maxsplit=1)[-1]}:1"
    try:
        bench.run("load", NAME, "--into", "docker", "--tag", name, env=env)
    finally:
        (Path(env["DOCKER_CONFIG"]) / "config.json").write_text("{}")
    assert name in modern.names()


def test_docker_host_outranks_the_context(bench: Bench, digest: str, modern: Site, tmp_path: Path) -> None:
    """As it does for the docker command."""
    env = {**modern.env, "DOCKER_CONTEXT": "there", "DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    argv = ("load", NAME, "--into", "docker")
    _, err = bench.run(*argv, status=HostError.exit_code, env=env)
    assert "no Docker daemon answers" in err


def test_a_context_or_builder_that_is_not_there(bench: Bench, digest: str, modern: Site) -> None:
    """Said before anything is fetched or built."""
    env = {"DOCKER_CONFIG": modern.env["DOCKER_CONFIG"], "DOCKER_CONTEXT": "nowhere"}
    argv = ("image", bench.lock, "--engine", "docker")
    _, err = bench.run(*argv, status=HostError.exit_code, env=env)
    assert "no Docker context 'nowhere'" in err
    _, err = bench.run(*argv, "--builder", "nobody", status=HostError.exit_code, env=modern.env)
    assert "--builder nobody" in err
    assert "docker buildx ls" in err


def small(folder: Path) -> None:
    """Write the context of an image whose files take no time: where it is built does not depend on them."""
    (folder / "Dockerfile").write_text("FROM scratch\nCOPY told /told\n")
    (folder / "told").write_text("by whom\n")


def build_small(bench: Bench, builder: str | None, env: Mapping[str, str], patch: pytest.MonkeyPatch) -> str:
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT"):
        patch.delenv(name, raising=False)
    for name, value in env.items():
        patch.setenv(name, value)
    engine = DockerEngine(quiet_host(), builder)
    engine.check(gpu=False)
    return engine.build(read_lock(bench.folder / bench.lock), small)


def images(site: Site) -> set[str]:
    return set(site.call("images", "--all", "--quiet", "--no-trunc").split())


def test_a_builder_by_the_name_of_the_context_in_use(
    bench: Bench, modern: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"DOCKER_CONFIG": modern.env["DOCKER_CONFIG"], "DOCKER_CONTEXT": "there"}
    assert build_small(bench, "there", env, monkeypatch) in images(modern)


def test_a_builder_that_is_another_docker(
    bench: Bench, modern: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is built there, in a store of its own, and kept here."""
    before = images(modern)
    with old_docker(tmp_path / "site") as here:
        env = {**here.env, "DOCKER_CONFIG": modern.env["DOCKER_CONFIG"]}
        digest = build_small(bench, "there", env, monkeypatch)
        assert images(here) == {digest}
        assert images(modern) == before
        tree = tree_of(f"docker:{digest}", quiet_host())
    assert tree.files["told"].content == hashlib.sha256(b"by whom\n").hexdigest()


def test_a_remote_buildkit(bench: Bench, modern: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of buildx's driver ``remote``. What is built there is the same image, bit for bit."""
    with serve_buildkit(modern.env["DOCKER_HOST"]) as address:
        modern.call("buildx", "create", "--name", "far", "--driver", "remote", address)
        far = build_small(bench, "far", modern.env, monkeypatch)
    assert build_small(bench, None, modern.env, monkeypatch) == far
    with pytest.raises(HostError, match="--builder far: it does not answer"):
        build_small(bench, "far", modern.env, monkeypatch)
