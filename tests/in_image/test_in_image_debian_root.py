"""The program that brings a root into the form of the base layer, as a self-contained Dockerfile runs it."""

from __future__ import annotations

import io
import py_compile
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from reprobuild.in_image import debian_root
from reprobuild.layers.debian import normalise
from reprobuild.oci.file_tree import tree_digest
from reprobuild.oci.tar_writer import LayerWriter

HOST = [
    *("etc/hostname", "etc/machine-id", "etc/passwd-", "etc/subuid-", "run/lock/x", "tmp/x", "dev/null"),
    *("var/log/dpkg.log", "var/log/apt/history.log", "var/cache/ldconfig/aux-cache", "var/cache/apt/a.bin"),
    *(
        "var/cache/debconf/config.dat-old",
        "var/lib/dpkg/status-old",
        "var/lib/dpkg/lock",
        "var/lib/apt/lists/x",
    ),
]
SYSTEM = [
    *("etc/passwd", "etc/hosts", "var/lib/dpkg/status", "var/cache/debconf/config.dat", "usr/lib/tmp/x"),
    *("usr/bin/a b", "usr/share/n\u00e9w"),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root as dpkg leaves it."""
    folder = tmp_path / "root"
    for path in (*HOST, *SYSTEM, debian_root.SOURCES):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)
    (folder / "usr/bin/a b").chmod(0o4755)
    (folder / "bin").symlink_to("usr/bin")
    (folder / "broken").symlink_to("/nowhere")
    (folder / "usr/lib/second").hardlink_to(folder / "etc/passwd")
    source = tmp_path / "mod.py"
    source.write_text("VALUE = 1\n")
    stamp, checked = py_compile.PycInvalidationMode.TIMESTAMP, py_compile.PycInvalidationMode.CHECKED_HASH
    py_compile.compile(str(source), str(folder / "usr/lib/time.pyc"), invalidation_mode=stamp)
    py_compile.compile(str(source), str(folder / "usr/lib/hash.pyc"), invalidation_mode=checked)
    return folder


def digest_of_layer(root: Path) -> str:
    """What the embedded engine makes of the same root."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(root, ".")
    packed.seek(0)
    writer = LayerWriter(io.BytesIO())
    normalise(packed, writer)
    return tree_digest(record for record in writer.records if record.path != ".")


def run(root: Path, digest: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", debian_root.__file__, str(root), digest]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_makes_what_the_embedded_engine_makes(root: Path) -> None:
    done = run(root, digest_of_layer(root))
    assert (done.returncode, done.stderr) == (0, "")
    left = {str(path.relative_to(root)) for path in root.rglob("*")}
    assert left.isdisjoint(HOST)
    assert left >= {*SYSTEM, "tmp", "run", "dev", "var/log/apt"}


@pytest.mark.parametrize("change", ["content", "mode", "more", "link"])
def test_another_root_ends_the_build(root: Path, change: str) -> None:
    digest = digest_of_layer(root)
    match change:
        case "content":
            (root / "etc/hosts").write_text("other")
        case "mode":
            (root / "etc/hosts").chmod(0o600)
        case "more":
            (root / "etc/more").touch()
        case "link":
            (root / "broken").unlink()
            (root / "broken").symlink_to("/elsewhere")
    done = run(root, digest)
    assert done.returncode == 1
    assert "not the one of the lock" in done.stderr
    assert digest in done.stderr
