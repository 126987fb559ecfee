"""GPUs through Docker and Podman, with stand-ins for NVIDIA's devices, driver and hook."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reprobuild.cli import run_options
from reprobuild.cli.run_options import gpus_for
from reprobuild.engines.cdi import GpuAccess
from reprobuild.engines.docker import DockerEngine
from reprobuild.engines.protocols import RunOptions
from reprobuild.errors import HostError
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.verify.find import EngineImage
from support.engines import Site, new_docker
from support.gpu_daemons import SHOW, small_image, specification

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.engines


def docker_engine(site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch) -> DockerEngine:
    for name, value in site.env.items():
        monkeypatch.setenv(name, value)
    return DockerEngine(Host(Home(folder / "home"), Console(quiet=True)))


def test_docker_hands_gpus_in_by_cdi(debian13: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1a")
    with new_docker(tmp_path / "site", debian13) as site:
        image = small_image(site, debian13, tmp_path)
        engine = docker_engine(site, tmp_path, monkeypatch)
        with pytest.raises(HostError, match="no nvidia runtime, and no CDI file"):
            engine.check(gpu=True)
        # `twice` asks this Docker, whatever this machine has for reprobuild's own engine.
        monkeypatch.setattr(run_options, "gpu_access", GpuAccess)
        missing = gpus_for(EngineImage(engine, engine.images.find(image)))()
        assert missing == "this Docker has no nvidia runtime, and no CDI file for nvidia.com/gpu"
        shared = tmp_path / "site/shared"
        (shared / "nvidia.json").write_text(json.dumps(specification(shared)))
        engine.check(gpu=True)
        show = f"echo $CUDA_VISIBLE_DEVICES; {SHOW}"
        done = engine.runner(image).run(["/bin/sh", "-c", show], timeout=60, gpu=True)
        assert (done.returncode, done.stdout.decode().split("\n")) == (
            3,
            ["GPU-1a", "   0", "the driver", "by CDI", ""],
        )
        done = engine.runner(image).run(["/bin/sh", "-c", "ls /dev/nvidia0"], timeout=60, gpu=False)
        assert done.returncode != 0, "only who asks gets it"
        run = engine.recorded(image, ["/bin/sh", "-c", show], RunOptions(gpu=GpuAccess()))
        (folder := tmp_path / "run").mkdir()
        ran = run(folder, {}, None)
        assert (ran.status, ran.stdout.decode().split("\n")[0]) == (3, "GPU-1a"), ran.stderr
        assert "by CDI" in ran.stdout.decode()


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
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1a")
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
    # The hook hands all of them in; the program sees the one that the caller chose.
    assert {"NVIDIA_VISIBLE_DEVICES=all", "CUDA_VISIBLE_DEVICES=GPU-1a"} <= {*config["process"]["env"]}
    assert config["root"]["readonly"] is True
    assert not any(config["process"]["capabilities"].get("effective", []))
