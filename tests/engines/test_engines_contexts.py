"""Which Docker: contexts, DOCKER_HOST, a builder elsewhere; and both image stores of Docker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from reprobuild.errors import HostError
from support.bench import NAME, Bench
from support.buildkit import serve_buildkit
from support.engines import Site, new_docker, old_docker

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
    """The same files under a digest of each build's own, which is said; what is loaded keeps its digest."""
    argv = ("image", bench.lock, "--engine", "docker", "--json")
    out, err = bench.run(*argv, env=classic.env)
    found = json.loads(out)
    assert (found["name"], found["report"]["verdict"]) == (NAME, "passed")
    assert "cannot rewrite time stamps" in err
    assert found["digest"] == classic.call("image", "inspect", "--format", "{{.Id}}", NAME).strip()
    bench.run("compare", f"oci:{NAME}", f"docker:{NAME}", env=classic.env)
    bench.run("check", f"docker:{NAME}", env=classic.env)
    bench.run("load", NAME, "--into", "docker", "--tag", "team/loaded:1", env=classic.env)
    manifest = json.loads((bench.home / "oci/blobs/sha256" / digest[7:]).read_bytes())
    identity = classic.call("image", "inspect", "--format", "{{.Id}}", "team/loaded:1").strip()
    assert identity == manifest["config"]["digest"]


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
    assert "there is no Docker context 'nowhere'" in err
    _, err = bench.run(*argv, "--builder", "nobody", status=HostError.exit_code, env=modern.env)
    assert "--builder nobody" in err
    assert "docker buildx ls" in err


def test_a_builder_by_the_name_of_the_context_in_use(bench: Bench, digest: str, modern: Site) -> None:
    env = {"DOCKER_CONFIG": modern.env["DOCKER_CONFIG"], "DOCKER_CONTEXT": "there"}
    argv = ("image", bench.lock, "--engine", "docker", "--builder", "there", "--tag", "team/there:1")
    bench.run(*argv, env=env)
    assert "team/there:1" in modern.names()


def test_a_builder_that_is_another_docker(bench: Bench, digest: str, modern: Site, tmp_path: Path) -> None:
    """It is built there, in a store of its own, and tested, named and kept here."""
    with old_docker(tmp_path / "site") as here:
        env = {**here.env, "DOCKER_CONFIG": modern.env["DOCKER_CONFIG"]}
        argv = ("image", bench.lock, "--engine", "docker", "--builder", "there", "--tag", "team/here:1")
        out, _ = bench.run(*argv, "--json", env=env)
        assert "team/here:1" in here.names()
        assert "team/here:1" not in modern.names()
        identity = here.call("image", "inspect", "--format", "{{.Id}}", "team/here:1").strip()
        assert json.loads(out)["digest"] == identity
        bench.run("compare", f"oci:{NAME}", "docker:team/here:1", env=here.env)


def test_a_remote_buildkit(bench: Bench, digest: str, modern: Site) -> None:
    """Of buildx's driver ``remote``. What is built there is the same image, bit for bit."""
    argv = ("image", bench.lock, "--engine", "docker", "--tag", "team/far:1", "--json")
    with serve_buildkit(modern.env["DOCKER_HOST"]) as address:
        modern.call("buildx", "create", "--name", "far", "--driver", "remote", address)
        out, _ = bench.run(*argv, "--builder", "far", env=modern.env)
    there, _ = bench.run(*argv, env=modern.env)
    assert json.loads(out)["digest"] == json.loads(there)["digest"]
    _, err = bench.run(*argv, "--builder", "far", status=HostError.exit_code, env=modern.env)
    assert "--builder far: it does not answer" in err
