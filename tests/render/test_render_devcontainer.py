from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import GOLDEN
from reprobuild.errors import RenderError
from reprobuild.render.devcontainer import devcontainer
from support.bench import NAME, TORCH, Bench
from support.engines import old_docker
from support.locks import LOCK
from support.node import install, node
from support.registry import serve_registry

pytest_plugins = ["support.shared"]

IMAGE = "registry.example/team/torch@sha256:" + 64 * "a"


def test_it_is_golden_text(golden: Callable[[Path, bytes], None]) -> None:
    files = devcontainer(LOCK, IMAGE, b"a bundle")
    assert files[".devcontainer/ca-certificates.crt"] == b"a bundle"
    golden(GOLDEN / "devcontainer.json", files[".devcontainer/devcontainer.json"])


def test_an_image_that_nobody_else_has_is_refused() -> None:
    with pytest.raises(RenderError, match="not an image in a registry, named by its digest"):
        devcontainer(LOCK, "reprobuild/torch:2.4.1-cu121-py311")


@pytest.mark.engines
def test_the_devcontainer_command_starts_it_in_docker(bench: Bench, digest: str, tmp_path: Path) -> None:
    assert digest
    work, tool = tmp_path / "work", tmp_path / "tool"
    for folder in (work, tool):
        folder.mkdir()
    (work / "train.py").write_text(
        "import os, torch\nprint(torch.__version__, os.environ['PYTHONHASHSEED'])\n"
    )
    install("@devcontainers/cli@0.89.0", tool)
    program = str(tool / "node_modules/@devcontainers/cli/devcontainer.js")
    with serve_registry(tmp_path / "registry") as host, old_docker(tmp_path / "site") as site:
        bench.run("push", NAME, f"{host}/team/torch:1", "--compression", "gzip")
        bench.run("render", bench.lock, "-o", str(work), "--devcontainer")
        where = ("--workspace-folder", str(work))
        # The daemon of the tests has no network of its own to give.
        file = work / ".devcontainer/devcontainer.json"
        document = json.loads(file.read_text())
        file.write_text(json.dumps({**document, "runArgs": [*document["runArgs"], "--network=none"]}))
        env = dict(site.env)
        [up] = node("node", program, "up", *where, folder=work, env=env).splitlines()
        assert json.loads(up)["outcome"] == "success"
        said = node("node", program, "exec", *where, "python3", "train.py", folder=work, env=env)
        assert said.split() == [f"{TORCH}+cpu", "0"]
        said = node(
            "node", program, "exec", *where, "df", "--output=size", "-BG", "/dev/shm", folder=work, env=env
        )
        assert said.split()[-1] == "2G"
        site.call("rm", "--force", json.loads(up)["containerId"])
