"""A lock in other tools' forms."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from reprobuild.lock.exports import export
from reprobuild.lock.model import Lock
from support.index import Index
from support.locks import LOCK

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.family"]


def test_pip_installs_the_exported_requirements(family: Index, apt: None, call: Call, tmp_path: Path) -> None:
    assert call("lock", "--cuda", "12.1").status == 0
    assert call("convert", "torch-cu121", "--to", "requirements", "-o", "all.txt").status == 0
    Path("torch-only.txt").write_text(
        "\n".join(
            line
            for line in Path("all.txt").read_text().splitlines()
            if not line.startswith(("torch", "numpy", "nvidia"))
        )
    )
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--index-url", family.url, "--dest", str(tmp_path / "got")]
    subprocess.run([*command, "-r", "torch-only.txt"], check=True, capture_output=True)
    assert {p.name for p in (tmp_path / "got").iterdir()} == {
        "filelock-1.1-py3-none-any.whl", "pip-24.2-py3-none-any.whl"
    }  # fmt: skip
    bad = Path("torch-only.txt").read_text().replace("sha256:", "sha256:0")
    Path("torch-only.txt").write_text(bad)
    assert subprocess.run([*command, "-r", "torch-only.txt"], capture_output=True, check=False).returncode


def test_the_explicit_list_has_a_line_a_file() -> None:
    lines = export(LOCK, "explicit").splitlines()
    assert lines[0].startswith("# Every file of torch-cu121")
    assert len(lines) - 1 == len(LOCK.python) + len(LOCK.debian)
    torch = next(p.wheel for p in LOCK.python if p.name == "torch")
    assert f"{torch.url}#sha256:{torch.sha256}" in lines
    python = next(p for p in LOCK.debian if p.name == "python3.11")
    assert f"{python.archive}:{python.path}#sha256:{python.sha256}" in lines


def test_it_is_the_same_for_a_lock_that_lists_its_packages_in_another_order() -> None:
    mixed = Lock(
        request=LOCK.request, platform=LOCK.platform, epoch=LOCK.epoch, variables=LOCK.variables,
        python=LOCK.python[::-1], debian=LOCK.debian[::-1],
    )  # fmt: skip
    assert export(mixed, "cyclonedx") == export(LOCK, "cyclonedx")
