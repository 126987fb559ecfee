"""The keys of a request that an imported file decides: its CUDA version and its torch, below the flags."""

from __future__ import annotations

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports.recognize import read_import
from reprobuild.imports.request_keys import request_table
from support.fixtures import fixtures_of
from support.team_files import Write, table

globals().update(fixtures_of("support.team_files"))


@pytest.mark.parametrize(
    ("lines", "given", "cuda", "torch"),
    [
        ("torch==2.4.1+cu118", {}, "11.8", "2.4.1+cu118"),
        ("torch==2.4.1+cpu", {}, "cpu", "2.4.1+cpu"),
        ("torch==2.4.1", {"cuda": "12.1"}, "12.1", "2.4.1"),
        ("torch>=2.1,<2.3", {"cuda": "12.1"}, "12.1", "<2.3,>=2.1"),
        ("torch", {"cuda": "cpu"}, "cpu", None),
        ("pandas", {"cuda": "cpu", "torch": "2.2"}, "cpu", "2.2"),
        ("torch==2.9\ncuda-toolkit[cudart]==13.0.2", {}, "13.0", "2.9"),
        ("torch==2.4.1+cu118", {"cuda": "12.1", "torch": "2.5"}, "12.1", "2.5"),
    ],
)
def test_cuda_and_torch(
    write: Write, lines: str, given: dict[str, str], cuda: str, torch: str | None
) -> None:
    found = table(write("requirements.txt", lines), **given)
    assert (found["cuda"], found.get("torch")) == (cuda, torch)


def test_a_build_of_torch_for_another_cuda(write: Write) -> None:
    file = write(
        "requirements.txt", "torch==2.0.1+cu118\ntorchvision==0.15.2+cu118\nnvidia-x==1\nnvidia-y==2\n"
    )
    with pytest.raises(RequestError, match=r"pins torch 2\.0\.1\+cu118, a build for CUDA 11\.8") as caught:
        table(file, cuda="12.8")
    assert caught.value.hint == "give --cuda 11.8, or --loosen torch to get the newest for CUDA 12.8"
    loose = request_table(read_import(file, loosen=["Torch", "nvidia-*"]), {"cuda": "12.8"})
    assert (loose.get("torch"), loose["packages"]) == (
        None,
        ["torchvision==0.15.2+cu118", "nvidia-x", "nvidia-y"],
    )
    assert loose["loosened"] == ["nvidia-x==1", "nvidia-y==2", "torch==2.0.1+cu118"]
    with pytest.raises(RequestError, match="--loosen: pins no version of pandas"):
        read_import(file, loosen=["pandas"])
