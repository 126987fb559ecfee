"""The smallest real image, built once for all processes and all stages of a run."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

import reprobuild
from support.artifacts import shared_folder
from support.bench import Bench

_PARTS = ("oci", "layers", "reports")


def build_once(bench: Bench, factory: pytest.TempPathFactory) -> str:
    """Build, test and tag in a bench's home that has no image; return the digest.

    The first caller does it all. Others, in this run or a later one with the same REPROBUILD_TEST_STORE, get
    its layers and its report, if the lock and every line of reprobuild are the same.
    """
    with shared_folder(factory) as shared:
        kept = shared / "built" / _inputs(bench)
        if kept.is_dir():
            for name in _PARTS:
                shutil.copytree(kept / name, bench.home / name, dirs_exist_ok=True)
            return bench.build()
        digest = bench.build()
        partial = shared / "built/partial"
        shutil.rmtree(partial.parent, ignore_errors=True)
        for name in _PARTS:
            shutil.copytree(bench.home / name, partial / name)
        partial.rename(kept)
        return digest


def _inputs(bench: Bench) -> str:
    found = hashlib.sha256((bench.folder / bench.lock).read_bytes())
    package = Path(reprobuild.__file__).parent
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            found.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return found.hexdigest()
