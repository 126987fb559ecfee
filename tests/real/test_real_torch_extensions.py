"""Extensions of PyTorch, as its own `torch.utils.cpp_extension` makes them: compiled, linked, imported."""

from __future__ import annotations

import json

import pytest

from reprobuild.pipeline.workspace import read_lock
from support.bench import TORCH, Bench
from support.sdists import tar_gz

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.slow

FILES = {
    "setup.py": """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension
setup(
    name="thrice",
    version="1.0",
    ext_modules=[CppExtension("thrice", ["thrice.cpp"], extra_compile_args=["-O0"])],
    cmdclass={"build_ext": BuildExtension},
)
""",
    "thrice.cpp": """
#include <Python.h>
#include <ATen/ops/mul.h>
#include <torch/library.h>
at::Tensor thrice(const at::Tensor& x) { return at::mul(x, 3); }
TORCH_LIBRARY(thrice, library) { library.def("thrice", &thrice); }
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "thrice", nullptr, -1, nullptr};
PyMODINIT_FUNC PyInit_thrice() { return PyModule_Create(&module); }
""",
}
PACKAGES = 'packages = ["thrice"]'
BUILD = '[build]\napt = ["g++", "python3.11-dev"]\n[build.thrice]\ntorch = true\n'
CODE = "import torch, thrice; print(torch.ops.thrice.thrice(torch.ones(2)).tolist())"


def test_a_cpp_extension_runs_in_its_image(bench: Bench) -> None:
    links = bench.folder / "links"
    links.mkdir()
    body = tar_gz({f"thrice-1.0/{path}": text.encode() for path, text in FILES.items()})
    (links / "thrice-1.0.tar.gz").write_bytes(body)
    env = {"UV_FIND_LINKS": str(links)}
    text = (bench.folder / "envs/torch-cpu.toml").read_text()
    text = text.replace('name = "torch-cpu"', 'name = "thrice"').replace("packages = []", PACKAGES)
    request = bench.folder / "envs/thrice.toml"
    request.write_text(f"{text}\n{BUILD}")
    bench.run("lock", str(request), env=env)
    lock = read_lock(bench.folder / "envs/pylock.thrice.toml")
    (thrice,) = (p for p in lock.python if p.name == "thrice")
    assert thrice.wheel.filename.startswith("thrice-1.0-cp311-cp311-linux_")
    assert thrice.source is not None
    # The torch that it was built with is the image's own, and is not locked a second time.
    assert f"torch=={TORCH}" in {pin.partition("+")[0] for pin in thrice.source.requires}
    assert "torch" not in {p.name for p in lock.build.python}
    built = json.loads(bench.run("image", "envs/pylock.thrice.toml", "--json", env=env)[0])
    assert bench.run("run", built["name"], "--", "python3", "-c", CODE)[0] == "[3.0, 3.0]\n"
    bench.run("remove", built["name"])
