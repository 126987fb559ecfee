"""GPUs through Docker and Podman, with stand-ins for NVIDIA's devices, driver and hook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reprobuild.engines import podman_twice
from reprobuild.engines.docker import DockerEngine
from reprobuild.engines.gpu import KIND, GpuAccess
from reprobuild.engines.podman import PodmanEngine
from reprobuild.errors import HostError
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.host.sandbox import Bind, Device
from support.engines import Site, needs_root, new_docker, podman

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.engines

SHOW = (
    "head -c 1 /dev/nvidia0 | od -An -tu1; cat /driver.txt; echo $GIVEN; (echo x >> /driver.txt) 2>&-; exit 3"
)
"""Reads the stand-in device, which is /dev/zero, and the stand-in library; writes to neither."""


def specification(folder: Path) -> dict[str, Any]:
    """A CDI file, as `nvidia-ctk cdi generate` makes them, whose device is /dev/zero."""
    (folder / "driver.txt").write_text("the driver\n")
    mount = {
        "hostPath": str(folder / "driver.txt"),
        "containerPath": "/driver.txt",
        "options": ["ro", "bind"],
    }
    node = {"path": "/dev/nvidia0", "hostPath": "/dev/zero", "type": "c", "major": 1, "minor": 5}
    return {
        "cdiVersion": "0.5.0",
        "kind": KIND,
        "devices": [{"name": "all", "containerEdits": {"deviceNodes": [node]}}],
        "containerEdits": {"mounts": [mount], "env": ["GIVEN=by CDI"]},
    }


def small_image(site: Site, root: Path, folder: Path) -> str:
    """A Debian with a shell; return its digest."""
    archive = folder / "small.tar"
    folders = ("bin", "lib", "lib64", "usr/bin", "usr/lib", "usr/lib64")
    subprocess.run(["tar", "-C", root, "-cf", archive, *folders], check=True)
    site.call("import", str(archive), "small:1")
    archive.unlink()
    return "sha256:" + site.call("image", "inspect", "--format", "{{.Id}}", "small:1").strip().removeprefix(
        "sha256:"
    )


def docker_engine(site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch) -> DockerEngine:
    for name, value in site.env.items():
        monkeypatch.setenv(name, value)
    return DockerEngine(Host(Home(folder / "home"), Console(quiet=True)))


def test_docker_hands_gpus_in_by_cdi(debian13: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with new_docker(tmp_path / "site", debian13) as site:
        image = small_image(site, debian13, tmp_path)
        engine = docker_engine(site, tmp_path, monkeypatch)
        with pytest.raises(HostError, match="no nvidia runtime, and no CDI file"):
            engine.check(gpu=True)
        shared = tmp_path / "site/shared"
        (shared / "nvidia.json").write_text(json.dumps(specification(shared)))
        engine.check(gpu=True)
        done = engine.runner(image).run(["/bin/sh", "-c", SHOW], timeout=60, gpu=True)
        assert (done.returncode, done.stdout.decode().split("\n")) == (
            3,
            ["   0", "the driver", "by CDI", ""],
        )
        done = engine.runner(image).run(["/bin/sh", "-c", "ls /dev/nvidia0"], timeout=60, gpu=False)
        assert done.returncode != 0, "only who asks gets it"


# What dockerd calls in place of NVIDIA's hook, before the program starts: it is told of the container on its
# standard input, and finds there which GPUs were asked for.
HOOK = """#!/bin/sh
cat > /mnt/run/hook.$1
bundle=$(sed -n 's/.*"bundle":"\\([^"]*\\)".*/\\1/p' /mnt/run/hook.$1)
cp "$bundle/config.json" /mnt/run/config.json
"""


def test_docker_hands_gpus_in_by_nvidia_s_runtime(
    debian13: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``docker run --gpus all`` does: the daemon asks for all GPUs and calls the hook."""
    hook = debian13 / "usr/bin/nvidia-container-runtime-hook"
    hook.write_text(HOOK)
    hook.chmod(0o755)
    try:
        runtimes = {"runtimes": {"nvidia": {"path": "runc"}}}
        with new_docker(tmp_path / "site", debian13, settings=runtimes) as site:
            image = small_image(site, debian13, tmp_path)
            engine = docker_engine(site, tmp_path, monkeypatch)
            engine.check(gpu=True)
            done = engine.runner(image).run(["/bin/sh", "-c", "exit 3"], timeout=60, gpu=True)
            assert done.returncode == 3, done
            config = json.loads((tmp_path / "site/run/config.json").read_text())
    finally:
        hook.unlink()
    assert "NVIDIA_VISIBLE_DEVICES=all" in config["process"]["env"]
    assert config["root"]["readonly"] is True
    assert not any(config["process"]["capabilities"].get("effective", []))


# Podman looks into /etc/cdi alone: in a mount namespace this process has another one.
_WITH_CDI = 'mount -t overlay overlay -o "lowerdir=/etc,upperdir=$0/up,workdir=$0/work" /etc && exec "$@"'
_RUN = """
import json, sys
from pathlib import Path
from reprobuild.engines.podman import PodmanEngine
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
engine = PodmanEngine(Host(Home(Path(sys.argv[1])), Console(quiet=True)))
engine.check(gpu=True)
done = engine.runner(sys.argv[2]).run(["/bin/sh", "-c", sys.argv[3]], timeout=60, gpu=True)
print(json.dumps([done.returncode, done.stdout.decode(), done.stderr.decode()]))
"""


def test_podman_hands_gpus_in_by_cdi(debian13: Path, tmp_path: Path) -> None:
    needs_root()
    with podman(tmp_path / "site") as site:
        image = small_image(site, debian13, tmp_path)
        for name in ("etc/up/cdi", "etc/work"):
            (tmp_path / name).mkdir(parents=True)
        (tmp_path / "etc/up/cdi/nvidia.json").write_text(json.dumps(specification(tmp_path)))
        command = ["unshare", "--mount", "sh", "-c", _WITH_CDI, str(tmp_path / "etc")]
        command += [sys.executable, "-c", _RUN, str(tmp_path / "home"), image, SHOW]
        env = {**os.environ, **site.env}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        status, out, _ = json.loads(done.stdout)
        assert (status, out.split("\n")) == (3, ["   0", "the driver", "by CDI", ""])


def test_podman_hands_gpus_in_without_cdi(
    debian13: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device nodes and the driver's libraries, as on a machine without NVIDIA's container toolkit."""
    (tmp_path / "driver.txt").write_text("the driver\n")
    access = GpuAccess(
        devices=[Device(path="/dev/nvidia0", source=Path("/dev/zero"))],
        binds=[Bind(source=tmp_path / "driver.txt", destination="/driver.txt")],
        env={"GIVEN": "by hand"},
    )
    monkeypatch.setattr(podman_twice, "gpu_access", lambda: access)
    with podman(tmp_path / "site") as site:
        image = small_image(site, debian13, tmp_path)
        for name, value in site.env.items():
            monkeypatch.setenv(name, value)
        engine = PodmanEngine(Host(Home(tmp_path / "home"), Console(quiet=True)))
        done = engine.runner(image).run(["/bin/sh", "-c", SHOW], timeout=60, gpu=True)
        assert (done.returncode, done.stdout.decode().split("\n")) == (
            3,
            ["   0", "the driver", "by hand", ""],
        )
