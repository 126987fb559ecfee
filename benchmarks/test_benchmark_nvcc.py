"""CUDA code, compiled in the sandbox by nvcc of NVIDIA's wheels: 200 MB are fetched, and minutes go by."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.resolve.resolver import Upgrade, resolve
from support.hosts import quiet_host
from support.resolving import request
from support.sdists import PYPROJECT, backend, tar_gz

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
