"""GPUs in Podman's containers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reprobuild.engines import podman_options
from reprobuild.engines.cdi import GpuAccess
from reprobuild.engines.podman import PodmanEngine
from reprobuild.engines.protocols import RunOptions
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.host.sandbox import Bind, Device
from support.engines import needs_root, podman
from support.gpu_daemons import SHOW, small_image, specification

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.engines


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
    monkeypatch.setattr(podman_options, "gpu_access", lambda: access)
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
        (folder := tmp_path / "run").mkdir()
        ran = engine.recorded(image, ["/bin/sh", "-c", SHOW], RunOptions(gpu=GpuAccess()))(folder, {}, None)
        assert (ran.status, ran.stdout) == (3, done.stdout), ran.stderr
