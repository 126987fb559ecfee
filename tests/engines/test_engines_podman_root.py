from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.engines import Site, podman
from support.images import docker_archive, layer
from support.waiting import settles

pytestmark = pytest.mark.engines

READER = """
import sys
from reprobuild.engines.podman_root import opened_root
with opened_root("podman", sys.argv[1]) as tar:
    print(len(tar.read(512)), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with podman(tmp_path / "site") as site:
        yield site


def test_a_reader_that_is_killed_leaves_no_mount(site: Site, tmp_path: Path) -> None:
    archive = docker_archive(tmp_path / "a.tar", [layer("a", "b")], {}, "team/x:1")
    site.call("load", "--quiet", "-i", str(archive))

    def mounted() -> bool:
        return bool(json.loads(site.call("image", "mount", "--format", "json") or "[]"))

    reader = subprocess.Popen(
        [sys.executable, "-c", READER, "team/x:1"],
        env={**os.environ, **site.env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == b"512\n"
    assert mounted()
    reader.send_signal(signal.SIGKILL)
    reader.communicate()
    assert settles(lambda: not mounted(), within=20)
