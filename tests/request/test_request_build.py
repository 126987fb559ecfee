"""The table ``build`` of a request, and ``only-wheels``."""

from __future__ import annotations

import pytest

from reprobuild.errors import RequestError
from reprobuild.request.build import Build, PackageBuild
from reprobuild.request.model import Request

TEXT = """
cuda = "cpu"
packages = ["pesq"]
only-wheels = true

[build]
apt = ["g++", "g++", "python3.11-dev"]

[build.Flash_Attn]
apt = ["ninja-build"]
env = { TORCH_CUDA_ARCH_LIST = "8.0" }
requires = ["numpy <2"]
torch = true
"""


def test_what_it_says() -> None:
    found = Request.parse(TEXT, "a.toml")
    flash = PackageBuild(
        name="flash-attn",
        apt=("ninja-build",),
        env=(("TORCH_CUDA_ARCH_LIST", "8.0"),),
        requires=("numpy<2",),
        torch=True,
    )
    assert found.only_wheels
    assert found.build == Build(apt=("g++", "python3.11-dev"), packages=(flash,))
    assert found.build.every_apt == ("g++", "ninja-build", "python3.11-dev")
    assert found.build.of("other") == PackageBuild(name="other")
    assert Request.parse(found.dump(), "b.toml", "torch-cpu") == found


def test_a_request_without_it_is_written_without_it() -> None:
    assert not {"build", "only-wheels"} & Request.parse('cuda = "cpu"', "a").to_dict().keys()


def test_nvcc_is_for_gpus_that_are_named() -> None:
    own = "packages = ['x']\n[build.x]\ncuda = true\n"
    with pytest.raises(RequestError, match=r"for CUDA 12\.8: NVIDIA's wheels have it from CUDA 13\.0 on"):
        Request.parse('cuda = "12.8"\n' + own, "a")
    with pytest.raises(RequestError, match="the GPUs to build for are missing") as caught:
        Request.parse('cuda = "13.0"\n' + own, "a")
    assert 'env = { TORCH_CUDA_ARCH_LIST = "8.0;9.0" }' in caught.value.hint
    found = Request.parse(f'cuda = "13.0"\n{own}env = {{ TORCH_CUDA_ARCH_LIST = "8.0" }}\n', "a")
    assert found.build.of("x").cuda
    assert Request.parse(found.dump(), "b") == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("build = 1", "a: build: expected a table"),
        ("[build]\nflash = 1", r"a: build\.flash: expected a table for the package flash"),
        ("[build]\napt = ['x y']", r"a: build\.apt\[0\]: 'x y' is not a valid name"),
        ("[build.x]\nmore = 1", r"a: build\.x\.more: unknown key"),
        (
            "[build.x]\nrequires = ['a @ https://x.example/a.whl']",
            r"a: build\.x\.requires\[0\]: .* names a URL",
        ),
        ("[build.x]\nrequires = ['!']", r"a: build\.x\.requires\[0\]: '!' is not a PEP 508 requirement"),
        ("[build.x]\nenv = {PATH = '/x'}", r"a: build\.x\.env\.PATH: reprobuild sets PATH itself"),
        ("[build.x]\nenv = {LD_PRELOAD = '/x'}", r"a: build\.x\.env\.LD_PRELOAD"),
        ('[build.x]\nenv = {A = "a\\nb"}', r"a: build\.x\.env\.A: expected one line"),
        ("[build.x]\nenv = {'a b' = '1'}", r"is not a variable's name"),
        ("[build.'/x']", r"a: build\./x: '/x' is not the name of a Python package"),
        ("[build.a_b]\n[build.a-b]", r"a: build\.a-b: is listed more than once"),
        ("[build.x]\ntorch = 1", r"a: build\.x\.torch: expected true or false"),
        ("[build.x]\ncuda = true", r"a: build\.x\.cuda: there is no nvcc for the CPU"),
        ("only-wheels = 1", "a: only-wheels: expected true or false"),
    ],
)
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        Request.parse(f'cuda = "cpu"\n{text}', "a")
