from __future__ import annotations

import signal
import threading
from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from reprobuild.errors import ResolveError
from reprobuild.net.session import session
from reprobuild.resolve.target import TargetPython
from reprobuild.resolve.torch import TorchScan, cuda_named
from support.index import Index, serve_index
from support.resolving import LINUX

pytest_plugins = ["support.family"]

TARGET = TargetPython("3.11", "amd64", (2, 36))
CU121 = "nvidia-cuda-runtime-cu12==12.1.105"


def choose(
    cuda: str, pinned: str | None = None, prefer: str | None = None, *, as_of: date | None = None
) -> str:
    with session(retries=0) as http:
        return str(TorchScan(http, as_of).choose(cuda, f"=={pinned}" if pinned else "", prefer, TARGET))


@pytest.mark.parametrize("json", [True, False], ids=["json", "html"])
@pytest.mark.parametrize(
    ("cuda", "torch"), [("11.7", "2.0.1"), ("12.1", "2.4.1"), ("12.4", "2.6.0"), ("13.0", "2.9.0")]
)
def test_newest_torch_of_a_cuda(family: Index, json: bool, cuda: str, torch: str) -> None:
    family.json = json
    assert choose(cuda) == torch


@pytest.mark.parametrize("metadata", ["announced", "unannounced"])
@pytest.mark.parametrize("json", [True, False], ids=["json", "html"])
def test_without_metadata_files_the_wheel_is_read_by_ranges(family: Index, metadata: Any, json: bool) -> None:
    family.json = json
    for file in family.files:
        file.metadata = metadata
    assert choose("12.1") == "2.4.1"
    assert "GET" in family.asked(f"torch-2.4.1-{LINUX}.whl")


def test_newer_versions_are_enough(family: Index) -> None:
    for minor in range(10, 30):
        family.add("torch", f"2.{minor}.0", tag=LINUX, requires=["cuda-toolkit==13.2.1"])
    assert choose("13.2") == "2.29.0"
    assert not family.asked("torch-2.0.1-" + LINUX + ".whl.metadata")


def test_metadata_that_cannot_be_read(family: Index) -> None:
    file = family.add("torch", "2.9.1", tag=LINUX, requires=[CU121], metadata="announced", ranges=False)
    with pytest.raises(ResolveError, match=rf"{file.name} cannot be read .* range requests"):
        choose("12.1")


def test_a_wheel_that_is_no_zip(family: Index) -> None:
    file = family.add("torch", "2.9.1", tag=LINUX, metadata="announced")
    file.body = b"no zip" * 100
    with pytest.raises(ResolveError, match="cannot be read"):
        choose("12.1")


def test_yanked_pre_release_and_other_platforms_do_not_count(family: Index) -> None:
    family.add("torch", "2.4.2", tag=LINUX, requires=[CU121], yanked=True)
    family.add("torch", "2.5.0rc1", tag=LINUX, requires=[CU121])
    family.add("torch", "2.4.3", tag="cp312-cp312-manylinux_2_17_x86_64", requires=[CU121])
    family.add("torch", "2.4.4", tag="cp311-cp311-manylinux_2_37_x86_64", requires=[CU121])
    family.add("torch", "2.4.5", tag="cp311-cp311-win_amd64", requires=[CU121])
    family.add("torch", "2.4.6", tag="cp311-cp311-manylinux_2_17_aarch64", requires=[CU121])
    assert choose("12.1") == "2.4.1"


@pytest.mark.parametrize("json", [True, False], ids=["json", "html"])
def test_as_of(family: Index, json: bool) -> None:
    family.json = json
    family.add("torch", "2.4.2", tag=LINUX, requires=[CU121], uploaded="2024-09-15T23:59:59Z")
    family.add("torch", "2.4.3", tag=LINUX, requires=[CU121], uploaded="2024-09-16T00:00:00Z")
    family.add("torch", "2.4.4", tag=LINUX, requires=[CU121], uploaded=None)
    assert choose("12.1", as_of=date(2024, 9, 15)) == "2.4.2"
    with pytest.raises(ResolveError, match="published by 2001-01-01"):
        choose("12.1", as_of=date(2001, 1, 1))


def test_a_day_before_torch_had_that_cuda(family: Index) -> None:
    for file in family.files:
        if file.name.startswith("torch-"):
            file.uploaded = {"2.0.1": "2023-01-01T00:00:00Z", "2.4.0": "2024-07-24T00:00:00Z"}.get(
                file.name[6:11], "2024-12-01T00:00:00Z"
            )
    with pytest.raises(ResolveError, match=r"published by 2024-01-01 is built for CUDA 12\.1") as bad:
        choose("12.1", as_of=date(2024, 1, 1))
    assert "torch 2.4.0 is the first, published later" in bad.value.hint
    with pytest.raises(ResolveError, match=r"published by 2024-01-01 is built for CUDA 12\.9") as bad:
        choose("12.9", as_of=date(2024, 1, 1))
    assert "11.7 (torch 2.0.1)" in bad.value.hint
    for file in family.files:
        file.uploaded = None
    with pytest.raises(ResolveError, match="does not say when its torch files were published"):
        choose("12.1", as_of=date(2024, 1, 1))


def test_unknown_cuda_lists_those_that_are(family: Index) -> None:
    with pytest.raises(ResolveError, match=r"is built for CUDA 12\.9") as caught:
        choose("12.9")
    have = "11.7 (torch 2.0.1), 12.1 (torch 2.4.1), 12.4 (torch 2.6.0), 13.0 (torch 2.9.0)"
    assert have in caught.value.hint


def test_pinned(family: Index) -> None:
    assert choose("12.1", "2.4.0") == "2.4.0"
    with pytest.raises(ResolveError, match=r"torch 2\.6\.0 is built for CUDA 12\.4, not for 12\.1") as bad:
        choose("12.1", "2.6.0")
    assert bad.value.hint.startswith("give --cuda 12.4 (cuda in the request) to keep it, or take torch 2.4.1")
    with pytest.raises(ResolveError, match=r"no torch 9\.9"):
        choose("12.1", "9.9")
    family.add("torch", "2.5.0rc1", tag=LINUX, requires=[CU121])
    assert choose("12.1", "2.5.0rc1") == "2.5.0rc1"


def test_preferred_as_long_as_it_fits(family: Index) -> None:
    assert choose("12.1", prefer="2.4.0") == "2.4.0"
    assert choose("12.4", prefer="2.4.0") == "2.6.0"
    assert choose("12.1", prefer="2.3.0") == "2.4.1"


def test_first_index_that_knows_torch(family: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_index() as other:
        monkeypatch.setenv("UV_INDEX", f"corp={other.url}")
        assert choose("12.1") == "2.4.1"
        other.add("torch", "2.4.9+corp", tag=LINUX, requires=[CU121])
        assert choose("12.1") == "2.4.9+corp"
        with pytest.raises(ResolveError):
            choose("12.4")
        monkeypatch.setenv("UV_INDEX_STRATEGY", "unsafe-best-match")
        assert choose("12.4") == "2.6.0"


def test_login(family: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    family.login = "user:p@ss word"
    with pytest.raises(ResolveError, match="401"):
        choose("12.1")
    monkeypatch.setenv("UV_DEFAULT_INDEX", family.url_with_login)
    assert choose("12.1") == "2.4.1"
    family.status = 503
    with pytest.raises(ResolveError) as caught:
        choose("12.1")
    assert "503" in caught.value.message
    assert "p@ss" not in caught.value.message
    assert "p%40ss" not in caught.value.message


def test_no_index_knows_torch(index: Index) -> None:
    with pytest.raises(ResolveError, match="no index has torch"):
        choose("12.1")


@pytest.mark.parametrize(
    ("line", "cuda"),
    [
        ("nvidia-cuda-runtime-cu12==12.1.105", "12.1"),
        ("nvidia_cuda_runtime_cu12 (==12.1.105)", "12.1"),
        ("nvidia-cuda-runtime==13.0.*", "13.0"),
        ("cuda-toolkit[cublas,cudart]==13.0.2; platform_system == 'Linux'", "13.0"),
        ("cuda-toolkit==13", "13.0"),
        ("nvidia-cuda-runtime-cu12==12.1.105; platform_machine == 'aarch64'", None),
        ("nvidia-cuda-runtime-cu12==12.1.105; extra == 'gpu'", None),
        ("nvidia-cuda-runtime-cu12>=12", None),
        ("nvidia-cuda-nvrtc-cu12==12.1.105", None),
    ],
)
def test_cuda_named(line: str, cuda: str | None) -> None:
    assert cuda_named([Requirement("numpy"), Requirement(line)], TARGET.markers) == cuda


def test_metadata_that_is_not_what_the_index_says_is_read_from_the_wheel(index: Index) -> None:
    cuda = "nvidia-cuda-runtime-cu12==12.1.105"
    index.add("torch", "2.4.1", tag=LINUX, requires=[cuda], metadata_claims="0" * 64)
    with session() as http:
        assert str(TorchScan(http, None).choose("12.1", "", None, TARGET)) == "2.4.1"
    assert index.asked(".whl")


def test_a_signal_ends_it_also_while_the_releases_that_nobody_needs_are_awaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stop(*_: object) -> None:
        raise SystemExit(143)

    begun = threading.Event()
    first, second = (SimpleNamespace(version=Version(text)) for text in ("2", "1"))

    def cuda_of(_: TorchScan, release: object, target: TargetPython) -> str:
        if release is first:
            begun.wait(10)
            return "12.1"
        begun.set()
        threading.Event().wait(0.2)  # the first is taken, and this one is what is waited for
        signal.raise_signal(signal.SIGUSR1)
        return "12.1"

    monkeypatch.setattr(TorchScan, "releases", lambda *_, **__: [first, second])
    monkeypatch.setattr(TorchScan, "cuda_of", cuda_of)
    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with session() as http, pytest.raises(SystemExit):
            TorchScan(http, None).newest_with_cuda("", TARGET)
    finally:
        signal.signal(signal.SIGUSR1, before)
