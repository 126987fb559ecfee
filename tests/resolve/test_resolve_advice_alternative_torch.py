"""A package that takes another torch than the newest for its CUDA."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from reprobuild.errors import ResolveError
from reprobuild.host.home import Home
from reprobuild.net.session import session
from reprobuild.resolve.constraint_loop import fitting
from reprobuild.resolve.torch import TorchScan
from support.building_resolve import Resolve
from support.index import Index
from support.resolving import LINUX, request, resolution
from support.sdists import sdist, serve

pytest_plugins = ["support.family"]


def fitted(newest: str, *packages: str, cuda: str) -> tuple[dict[str, str], list[str]]:
    """Return the versions, and the notes."""
    with session(retries=0) as http:
        about = resolution(http, request(cuda=cuda, packages=list(packages)))
        found = fitting([f"torch==={newest}", *packages], about, scan=TorchScan(http, None))
    return {package.name: package.version for package in found or ()}, about.notes


def test_an_older_torch_for_the_same_cuda_is_taken_and_that_is_said(family: Index) -> None:
    family.add("serve", "1.0", requires=["torch==2.4.0"])
    versions, notes = fitted("2.4.1", "serve", cuda="12.1")
    assert versions["torch"] == "2.4.0"
    assert "torch 2.4.0 is taken: 2.4.1, the newest for CUDA 12.1, does not fit the others" in notes


def test_a_newer_torch_for_another_cuda_is_passed_over(family: Index) -> None:
    family.add("serve", "1.0", requires=["torch!=2.4.1"])
    family.add("torch", "2.9.1", tag=LINUX, requires=["nvidia-cuda-runtime==13.0.96"])
    assert fitted("2.4.1", "serve", cuda="12.1")[0]["torch"] == "2.4.0"


def test_a_torch_for_another_cuda_alone_is_named_with_its_cuda(family: Index) -> None:
    family.add("serve", "1.0", requires=["torch==2.6.0"])
    with pytest.raises(ResolveError) as caught:
        fitted("2.4.1", "serve", cuda="12.1")
    assert "torch 2.6.0, which is built for CUDA 12.4, fits the others: give --cuda 12.4" in caught.value.hint


def test_what_has_another_cause_is_as_it_was(family: Index) -> None:
    family.add("serve", "1.0", requires=["filelock==9"])
    with pytest.raises(ResolveError) as caught:
        fitted("2.4.1", "serve", cuda="12.1")
    assert "--cuda" not in caught.value.hint


def test_what_the_older_torch_needs_may_have_only_a_source(family: Index, tmp_path: Path) -> None:
    """Without it nothing fits the older torch either, and the cure would not be named."""
    family.add("serve", "1.0", requires=["torch==2.6.0", "tool"])
    serve(family, "tool", "1.0", sdist("tool", "1.0"))
    asked = request(cuda="12.1", packages=["serve"])
    resolve = Resolve(Home(tmp_path / "home"))
    with (
        session(retries=0) as http,
        closing(resolve.sources(about := resolution(http, asked, host=resolve.host))) as sources,
        pytest.raises(ResolveError) as caught,
    ):
        fitting(["torch===2.4.1", "serve"], about, sources=sources, scan=TorchScan(http, None))
    assert "torch 2.6.0, which is built for CUDA 12.4, fits the others: give --cuda 12.4" in caught.value.hint
