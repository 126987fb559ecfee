"""Which GPUs a torch wheel has code for, read from the wheel on an index on loopback."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
import requests

from reprobuild.errors import ResolveError
from reprobuild.lock.model import Lock
from reprobuild.lock.reader import parse_lock
from reprobuild.resolve.gpu_targets import gpu_targets
from reprobuild.resolve.resolver import Upgrade, resolve
from support.hosts import quiet_host
from support.index import File, Index
from support.resolving import request

pytest_plugins = ["support.commands", "support.family"]

# As in the wheel of torch 2.4.1, with the one difference that a newer GPU gets PTX.
HEADER = """\
#define NVCC_FLAGS_EXTRA "-gencode;arch=compute_80,code=sm_80;-gencode;arch=compute_50,code=sm_50;\
-gencode;arch=compute_120,code=sm_120;-gencode;arch=compute_90a,code=sm_90a;-gencode;arch=compute_90,code=compute_90"
"""
FOUND = ("sm_50", "sm_80", "sm_90a", "sm_120", "compute_90")


def with_header(file: File, text: str = HEADER) -> File:
    body = io.BytesIO(file.body)
    with zipfile.ZipFile(body, "a") as archive:
        archive.writestr("torch/lib/large.so", bytes(2_000_000))
        archive.writestr("torch/include/ATen/cuda/CUDAConfig.h", text)
    file.body = body.getvalue()
    return file


@pytest.fixture
def torch(family: Index) -> File:
    return with_header(next(f for f in family.files if f.name.startswith("torch-2.4.1")))


def address(index: Index, file: File) -> str:
    return f"{index.root}/files/{file.name}"


def test_the_compiler_s_flags_are_read_and_little_else(family: Index, torch: File) -> None:
    with requests.Session() as session:
        assert gpu_targets(address(family, torch), session) == FOUND
    asked = family.asked(".whl")
    assert asked[0] == "HEAD"
    assert len(asked) <= 3


def test_a_wheel_on_this_machine(
    family: Index, torch: File, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a folder/torch.whl"
    file.parent.mkdir()
    file.write_bytes(torch.body)
    with requests.Session() as session:
        assert gpu_targets(file.as_uri(), session) == ()
        monkeypatch.setenv("UV_FIND_LINKS", str(file.parent))
        assert gpu_targets(file.as_uri(), session) == FOUND


def test_where_nothing_is_told(family: Index, torch: File) -> None:
    other = next(f for f in family.files if f.name.startswith("torch-2.4.0"))
    with requests.Session() as session:
        assert gpu_targets(address(family, other), session) == ()
        assert gpu_targets(address(family, with_header(other, "#define NOTHING")), session) == ()
        torch.ranges = False
        assert gpu_targets(address(family, torch), session) == ()
        torch.head = 405
        assert gpu_targets(address(family, torch), session) == ()
        torch.head, torch.ranges, torch.body = 200, True, b"no zip file at all" * 1000
        assert gpu_targets(address(family, torch), session) == ()


def test_a_way_that_breaks(family: Index, torch: File) -> None:
    with requests.Session() as session, pytest.raises(ResolveError, match=r"torch.whl cannot be read"):
        gpu_targets("http://127.0.0.1:9/torch.whl", session)


def test_the_lock_holds_them(family: Index, apt: None, torch: File) -> None:
    def lock(existing: Lock | None = None, cuda: str = "12.1", upgrade: Upgrade | None = None) -> Lock:
        wanted = request(cuda=cuda, torch="2.4.1")
        return resolve(
            wanted,
            existing=existing,
            upgrade=upgrade or Upgrade(),
            host=quiet_host(),
        )

    found = lock()
    assert found.gpu_targets == FOUND
    assert parse_lock(found.dump(), "again") == found
    family.log.clear()
    assert lock(found) == found
    assert family.asked(".whl") == []
    torch.ranges = False
    assert lock(found, upgrade=Upgrade(everything=True)).gpu_targets == ()
