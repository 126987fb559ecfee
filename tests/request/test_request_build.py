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
        ("only-wheels = 1", "a: only-wheels: expected true or false"),
    ],
)
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        Request.parse(f'cuda = "cpu"\n{text}', "a")
