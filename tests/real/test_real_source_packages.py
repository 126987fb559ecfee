"""A package that exists only as source, compiled in Debian's own root with Debian's compiler."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.errors import BuildError
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.lock.reader import parse_lock
from reprobuild.resolve.resolver import Upgrade, resolve
from reprobuild.sources.workshop import build_locked, to_fetch
from support.hosts import quiet_host
from support.resolving import request
from support.sdists import PYPROJECT, backend, tar_gz

pytestmark = pytest.mark.slow

FILES = {
    "setup.py": "from setuptools import Extension, setup\n"
    "setup(name='greeter', version='1.0', ext_modules=[Extension('greeter', ['greeter.c'])])\n",
    "greeter.c": """
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "greeter", "at " __FILE__, -1, NULL};
PyMODINIT_FUNC PyInit_greeter(void) { return PyModule_Create(&module); }
""",
}
APT = ["gcc", "libc6-dev", "python3.11-dev"]


def test_an_extension_is_compiled_twice_and_again_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in ("mmdebstrap", "crun"):
        needs(program)
    body = tar_gz({f"greeter-1.0/{path}": text.encode() for path, text in FILES.items()})
    (tmp_path / "links").mkdir()
    (tmp_path / "links/greeter-1.0.tar.gz").write_bytes(body)
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "links"))
    host = quiet_host(Home(tmp_path / "home"))
    keys = {"cuda": "12.1", "packages": ["greeter"]}
    with pytest.raises(BuildError, match=r"greeter 1\.0: it could not be built") as caught:
        resolve(request(**keys), existing=None, upgrade=Upgrade(), host=host)
    assert '[build] apt = ["g++", "python3.11-dev"]' in caught.value.hint
    wanted = request(**keys, build={"apt": APT})
    lock = resolve(wanted, existing=None, upgrade=Upgrade(), host=host)
    assert parse_lock(lock.dump(), "test") == lock
    (greeter,) = (p for p in lock.python if p.name == "greeter")
    assert greeter.wheel.filename.startswith("greeter-1.0-cp311-cp311-linux_")
    assert "gcc" in {p.name for p in lock.build.debian} - {p.name for p in lock.debian}
    assert resolve(wanted, existing=lock, upgrade=Upgrade(), host=host) == lock
    store = Store(host.home)
    store.remove(greeter.wheel.sha256)
    needed = to_fetch(lock, store)
    assert needed == lock
    build_locked(lock, store, host)
    assert store.has(greeter.wheel.sha256, greeter.wheel.size)
    assert greeter.source is not None
    store.remove(greeter.source.sha256)
    assert to_fetch(lock, store).size < lock.size


CUDA_FILES = {
    "pyproject.toml": PYPROJECT,
    "twice.cu": """
#include <cuda_runtime.h>
#include <cub/version.cuh>
__global__ void twice(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}
extern "C" int run(float *x, int n) {
  twice<<<(n + 255) / 256, 256>>>(x, n);
  return cudaGetLastError() == cudaSuccess ? CUB_VERSION : 0;
}
""",
    "backend.py": backend(
        "twice",
        "1.0",
        more="""
def files():
    import subprocess
    gpus = os.environ["TORCH_CUDA_ARCH_LIST"].replace(".", "").split(";")
    code = [f"-gencode=arch=compute_{gpu},code=sm_{gpu}" for gpu in gpus]
    home = os.environ["CUDA_HOME"]
    words = [home + "/bin/nvcc", "-Xcompiler", "-fPIC", "-c", "twice.cu", "-o", "twice.o", *code]
    subprocess.run(words, check=True)
    words = ["g++", "-shared", "-o", "twice.so", "twice.o", "-L" + home + "/lib64", "-lcudart"]
    subprocess.run(words, check=True)
    return {"twice/twice.so": open("twice.so", "rb").read()}
""",
    ),
}


def test_cuda_code_is_compiled_for_the_gpus_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in ("mmdebstrap", "crun"):
        needs(program)
    body = tar_gz({f"twice-1.0/{path}": text.encode() for path, text in CUDA_FILES.items()})
    (tmp_path / "links").mkdir()
    (tmp_path / "links/twice-1.0.tar.gz").write_bytes(body)
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "links"))
    host = quiet_host(Home(tmp_path / "home"))
    keys = {"cuda": "13.0", "packages": ["twice"], "platforms": ["linux/amd64"]}
    own = {"cuda": True, "env": {"TORCH_CUDA_ARCH_LIST": "8.0;9.0"}}
    wanted = request(**keys, build={"apt": ["g++"], "twice": own})
    lock = resolve(wanted, existing=None, upgrade=Upgrade(), host=host)
    (twice,) = (p for p in lock.python if p.name == "twice")
    locked = {p.name: p.version for p in (*lock.python, *lock.build.python)}
    for name in ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-cccl", "nvidia-cuda-crt"):
        assert locked[name].startswith("13.0."), name
    assert "nvidia-cuda-nvcc" not in {p.name for p in lock.python}
    with zipfile.ZipFile(Store(host.home).path(twice.wheel.sha256)) as wheel:
        content = wheel.read("twice/twice.so")
    assert b"libcudart.so.13" in content
