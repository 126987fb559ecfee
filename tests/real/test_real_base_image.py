"""Images on a base image: real Debian roots in a registry on loopback, and what is built on them is run.

The Debian packages, pip and NumPy are real ones; PyTorch is a toy, which has nothing to say to this.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import needs
from reprobuild.engines.embedded import OciEngine
from reprobuild.engines.protocols import RunOptions
from reprobuild.engines.select import choose
from reprobuild.fetch.scheduler import fetch
from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.host.sandbox import Bind
from reprobuild.lock.model import Lock
from reprobuild.lock.reader import parse_lock
from reprobuild.pipeline.steps import _fill
from reprobuild.render.dockerfile import render
from reprobuild.resolve.resolver import Upgrade, resolve
from reprobuild.verify.find import tree_of
from support.bases import Pusher
from support.engines import Kind, old_docker, podman
from support.hosts import quiet_host
from support.images import layer
from support.index import serve_index
from support.registry import serve_registry
from support.resolving import LINUX, request

if TYPE_CHECKING:
    from support.people import Person  # pytest itself imports the plugin

pytest_plugins = ["support.people"]
pytestmark = pytest.mark.engines

CONSOLE = Console(quiet=True)
PROGRAM = "import sys, numpy; print(sys.base_prefix, sys.version_info[:2], numpy.arange(3).sum())"


@dataclass(frozen=True)
class Bench:
    """A registry with bases in it, and an index with a toy torch."""

    pusher: Pusher
    home: Home
    root: bytes
    """The one layer of the base that has Python."""

    def lock(self, image: str, **keys: object) -> Lock:
        base = {"image": f"{self.pusher.name}:{image}"}
        wanted = request(cuda="cpu", torch="2.13.0", base=base, **keys)
        found = resolve(wanted, existing=None, upgrade=Upgrade(), host=quiet_host())
        assert parse_lock(found.dump(), "test") == found
        return found

    def build(self, lock: Lock) -> str:
        fetch(lock, Store(self.home), CONSOLE)
        return OciEngine(Host(self.home, CONSOLE)).build(lock, lambda _: None)

    def run(self, digest: str, folder: Path, *argv: str) -> str:
        """Run a command in an image; return what it writes."""
        line = '"$@" > /out/said 2>&1'
        status = OciEngine(Host(self.home, CONSOLE)).run(
            digest,
            ["/bin/sh", "-c", line, "sh", *argv],
            RunOptions(binds=[Bind(source=folder, destination="/out", writable=True)]),
        )
        said = (folder / "said").read_text()
        assert status == 0, said
        return said


def debian_root(folder: Path, include: Sequence[str]) -> bytes:
    """Return the tar of a small real Debian, as its users' bases are."""
    command = ["mmdebstrap", "--variant=apt", "--dpkgopt=path-exclude=/usr/share/doc/*"]
    archive = folder / "root.tar"
    every = [*command, *(f"--include={name}" for name in include), "bookworm", str(archive)]
    subprocess.run(every, check=True, capture_output=True)
    content = archive.read_bytes()
    archive.unlink()
    return content


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    for program in ("mmdebstrap", "crun", "docker-registry"):
        needs(program)
    folder = tmp_path_factory.mktemp("bases")
    with (
        serve_registry(folder / "registry") as host,
        serve_index() as index,
        pytest.MonkeyPatch.context() as patch,
    ):
        index.add("torch", "2.13.0+cpu", tag=LINUX, requires=["numpy"])
        patch.setenv("UV_INDEX", index.url)
        patch.setenv("REPROBUILD_HOME", str(folder / "home"))
        team = Pusher(host, "team/base")
        bare = debian_root(folder, [])
        # A later layer takes a file away, and a whole folder's files.
        team.image(
            [bare, layer("etc/.wh.issue", "etc/skel/", "etc/skel/.wh..wh..opq", "etc/team")], tag="bare"
        )
        python = debian_root(folder, ["python3"])
        team.image([python], tag="python", form="oci", Env=["PATH=/opt/bin:/usr/bin:/bin", "TEAM=us"])
        yield Bench(team, Home(folder / "home"), python)


def test_the_base_s_own_python(bench: Bench, tmp_path: Path) -> None:
    lock = bench.lock("python")
    assert lock.base is not None
    assert not lock.debian
    assert lock.base.python == "/usr/bin/python3.11"
    digest = bench.build(lock)
    assert bench.run(digest, tmp_path, "python3", "-c", PROGRAM) == "/usr (3, 11) 3\n"
    engine = OciEngine(Host(bench.home, CONSOLE))
    manifest = engine.images.manifest(digest)
    assert [y["digest"] for y in manifest["layers"]][:1] == [y.digest for y in lock.base.layers]
    assert manifest["annotations"]["org.opencontainers.image.base.digest"] in lock.base.manifests.values()
    env = engine.images.config(digest)["config"]["Env"]
    assert "TEAM=us" in env
    assert "PATH=/opt/venv/bin:/opt/bin:/usr/bin:/bin" in env
    assert bench.build(lock) == digest


def test_python_and_apt_packages_on_top(bench: Bench, tmp_path: Path) -> None:
    lock = bench.lock("bare", apt=["jq", "openssh-client"])
    assert lock.base is not None
    names = {package.name for package in lock.debian}
    assert {"python3.11", "libpython3.11-stdlib", "jq"} <= names
    assert not names & {"libc6", "bash", "apt"}
    digest = bench.build(lock)
    assert bench.run(digest, tmp_path, "python3", "-c", PROGRAM) == "/usr (3, 11) 3\n"
    assert bench.run(digest, tmp_path, "jq", "--null-input", "1 + 2") == "3\n"
    assert bench.run(digest, tmp_path, "dpkg", "--audit") == ""
    # What the base's own layers hide stays hidden, and the owners that packages ask for are theirs.
    said = bench.run(digest, tmp_path, "sh", "-c", "ls -A /etc/issue /etc/skel /etc/team 2>&1; true")
    assert said.splitlines()[-3:] == ["/etc/team", "", "/etc/skel:"]
    tree = tree_of(digest, Host(bench.home, CONSOLE))
    assert tree.files["usr/bin/ssh-agent"].owner.endswith(":0") is False
    assert "etc/issue" not in tree.files
    # In another home, with nothing kept, it is the same image.
    other = Home(tmp_path / "home")
    (tmp_path / "home").mkdir()
    (tmp_path / "home/store").symlink_to(bench.home.root / "store")
    assert OciEngine(Host(other, CONSOLE)).build(lock, lambda _: None) == digest


def test_the_manifest_tells_of_the_base_s_files_too(bench: Bench, tmp_path: Path) -> None:
    digest = bench.build(bench.lock("bare"))
    told = bench.run(digest, tmp_path, "cat", "/opt/reprobuild/manifest.tsv")
    program = Path(__file__).parents[2] / "src/reprobuild/in_image/manifest.py"
    (tmp_path / "manifest.py").write_bytes(program.read_bytes())
    found = bench.run(digest, tmp_path, "/usr/bin/python3.11", "-B", "/out/manifest.py", "/opt/venv", "/usr")
    assert found == told


def test_the_pin_stays_until_it_is_moved(bench: Bench) -> None:
    before = bench.lock("python")
    assert before.base is not None
    moved = bench.pusher.image([bench.root, layer("etc/newer")], tag="python", form="oci")
    try:
        again = resolve(before.request, existing=before, upgrade=Upgrade(), host=quiet_host())
        assert again == before
        image = before.request.base_image or ""
        newer = resolve(
            before.request, existing=before, upgrade=Upgrade(packages=(image,)), host=quiet_host()
        )
        assert newer.base is not None
        assert newer.base.manifests == {before.platform: moved}
    finally:
        bench.pusher.image([bench.root], tag="python", form="oci")


def test_an_ordinary_user_builds_the_same(
    bench: Bench, people: Callable[[str], Person], tmp_path: Path
) -> None:
    lock = bench.lock("bare", apt=["jq"])
    digest = bench.build(lock)
    person = people("user")
    home = person.folder / "base-home"
    hashes = [p.sha256 for p in lock.debian] + [p.wheel.sha256 for p in lock.python]
    hashes += [y.sha256 for y in lock.base.layers] if lock.base else []
    for sha256 in hashes:
        source = Store(bench.home).path(sha256)
        target = home / source.relative_to(bench.home.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    subprocess.run(["chown", "-R", f"{person.uid}:{person.gid}", home], check=True)
    (person.folder / "pylock.base.toml").write_text(lock.dump())
    (driver,) = [found for path in person.paths if (found := path / "support/build_once.py").exists()]
    command = person.python(driver, person.folder / "pylock.base.toml")
    env = {"REPROBUILD_HOME": str(home), "TEST_UMASK": "077"}
    with person.start(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out.decode()) == (0, digest), err.decode()


@pytest.mark.parametrize("kind", ["podman", "docker"])
def test_other_engines_make_the_same_files_from_the_dockerfile(
    bench: Bench,
    kind: Kind,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Podman gives the same digest again; the older Docker builds by its own BuildKit, and warns."""
    lock = bench.lock("bare", apt=["jq"])
    wanted = tree_of(bench.build(lock), Host(bench.home, CONSOLE))
    host = bench.pusher.name.partition("/")[0]
    plain = tmp_path / "registries.conf"
    plain.write_text(f'[[registry]]\nlocation = "{host}"\ninsecure = true\n')
    monkeypatch.setenv("CONTAINERS_REGISTRIES_CONF", str(plain))
    # Debian's own command, which has BuildKit build: the first one here may have none.
    monkeypatch.setenv("PATH", f"/usr/bin:{os.environ['PATH']}")
    with podman(tmp_path / kind) if kind == "podman" else old_docker(tmp_path / kind) as site:
        for name, value in site.env.items():
            monkeypatch.setenv(name, value)
        engine = choose(kind, Host(bench.home, CONSOLE))

        def build() -> str:
            return engine.build(
                lock, lambda folder: _fill(lock, render(lock), folder, Host(bench.home, CONSOLE))
            )

        digest = build()
        if kind == "podman":
            assert build() == digest
        else:
            assert "cannot rewrite time stamps" in capsys.readouterr().err
            assert "Build Cache 0" not in site.call("system", "df", "--format", "{{.Type}} {{.TotalCount}}")
        found = tree_of(f"{kind}:{digest}", Host(bench.home, CONSOLE))
    assert not found.unknown  # both keep their layers on this disk
    differ = {
        path: (wanted.files.get(path), found.files.get(path))
        for path in wanted.files.keys() | found.files.keys()
        if wanted.files.get(path) != found.files.get(path)
    }
    assert differ == {}
    assert wanted.digest == found.digest
