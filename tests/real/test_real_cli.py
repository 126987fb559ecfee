"""The main job with the real PyTorch and CUDA: the installed program, from an empty folder to an image."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.request.model import Request
from support.schemas import hold_to_schema

pytestmark = pytest.mark.slow

NAME = "reprobuild/torch:2.4.1-cu121-py311"
SPACE = 16e9  # at its peak it has 14.1 GB


class Machine:
    """A folder to work in and a home of its own, as on a machine that has never seen reprobuild."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = Path(sys.executable).with_name("reprobuild")
        self.env = {**os.environ, "REPROBUILD_HOME": str(folder / "home")}
        self.env.pop("COLUMNS", None)

    def run(self, *argv: str, status: int = 0) -> str:
        """Run reprobuild; return what it wrote to standard output."""
        done = subprocess.run(
            [self.program, *argv],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == status, f"{argv}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        hold_to_schema(argv, done.stdout)
        return done.stdout

    def lock(self) -> Path:
        return self.folder / "envs" / "pylock.torch-cu121.toml"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    for program in ("mmdebstrap", "crun", "skopeo"):
        needs(program)
    folder = tmp_path_factory.mktemp("cuda")
    free = shutil.disk_usage(folder).free
    if free < SPACE:
        pytest.fail(f"{folder} has {free / 1e9:.0f} GB free; the CUDA image needs {SPACE / 1e9:.0f}")
    try:
        yield Machine(folder)
    finally:
        shutil.rmtree(folder)


def rows(table: str) -> dict[str, str]:
    """Read a table of two columns back; lines that go on belong to the row above."""
    found: dict[str, str] = {}
    last = ""
    for line in table.splitlines():
        label, _, text = line.partition("  ")
        last = label or last
        found[last] = f"{found.get(last, '')} {text.strip()}".strip()
    return found


def test_from_nothing_to_an_image_and_away_again(machine: Machine) -> None:
    """One test, since each step needs the one before and the first takes minutes."""
    table = machine.run("image", "--cuda", "12.1")
    assert all(len(line) <= 80 for line in table.splitlines())
    row = rows(table)
    digest = row["digest"]
    assert row["image"] == NAME
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", digest)
    assert re.fullmatch(r"2\.\d GB", row["size"])
    versions = {key: row[key] for key in ("PyTorch", "CUDA", "cuDNN", "NCCL", "Debian")}
    assert versions == {
        "PyTorch": "2.4.1",
        "CUDA": "12.1.105",
        "cuDNN": "9.1.0.70",
        "NCCL": "2.20.5",
        "Debian": "bookworm",
    }
    assert row["Python"].startswith("3.11.")
    assert row["tested"].startswith("passed in ")
    assert row["checked"].startswith("on CPU: ")
    assert {"conv2d", "bmm", "bmm-sparse", "index-add", "control", "torch-seed"} <= set(
        row["checked"].removeprefix("on CPU: ").split(", ")
    )
    assert row["GPU"].startswith(("tested on ", "not tested: "))
    _is_listed(machine, digest)
    _runs(machine)
    _exports(machine, digest)
    _passes_again(machine, digest)
    _rebuilds_one_small_layer(machine, digest)
    _goes_away(machine)


def _is_listed(machine: Machine, digest: str) -> None:
    lock = machine.lock().read_text()
    assert Request.parse((machine.folder / "envs/torch-cu121.toml").read_text(), "x").cuda == "12.1"
    assert "@" not in re.sub(r"[^\n]*://", "", "\n".join(re.findall(r'url = "(.*)"', lock)))
    [image] = json.loads(machine.run("images", "--json"))
    assert (image["names"], image["digest"]) == ([NAME], digest)
    assert image["labels"]["dev.reprobuild.torch"] == "2.4.1"
    assert machine.run("images").splitlines()[1].split()[:2] == [NAME, digest[7:19]]
    machine.run("lock", "--check")


def _runs(machine: Machine) -> None:
    said = machine.run(
        *(
            "run",
            "--no-network",
            "-e",
            "HELLO=there",
            "-v",
            f"{machine.folder / 'envs'}:/envs:ro",
            NAME,
            "--",
        ),
        *("python3", "-c"),
        "import os, torch;"
        " print(torch.__version__, torch.version.cuda, os.environ['HELLO'], os.listdir('/envs'),"
        " torch.are_deterministic_algorithms_enabled())",
    )
    assert said.startswith("2.4.1+cu121 12.1 there [")
    assert said.rstrip().endswith("True")
    assert machine.run("run", NAME, "sh", "-c", "exit 3", status=3) == ""


def _exports(machine: Machine, digest: str) -> None:
    said = machine.run("export", NAME, "torch.tar")
    assert NAME in said
    assert digest in said
    found = subprocess.run(
        ["skopeo", "inspect", "oci-archive:torch.tar"], cwd=machine.folder, capture_output=True, check=True
    )
    facts = json.loads(found.stdout)
    assert facts["Digest"] == digest
    assert facts["Labels"]["dev.reprobuild.cudnn"] == "9.1.0.70"
    (machine.folder / "torch.tar").unlink()


def _passes_again(machine: Machine, digest: str) -> None:
    report = json.loads(machine.run("selftest", digest[7:19], "--gpu", "off", "--json"))
    assert (report["image"], report["verdict"]) == (digest, "passed")
    [control] = [check for check in report["checks"] if check["name"] == "control"]
    assert control["status"] == "passed"
    assert report["gpu"] == {"tested": False, "reason": "turned off by --gpu off"}


def _rebuilds_one_small_layer(machine: Machine, digest: str) -> None:
    before = _layers(machine, digest)
    request = machine.folder / "envs/torch-cu121.toml"
    text = request.read_text()
    assert text.count('"numpy<2",') == 1
    request.write_text(text.replace('"numpy<2",', '"numpy<2", "humanize",'))
    machine.run("image", "--cuda", "12.1", status=4)  # the lock is for another request
    machine.run("lock", "torch-cu121")
    made = json.loads(machine.run("image", "--cuda", "12.1", "--tag", "team/changed:1", "--json"))
    assert made["name"] == "team/changed:1"
    after = _layers(machine, made["digest"])
    assert made["digest"] != digest
    # The group with the new package, and reprobuild's own files, among them the lock.
    assert len(after.keys() - before.keys()) <= 3
    assert sum(size for layer, size in after.items() if layer not in before) < 100e6


def _layers(machine: Machine, digest: str) -> dict[str, int]:
    manifest = json.loads((machine.folder / "home/oci/blobs/sha256" / digest[7:]).read_bytes())
    return {layer["digest"]: layer["size"] for layer in manifest["layers"]}


def _goes_away(machine: Machine) -> None:
    machine.run("remove", NAME, "team/changed:1")
    freed = json.loads(machine.run("clean", "--json"))["freed"]
    assert freed > 5e9
    assert json.loads(machine.run("images", "--json")) == []
    assert machine.run("run", NAME, "--", "true", status=10) == ""
    left = sum(f.lstat().st_size for f in (machine.folder / "home").rglob("*") if f.is_file())
    assert left < 100e6
