"""One contract for all engines, the same files, a self-test before the name, no name on a bad day.

The tests of one engine share an image, which the first of them builds.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import needs
from reprobuild.engines.protocols import Engine
from reprobuild.engines.select import choose, taker
from reprobuild.engines.transfer import send
from reprobuild.errors import (
    DifferenceError,
    EngineError,
    ImageError,
    RepeatError,
    RequestError,
    ResolveError,
    SelfTestError,
)
from reprobuild.fetch.debian_mirrors import mirrors
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.host.process import OUTPUT_LIMIT
from reprobuild.oci.store import ImageStore
from reprobuild.pipeline.steps import make_image
from reprobuild.pipeline.workspace import read_lock
from reprobuild.verify.find import tree_of
from support import ranks
from support.bench import NAME, Bench
from support.engines import ENGINES, Site, running
from support.forwarding import forwarded
from support.locks import LOCK
from support.proxy import relayed, serve_proxy
from support.server import serve
from support.small_root import small_image
from support.wheels import simple_wheel, write_wheel

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.engines

PACKAGES = "/opt/venv/lib/python3.11/site-packages"
FORKS = """
import os, time
count = 0
try:
    while count < 40:
        if os.fork() == 0:
            time.sleep(60)
        count += 1
except BlockingIOError:
    pass
print(count)
"""


@pytest.fixture(scope="module", params=ENGINES)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    yield from running(request, tmp_path_factory.mktemp("engine") / "site")


@pytest.fixture(scope="module")
def built(bench: Bench, digest: str, site: Site) -> dict[str, Any]:
    return build(bench, site)


def build(bench: Bench, site: Site, *options: str) -> dict[str, Any]:
    argv = ("image", bench.lock, "--engine", site.kind, "--independent", "--json", *options)
    out, _ = bench.run(*argv, env=site.env)
    found: dict[str, Any] = json.loads(out)
    return found


def engine_build(site: Site, folder: Path, *options: str, status: int = 0) -> str:
    """Build a folder with the engine's own command; return what it said."""
    argv = [site.kind, "build", "--network", "none", *options, str(folder)]
    env = {**os.environ, **site.env, "DOCKER_BUILDKIT": "1" if site.keeps_time else "0"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (status == 0), done.stdout + done.stderr
    return done.stdout + done.stderr


def derive(site: Site, folder: Path, tag: str, text: str, *, status: int = 0, base: str = NAME) -> str:
    """Build an image that starts from ours."""
    (folder / "Dockerfile").write_text(f"FROM {base}\n{text}")
    return engine_build(site, folder, "--tag", tag, status=status)


def test_it_is_tested_and_named_in_the_engine_s_own_list(site: Site, built: dict[str, Any]) -> None:
    assert (built["engine"], built["name"], built["report"]["verdict"]) == (site.kind, NAME, "passed")
    assert built["built_by"] == site.kind
    assert NAME in site.names()
    identity = site.call("image", "inspect", "--format", "{{.Id}}", NAME).strip()
    assert built["digest"] == f"sha256:{identity.removeprefix('sha256:')}"


def test_it_has_the_same_files_and_settings(bench: Bench, site: Site, built: dict[str, Any]) -> None:
    the_same_tree(bench, site, NAME)


def the_same_tree(bench: Bench, site: Site, name: str) -> None:
    out, err = bench.run("compare", f"oci:{NAME}", f"{site.kind}:{name}", "--json", env=site.env)
    found = json.loads(out)
    assert found["differences"] == []
    assert len({image["tree"] for image in found["images"]}) == 1
    # All keep their layers on this disk.
    assert found["not_read"] == []
    assert "/etc/resolv.conf" not in err


def test_a_daemon_whose_disk_is_elsewhere(bench: Bench, site: Site, built: dict[str, Any]) -> None:
    """Read out of a container, in which some paths are Docker's own: they are named, all else is the same."""
    if site.kind != "docker":
        pytest.skip("Podman has no daemon")
    with forwarded(Path(site.env["DOCKER_HOST"].removeprefix("unix://"))) as address:
        env = {**site.env, "DOCKER_HOST": f"tcp://{address}"}
        out, err = bench.run("compare", f"oci:{NAME}", f"docker:{NAME}", "--json", env=env)
    found = json.loads(out)
    assert found["differences"] == []
    assert len({image["tree"] for image in found["images"]}) == 1
    assert "etc/resolv.conf" in found["not_read"]
    assert "/etc/resolv.conf" in err


@pytest.mark.parametrize("site", ["docker-26.1"], indirect=True)
def test_a_second_build_gives_the_same_digest(bench: Bench, site: Site, built: dict[str, Any]) -> None:
    """For Podman and the older Docker, test_real_base_image has a smaller image to show it with."""
    site.call("buildx", "prune", "--all", "--force")
    assert build(bench, site)["digest"] == built["digest"]


def test_a_team_s_image(bench: Bench, site: Site, built: dict[str, Any], tmp_path: Path) -> None:
    """It inherits everything; what pip adds is no departure, and an own entry point is no matter."""
    context = shutil.copytree(Path(__file__).parents[1] / "team", tmp_path / "team")
    (context / "wheels").mkdir()
    write_wheel(context / "wheels", "humanise", "1.0", simple_wheel("humanise"))
    engine_build(site, context, "--build-arg", f"BASE={NAME}", "--tag", "team/app:1")
    assert site.call("run", "--rm", "--network", "none", "team/app:1") == "humanise True True\n"
    text = 'COPY tini /sbin/\nENTRYPOINT ["tini", "-g", "--"]\n'
    derive(site, debian_s_tini(tmp_path).parent, "team/init:1", text, base="team/app:1")
    assert site.call("run", "--rm", "--network", "none", "team/init:1", "echo", "so") == "so\n"
    out, _ = bench.run("check", f"{site.kind}:team/init:1", "--json", env=site.env)
    found = json.loads(out)
    assert (found["differences"], found["report"]["verdict"]) == ([], "passed")


def debian_s_tini(folder: Path) -> Path:
    """Return the program of Debian's package, alone in a folder."""
    subprocess.run(["apt-get", "download", "--quiet", "tini"], cwd=folder, check=True, capture_output=True)
    (package,) = folder.glob("tini_*.deb")
    subprocess.run(["dpkg-deb", "--extract", package, folder / "deb"], check=True)
    return folder / "deb/usr/bin/tini"


def page_s_dockerfile(number: int, folder: Path) -> Path:
    """Write a Dockerfile of docs/team-images.md as it stands there; return its folder."""
    page = Path(__file__).parents[2] / "docs/team-images.md"
    folder.mkdir()
    text = re.findall(r"```dockerfile\n(.*?)```", page.read_text(), re.DOTALL)[number]
    (folder / "Dockerfile").write_text(text)
    return folder


# Podman alone: it reads the syntax of BuildKit, and one engine is enough to show what a page says.
@pytest.mark.parametrize("site", ["podman"], indirect=True)
def test_the_dockerfiles_of_the_page_on_team_images(
    site: Site, bench: Bench, built: dict[str, Any], tmp_path: Path
) -> None:
    """Behind a proxy with a login and its own CA; with apt, an ordinary user, and a second environment."""
    (main,) = {mirror.url.removesuffix("/debian") for mirror in mirrors("bookworm")["debian"][:1]}
    folder = page_s_dockerfile(0, tmp_path / "team")
    write_wheel(tmp_path, "humanise", "1.0", simple_wheel("humanise"))
    wheel = next(tmp_path.glob("humanise-*.whl"))
    with (
        serve() as server,
        relayed(main) as mirror,
        serve_proxy(
            tmp_path, {"index.example": server.url, "mirror.example": mirror}, login="me:secret"
        ) as proxy,
    ):
        server.add(f"/{wheel.name}", wheel.read_bytes())
        server.add(
            "/humanise/", f'<a href="/{wheel.name}">{wheel.name}</a>'.encode(), content_type="text/html"
        )
        arguments = ["--build-arg", f"BASE={NAME}", "--build-arg", "PACKAGES=humanise"]
        arguments += ["--env", "PIP_INDEX_URL=https://index.example"]
        arguments += ["--build-arg", f"HTTPS_PROXY={proxy.url}", "--build-arg", f"https_proxy={proxy.url}"]
        arguments += ["--secret", f"id=ca,src={proxy.ca}", "--network", "host"]
        engine_build(site, folder, *arguments, "--tag", "team/page:1")
        assert proxy.hosts == {"index.example", "mirror.example"}
    run = ("run", "--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp")
    assert site.call(*run, "team/page:1").startswith("2.")
    code = "import humanise, os, torch; print(os.getuid(), torch.are_deterministic_algorithms_enabled())"
    assert site.call(*run, "--entrypoint", "more/bin/python", "team/page:1", "-c", code) == "1000 True\n"
    assert site.call(*run, "--entrypoint", "jq", "team/page:1", "--version").startswith("jq-")
    assert site.call(*run, "--entrypoint", "ls", "team/page:1", "-A", "/run/secrets") == ""
    out, _ = bench.run("check", "podman:team/page:1", "--json", env=site.env)
    found = json.loads(out)
    assert (found["differences"], found["report"]["verdict"]) == ([], "passed")

    stages = page_s_dockerfile(1, tmp_path / "stages")
    package = stages / "package"
    package.mkdir()
    write_wheel(package, "ours", "1.0", simple_wheel("ours"))
    system = '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n'
    (package / "pyproject.toml").write_text(system)
    name = next(package.glob("*.whl")).name
    build = (
        f"def build_wheel(folder, *_):\n    return __import__('shutil').copy({name!r}, folder) and {name!r}\n"
    )
    (package / "own.py").write_text(build)
    engine_build(site, stages, "--build-arg", f"BASE={NAME}", "--tag", "team/stages:1")
    site.call("run", "--rm", "--network", "none", "team/stages:1", "python3", "-c", "import ours")


def test_a_team_s_image_is_taken_over(
    bench: Bench, site: Site, built: dict[str, Any], tmp_path: Path
) -> None:
    """With what pip has put on top; and what no index has, or did not come from one, is named."""
    for name in ("humanise", "homemade", "local"):
        write_wheel(tmp_path, name, "1.0", simple_wheel(name))
    install = "COPY *.whl /w/\nRUN pip install --no-index"
    again = ("--name", "again")
    derive(site, tmp_path, "team/extra:1", f"{install} --find-links /w humanise\n")
    bench.run("lock", "--from-image", f"{site.kind}:team/extra:1", *again, env=site.env)
    found = read_lock(bench.folder / "envs/pylock.again.toml")
    assert found.version_of("humanise") == "1.0"
    locked = read_lock(bench.folder / bench.lock)
    assert found.distributions.items() >= locked.distributions.items()
    for name in ("again.toml", "pylock.again.toml"):
        (bench.folder / "envs" / name).unlink()
    derive(site, tmp_path, "team/homemade:1", f"{install} --find-links /w homemade\n")
    argv = ("lock", "--from-image", f"{site.kind}:team/homemade:1", *again)
    _, err = bench.run(*argv, status=ResolveError.exit_code, env=site.env)
    assert "homemade was not found" in err
    derive(site, tmp_path, "team/local:1", f"{install} /w/local-1.0-py3-none-any.whl\n")
    argv = ("lock", "--from-image", f"{site.kind}:team/local:1", *again)
    _, err = bench.run(*argv, status=RequestError.exit_code, env=site.env)
    assert "installed from an address or a folder, not from an index: local 1.0" in err
    assert not (bench.folder / "envs/again.toml").exists()


@pytest.mark.parametrize("package", ["torch", "numpy"])
def test_a_team_cannot_swap_a_locked_package_unseen(
    bench: Bench, site: Site, built: dict[str, Any], tmp_path: Path, package: str
) -> None:
    write_wheel(tmp_path, package, "1.0", simple_wheel(package))
    text = f"COPY *.whl /w/\nRUN pip install --no-index --find-links /w {package}==1.0\n"
    said = derive(site, tmp_path, "team/swapped:1", text, status=1)
    assert "The user requested (constraint)" in said
    assert package in said
    assert "team/swapped:1" not in site.names()


def test_a_team_s_image_that_departs_from_the_lock(
    bench: Bench, site: Site, built: dict[str, Any], tmp_path: Path
) -> None:
    text = f"RUN echo >> {PACKAGES}/torch/version.py && chmod 600 {PACKAGES}/numpy/version.py"
    text += f" && rm {PACKAGES}/mpmath/rational.py && touch /opt/libcudart.so.12\nENV OMP_NUM_THREADS=2\n"
    with debian_s_tini(tmp_path).open("ab") as tini:
        tini.write(b"x")
    text += 'COPY deb/usr/bin/tini /sbin/\nENTRYPOINT ["tini", "--"]\n'
    derive(site, tmp_path, "team/bad:1", text)
    out, err = bench.run(
        "check", f"{site.kind}:team/bad:1", "--json", status=DifferenceError.exit_code, env=site.env
    )
    found = {(each["path"], each["kind"]) for each in json.loads(out)["differences"]}
    assert found == {
        (f"{PACKAGES}/torch/version.py", "content"),
        (f"{PACKAGES}/numpy/version.py", "mode"),
        (f"{PACKAGES}/mpmath/rational.py", "missing"),
        ("/opt/libcudart.so.12", "second copy"),
        ("Env OMP_NUM_THREADS", "setting"),
        ("Entrypoint", "runs at start"),
    }
    assert "6 places" in err


def test_a_team_s_image_that_rewrites_the_manifest(
    bench: Bench, site: Site, built: dict[str, Any], tmp_path: Path
) -> None:
    """Held against the base in the embedded store; where that is empty, against the base in the engine."""
    file = f"{PACKAGES}/torch/version.py"
    change = f"RUN old=$(sha256sum {file} | cut -c1-64) && echo >> {file}"
    change += f" && new=$(sha256sum {file} | cut -c1-64)"
    derive(site, tmp_path, "team/sly:1", f"{change} && sed -i s/$old/$new/ /opt/reprobuild/manifest.tsv\n")
    for home in (bench.home, tmp_path / "home"):
        env = {**site.env, "REPROBUILD_HOME": str(home)}
        argv = ("check", f"{site.kind}:team/sly:1", "--json")
        out, err = bench.run(*argv, status=DifferenceError.exit_code, env=env)
        paths = [each["path"] for each in json.loads(out)["differences"]]
        assert paths == ["/opt/reprobuild/manifest.tsv", file]
        assert f"of {'oci' if home == bench.home else site.kind}" in err


def test_a_team_s_image_that_brings_its_own_judge(
    bench: Bench, site: Site, built: dict[str, Any], tmp_path: Path
) -> None:
    """It prints the last good report; it is named, and nothing of the image is run."""
    (tmp_path / "report.json").write_text(json.dumps(built["report"]))
    (tmp_path / "selftest.py").write_text(
        "import pathlib; print(pathlib.Path(__file__).with_name('report.json').read_text())"
    )
    text = "COPY report.json selftest.py /opt/reprobuild/\nENV PYTHONPATH=/app\nRUN mkdir /app"
    derive(site, tmp_path, "team/judge:1", f"{text} && touch /app/sitecustomize.py\n")
    argv = ("check", f"{site.kind}:team/judge:1", "--json")
    out, err = bench.run(*argv, status=DifferenceError.exit_code, env=site.env)
    found = {(each["path"], each["kind"]) for each in json.loads(out)["differences"]}
    # Debian's Python has a sitecustomize of its own, which this one shadows.
    planted = {("/app/sitecustomize.py", kind) for kind in ("runs at start", "shadows")}
    own = {("/opt/reprobuild/selftest.py", "content"), ("/opt/reprobuild/report.json", "added")}
    assert found == own | planted
    assert json.loads(out)["report"] is None
    assert "neither this reprobuild's" in err


def test_images_that_are_not_ours(bench: Bench, site: Site, built: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY Dockerfile /\n")
    engine_build(site, tmp_path, "--tag", "strange/image:1")
    _, err = bench.run("check", f"{site.kind}:strange/image:1", status=ImageError.exit_code, env=site.env)
    assert "not an image made by reprobuild" in err
    argv = ("image", bench.lock, "--engine", site.kind, "--tag", "strange/image:1")
    _, err = bench.run(*argv, status=EngineError.exit_code, env=site.env)
    assert "strange/image:1 already exists" in err
    bench.run("check", f"{site.kind}:no/such:1", status=ImageError.exit_code, env=site.env)


def test_loaded_images_keep_their_digest(bench: Bench, site: Site, built: dict[str, Any]) -> None:
    own = next(image for image in bench.images() if NAME in image["names"])
    out, _ = bench.run("load", NAME, "--into", site.kind, "--tag", "team/loaded:1", env=site.env)
    manifest = json.loads((bench.home / "oci/blobs/sha256" / own["digest"][7:]).read_bytes())
    identity = site.call("image", "inspect", "--format", "{{.Id}}", "team/loaded:1").strip()
    assert identity.removeprefix("sha256:") in (own["digest"][7:], manifest["config"]["digest"][7:])
    assert identity.removeprefix("sha256:") in out
    the_same_tree(bench, site, "team/loaded:1")
    bench.run("load", NAME, "--into", site.kind, "--tag", "team/loaded:1", env=site.env)
    # The engine's own image of that name has another digest, though the same files.
    _, err = bench.run("load", NAME, "--into", site.kind, status=EngineError.exit_code, env=site.env)
    assert "--force" in err
    assert site.call("image", "inspect", "--format", "{{.Id}}", NAME).strip() != identity


def test_layers_are_handed_over(bench: Bench, site: Site, built: dict[str, Any]) -> None:
    """The image is that of the embedded engine, tested by this one."""
    own = next(image for image in bench.images() if NAME in image["names"])
    argv = ("image", bench.lock, "--engine", site.kind, "--tag", "team/handed:1", "--json")
    out, _ = bench.run(*argv, env=site.env)
    found = json.loads(out)
    assert (found["engine"], found["built_by"], found["report"]["verdict"]) == (site.kind, "oci", "passed")
    manifest = json.loads((bench.home / "oci/blobs/sha256" / own["digest"][7:]).read_bytes())
    assert found["digest"] in (own["digest"], manifest["config"]["digest"])
    assert "team/handed:1" in site.names()


def test_only_the_layers_that_it_lacks_are_sent(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has come so is whole: the engine runs it, and writes all of it out again."""
    for name, value in site.env.items():
        monkeypatch.setenv(name, value)
    host = Host(Home(tmp_path / "home"), Console(quiet=True))
    engine, images, sent = taker(site.kind, host), ImageStore(host), list[int]()
    load, load_folder, known = engine.load, engine.load_folder, set[str]()

    def counted(archive: Iterator[bytes]) -> None:
        sent.append(0)

        def chunks() -> Iterator[bytes]:
            for chunk in archive:
                sent[-1] += len(chunk)
                yield chunk

        load(chunks())

    def only_new(layout: Path) -> None:
        """Leave out what an earlier folder held: an engine that reads it again fails."""
        assert load_folder is not None
        blobs = [path for path in layout.glob("blobs/sha256/*") if path.name not in known]
        folder = shutil.copytree(layout, tmp_path / f"folder{len(sent)}", ignore=lambda *_: ["blobs"])
        (folder / "blobs/sha256").mkdir(parents=True)
        for path in blobs:
            shutil.copy(path, folder / "blobs/sha256")
        sent.append(sum(path.stat().st_size for path in blobs))
        load_folder(folder)
        known.update(path.name for path in blobs)

    monkeypatch.setattr(engine, "load", counted)
    monkeypatch.setattr(type(engine), "pulled", None)  # test_engines_loopback_registry.py has what is pulled
    if load_folder is not None:
        monkeypatch.setattr(type(engine), "load_folder", staticmethod(only_new))
    for which in ("one", "two"):
        image = images.find(small_image(host.home, LOCK, **{"etc/which": which.encode()}))
        there = send(images, image, engine)
        assert engine.images.find(there).names == (), "nothing has named it yet"
        run = ("run", "--rm", "--network", "none", there.removeprefix("sha256:"), "cat", "/etc/which")
        assert site.call(*run) == which
        archive = tmp_path / f"{which}.tar"
        form = ("--format", "oci-archive") if site.kind == "podman" else ()
        engine.images.name(there, f"team/{which}:1")
        site.call("save", *form, "--output", str(archive), f"team/{which}:1")
        assert tree_of(str(archive), host).digest == tree_of(f"oci:{image.digest}", host).digest
    assert sent[1] < sent[0] / 10
    assert send(images, image, engine) == there
    assert len(sent) == 2


def engine_of(bench: Bench, site: Site, monkeypatch: pytest.MonkeyPatch) -> tuple[Engine, Host]:
    for name, value in site.env.items():
        monkeypatch.setenv(name, value)
    host = Host(Home(bench.home), Console(quiet=True))
    return choose(site.kind, host), host


def test_an_image_that_fails_its_test_gets_no_name(
    bench: Bench, site: Site, built: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build gives an image whose import hook a last layer takes away; all else is as ever."""
    derive(site, tmp_path, "team/hookless:1", f"RUN echo > {PACKAGES}/reprobuild.pth\n")
    engine, host = engine_of(bench, site, monkeypatch)
    monkeypatch.setattr(engine, "build", lambda *_: engine.images.find("team/hookless:1").digest)
    with pytest.raises(SelfTestError, match="setting-hook"):
        make_image(read_lock(bench.folder / bench.lock), "team/broken:1", "off", host, engine=engine)
    assert "team/broken:1" not in site.names()


def test_a_program_that_prints_for_ever_is_stopped(
    bench: Bench, site: Site, built: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, _ = engine_of(bench, site, monkeypatch)
    done = engine.runner(built["digest"]).run(["/usr/bin/yes"], timeout=120, gpu=False)
    assert done.returncode != 0
    assert b"stopped: it wrote more than" in done.stderr
    assert len(done.stdout) == OUTPUT_LIMIT


def test_a_file_is_read_without_running_anything(
    bench: Bench, site: Site, built: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, _ = engine_of(bench, site, monkeypatch)
    monkeypatch.setattr(engine, "runner", None)
    found = engine.images.file(built["digest"], "opt/reprobuild/pylock.toml")
    assert found == (bench.folder / bench.lock).read_bytes()
    for path in ("opt/reprobuild/none", "opt/reprobuild", "opt/none/x", "opt/venv/bin/python"):
        assert engine.images.file(built["digest"], path) is None


def test_the_engine_holds_the_self_test_to_the_limits(
    bench: Bench, site: Site, built: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what ran out of memory leaves nothing in the user's folder, where Podman's conmon would."""
    monkeypatch.chdir(tmp_path)
    engine, _ = engine_of(bench, site, monkeypatch)
    monkeypatch.setenv("REPROBUILD_MEMORY", "96M")
    monkeypatch.setenv("REPROBUILD_PROCESSES", "20")
    runner = engine.runner(built["digest"])
    eater = "x=x; while :; do x=$x$x$x$x; done"
    done = runner.run(["/bin/bash", "-c", f"{eater} & wait $!; echo $?"], timeout=120, gpu=False)
    assert done.stdout.split() == [b"137"] or done.returncode == 137
    done = runner.run(["/opt/venv/bin/python", "-c", FORKS], timeout=120, gpu=False)
    assert 0 < int(done.stdout) < 20
    assert list(tmp_path.iterdir()) == []


def bound(site: Site, tmp_path: Path, name: str) -> Path:
    """Make a folder that the engine can see: the other Docker sees nothing else of this machine, and so not
    what stands for a name that overlayfs's options cannot have."""
    hidden = site.kind == "docker" and site.keeps_time
    work = (
        Path(site.env["DOCKER_CONFIG"]).parent / "shared" / name.partition(",")[0]
        if hidden
        else tmp_path / name
    )
    work.mkdir()
    return work


TRAIN = """
import os, sys, time, torch
torch.manual_seed(0)
os.remove("old.txt")
open("/opt/note.txt", "w").write("outside of what is bound")
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    inputs = torch.full((3, 4), float(step))
    if sys.argv[1:] == ["clock"] and step == 2:
        inputs[0, 0] = time.time() % 100
    optimizer.zero_grad()
    model(inputs).pow(2).sum().backward()
    optimizer.step()
os.makedirs("out/deep")
torch.save(model.state_dict(), "out/deep/last.pt")
"""
SHUFFLED = """
seq 99 | sort -R > order.txt
python3 -c 'print(open("order.txt").read().split())'
"""


def test_a_program_is_run_twice_in_a_team_s_image(
    bench: Bench, site: Site, built: dict[str, Any], tmp_path: Path
) -> None:
    """Its entry point is left out; the bound folder stays as it is, and what each run wrote is compared."""
    derive(site, tmp_path, "team/twice:1", 'ENTRYPOINT ["false"]\nWORKDIR /opt\n')
    work = bound(site, tmp_path, "work, of mine")
    (work / "train.py").write_text(TRAIN)
    (work / "old.txt").write_text("old")
    binds = ("-v", f"{work}:/code", "-v", f"{work / 'train.py'}:/etc/train.py:ro")
    where = ("twice", "--json", "--no-network", *binds, "-w", "/code")
    image = f"{site.kind}:team/twice:1"
    same = json.loads(bench.run(*where, image, "--", "python3", "train.py", env=site.env)[0])
    # last.pt, note.txt, and that old.txt is gone
    assert same["line"] == "repeats bit for bit (2 runs, 4 steps, 0 lines of output, 3 files)"
    assert {path.name: path.is_file() for path in work.iterdir()} == {"old.txt": True, "train.py": True}
    # The experiments are the same in every engine (test_real_twice.py) but for one with a shell script.
    argv = (*where, "--experiments", "0", image, "--", "python3", "train.py", "clock")
    parts = json.loads(bench.run(*argv, status=RepeatError.exit_code, env=site.env)[0])
    assert parts["cause"]["text"] == "inputs[0, 0] = time.time() % 100"
    assert [end["what"] for end in parts["ends"]] == ["file /code/out/deep/last.pt"]
    (work / "shuffle.sh").write_text(SHUFFLED)
    drawn = json.loads(
        bench.run(*where, image, "--", "sh", "shuffle.sh", status=RepeatError.exit_code, env=site.env)[0]
    )
    [line] = [each["line"] for each in drawn["cause"]["from_outside"]]
    assert (drawn["cause"]["proven"], SHUFFLED.splitlines()[line - 1]) == (
        True,
        "seq 99 | sort -R > order.txt",
    )
    assert site.call("volume", "ls", "--quiet") == ""


def test_ranks_of_torchrun_find_each_other_without_a_network(
    bench: Bench, site: Site, built: dict[str, Any], tmp_path: Path
) -> None:
    work = bound(site, tmp_path, "ranks")
    (work / "ranks.py").write_text(ranks.RANKS)
    where = ("--json", "--no-network", "-v", f"{work}:/code", "-w", "/code", f"{site.kind}:{NAME}")
    found = json.loads(bench.run("twice", *where, "--", *ranks.TORCHRUN, env=site.env)[0])
    # In Docker, torchrun warns on standard error, with the time of day.
    assert found["verdict"] in ("repeats", "text"), found["line"]
    assert found["line"].endswith(ranks.COUNTED)
    assert any(note.startswith(ranks.NOTE) for note in found["notes"])


GOES_ON = """
import os, sys, torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
start = 0
if os.path.exists("last.pt"):
    start, weights, moments = torch.load("last.pt")
    model.load_state_dict(weights)
    if sys.argv[2:] != ["forget"]:
        optimizer.load_state_dict(moments)
for step in range(start, int(sys.argv[1])):
    optimizer.zero_grad()
    model(torch.full((3, 4), float(step))).pow(2).sum().backward()
    optimizer.step()
    torch.save((step + 1, model.state_dict(), optimizer.state_dict()), "last.pt")
"""


def test_a_program_that_stops_and_goes_on_in_one_container(
    bench: Bench, site: Site, built: dict[str, Any], tmp_path: Path
) -> None:
    """What it saved in the bound folder is there when it goes on, and not in the folder itself."""
    work = bound(site, tmp_path, "resumed")
    (work / "train.py").write_text(GOES_ON)
    where = ("--json", "--no-network", "-v", f"{work}:/code", "-w", "/code", f"{site.kind}:{NAME}")
    whole = ("--", "python3", "train.py", "4")
    found = json.loads(bench.run("twice", "--interrupt-at", "2", *where, *whole, env=site.env)[0])
    # It is killed in its second step, before it saves that.
    assert found["line"] == "resumes bit for bit (went on at step 1 of 4)"
    assert [path.name for path in work.iterdir()] == ["train.py"]
    if not site.keeps_time:
        return  # two commands are the same to one Docker as to the other
    two = ("--resume", "python3 train.py 2", "python3 train.py 4 forget")
    argv = ("twice", *two, *where, *whole)
    found = json.loads(bench.run(*argv, status=RepeatError.exit_code, env=site.env)[0])
    assert found["line"].startswith("loses optimizer state (went on at step 2 of 4)")
    assert [path.name for path in work.iterdir()] == ["train.py"]


def test_nothing_is_left_behind(site: Site, built: dict[str, Any]) -> None:
    for label in ("selftest", "read", "twice"):
        found = site.call("ps", "--all", "--quiet", "--filter", f"label=dev.reprobuild.{label}")
        assert found.split() == []
    if site.kind == "podman":
        assert json.loads(site.call("image", "mount", "--format", "json") or "[]") == []


def test_structure_of_base_and_derived(built: dict[str, Any], site: Site, tmp_path: Path) -> None:
    """container-structure-test, which speaks with Docker alone."""
    if site.kind != "docker":
        pytest.skip("container-structure-test drives Docker alone")
    program = Path(sys.executable).with_name("container-structure-test")
    if not program.exists():
        needs("container-structure-test")
    derive(site, tmp_path, "team/plain:1", "WORKDIR /app\n")
    rules = Path(__file__).with_name("structure.yaml")
    for image in (NAME, "team/plain:1"):
        command = [str(program), "test", "--image", image, "--config", str(rules)]
        done = subprocess.run(
            command, env={**os.environ, **site.env}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
