"""Real container engines, started by the tests themselves: two ages of Docker, and Podman.

All of their state lies in a folder of the test's, and what is started ends with the block. As root only.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

import pytest

from conftest import needs

Kind = Literal["docker", "podman"]

# $1 a Debian root, $2 where its daemon keeps images, $3 where its socket goes, $4 a folder that has its own
# path inside too, for files that both sides read. It runs in a mount namespace of its own; dockerd takes a
# pivoted root, and no chroot ("remount /: invalid argument").
_PIVOT = """
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
for name in proc sys dev; do mount --rbind "/$name" "$1/$name"; done
mkdir -p "$1/var/lib/docker" "$1/mnt/run" "$1/mnt/old"
mount --bind "$2" "$1/var/lib/docker"
mount --bind "$3" "$1/mnt/run"
mount --mkdir --bind "$4" "$1$4"
cd "$1"
pivot_root . mnt/old
umount -l /mnt/old
mount -t tmpfs tmpfs /run
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
exec dockerd --bridge=none --iptables=false -H unix:///mnt/run/docker.sock
"""

# What an ordinary machine has and a container may lack: the right to raise limits, a crun that takes both
# versions of control groups at once.
_CONTAINERS = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""


@dataclass(frozen=True, kw_only=True)
class Site:
    """An engine that runs, and the variables by which its command finds it."""

    kind: Kind
    env: Mapping[str, str]
    keeps_time: bool = True
    """Whether it can give every build the same time stamps, and so the same digest."""
    process: subprocess.Popen[bytes] | None = None

    def call(self, *argv: str, status: int = 0) -> str:
        """Run the engine's own command; return what it wrote to standard output."""
        done = subprocess.run(
            [self.kind, *argv],
            env={**os.environ, **self.env},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == status, f"{self.kind} {argv}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def names(self) -> list[str]:
        """The names in the engine's own list of images, without a host."""
        found = self.call("images", "--format", "{{.Repository}}:{{.Tag}}").split()
        return sorted(name.removeprefix("localhost/") for name in found if "<none>" not in name)


def missing(reason: str) -> NoReturn:
    """Skip the test with a reason; fail it in CI."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def needs_root() -> None:
    """Skip the test when this is an ordinary user: the daemons of the tests are root's."""
    if os.geteuid() != 0:
        missing("starting a container engine for a test takes root")


ENGINES = ("docker-20.10", "docker-26.1", "podman")


def running(request: pytest.FixtureRequest, folder: Path) -> Iterator[Site]:
    """Run the engine that is the fixture's parameter, one of `ENGINES`; docker-26.1 is a fixture itself."""
    if request.param == "docker-26.1":
        yield request.getfixturevalue("docker26")
        return
    start = old_docker if request.param == "docker-20.10" else podman
    with start(folder) as site:
        yield site


@contextmanager
def old_docker(folder: Path) -> Iterator[Site]:
    """Docker 20.10 of Debian 12, whose builder is the old one."""
    needs_root()
    needs("dockerd")
    needs("docker")
    (folder / "config").mkdir(parents=True)
    (folder / "config/config.json").write_text("{}")
    # containerd's socket lies below, and the path of a socket has 107 characters at most; with a longer one
    # containerd does not answer, and says nothing of it.
    with tempfile.TemporaryDirectory(prefix="rb-", ignore_cleanup_errors=True) as short:
        socket = f"unix://{short}/docker.sock"
        command = ["dockerd", "--bridge=none", "--iptables=false", "-H", socket]
        command += ["--pidfile", f"{short}/pid", "--exec-root", f"{short}/exec"]
        command += ["--data-root", f"{folder}/data"]
        # The command of the same package: another one may stand before it, and build in another way.
        path = f"/usr/bin:{os.environ['PATH']}"
        env = {"DOCKER_HOST": socket, "DOCKER_CONFIG": str(folder / "config"), "PATH": path}
        with _daemon(command, env, folder) as process:
            yield Site(kind="docker", env=env, keeps_time=False, process=process)


@contextmanager
def new_docker(
    folder: Path, root: Path, *, containerd: bool = True, settings: Mapping[str, object] | None = None
) -> Iterator[Site]:
    """Docker 26.1 of Debian 13 with BuildKit, out of `debian13`; with containerd's image store, or not.

    ``folder/shared`` is where it looks for CDI specifications.
    """
    (root / "etc/docker").mkdir(parents=True, exist_ok=True)
    features = {"containerd-snapshotter": containerd, "cdi": True}
    shared = {"features": features, "cdi-spec-dirs": [str(folder / "shared")]}
    (root / "etc/docker/daemon.json").write_text(json.dumps({**shared, **(settings or {})}))
    for name in ("data", "run", "shared", "config/cli-plugins"):
        (folder / name).mkdir(parents=True)
    (folder / "config/config.json").write_text("{}")
    plugin = root / "usr/libexec/docker/cli-plugins/docker-buildx"
    (folder / "config/cli-plugins/docker-buildx").symlink_to(plugin)
    command = ["unshare", "--mount", "bash", "-c", _PIVOT, "-"]
    command += [str(root), str(folder / "data"), str(folder / "run"), str(folder / "shared")]
    env = {"DOCKER_HOST": f"unix://{folder}/run/docker.sock", "DOCKER_CONFIG": str(folder / "config")}
    with _daemon(command, env, folder) as process:
        yield Site(kind="docker", env=env, keeps_time=containerd, process=process)


@contextmanager
def podman(folder: Path) -> Iterator[Site]:
    """Podman, which needs no daemon, with images of its own."""
    needs_root()
    for program in ("podman", "runc"):
        needs(program)
    folder.mkdir()
    (folder / "containers.conf").write_text(_CONTAINERS)
    storage = f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/store"\nrunroot = "{folder}/run"\n'
    (folder / "storage.conf").write_text(storage)
    env = {
        "CONTAINERS_CONF": str(folder / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
    }
    site = Site(kind="podman", env=env)
    try:
        yield site
    finally:
        site.call("rmi", "--all", "--force")
        _unmount_below(folder)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _daemon(command: list[str], env: Mapping[str, str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    own = _mounts_below(folder)
    process = _started(command, env, folder / "log")
    try:
        yield process
    finally:
        _stop(process)
        _unmount_below(folder, but=own)
        for name in ("data", "exec", "run"):
            shutil.rmtree(folder / name, ignore_errors=True)


def _unmount_below(folder: Path, *, but: Collection[str] = ()) -> None:
    """Unmount what an engine that was killed left: pytest could not remove the folder in a later run.

    ``but``: mounts of the test's own.
    """
    for point in reversed(_mounts_below(folder)):
        if point not in but:
            subprocess.run(["umount", "-l", point], check=True)


def _mounts_below(folder: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split(" ")[4] for line in lines]
    return [each for each in points if Path(each).is_relative_to(folder)]


def _started(command: list[str], env: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    # containerd writes its databases through to the disk before it answers, and dockerd waits only so long:
    # too short while the gigabytes of an earlier test are on their way there.
    os.sync()
    for _ in range(3):
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out)
        try:
            if _answers(process, env):
                return process
        except BaseException:
            _stop(process)
            raise
        _stop(process)
    missing(f"dockerd does not start here: {log.read_text()[-600:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    # Asked, it ends its containers and containerd, which a kill would leave.
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _answers(process: subprocess.Popen[bytes], env: Mapping[str, str]) -> bool:
    surroundings = {**os.environ, **env}
    for _ in range(120):
        if process.poll() is not None:
            return False
        done = subprocess.run(["docker", "version"], env=surroundings, capture_output=True, check=False)
        if done.returncode == 0:
            return True
        time.sleep(0.5)
    return False
