"""A request that names PyTorch's own index: uv's torch backends, and nothing else, decide where torch is."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reprobuild.lock.model import Lock
from reprobuild.lock.reader import parse_lock
from support.index import Index, wheel
from support.pytorch import PyTorch, serve_pytorch
from support.resolving import LINUX

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.family"]

OLD = "cp311-cp311-linux_x86_64"
"""How PyTorch's index tags its builds up to torch 2.6."""


@pytest.fixture
def pytorch(family: Index, apt: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PyTorch]:
    """PyTorch's index, with two builds of torch and one of torchvision for CUDA 11.8 and for the CPU."""
    with serve_pytorch(tmp_path) as index:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, index.proxy)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
            monkeypatch.setenv(name, str(index.ca))
        for version in ("2.3.1", "2.4.1"):
            need = ["nvidia-cuda-runtime-cu11==11.8.89; platform_system == 'Linux'", "filelock"]
            index.add("cu118", "torch", f"{version}+cu118", tag=OLD, requires=need)
            index.add("cpu", "torch", f"{version}+cpu", tag=OLD, requires=["filelock"], hashed=False)
        # uv takes torch and its kin from there, and NVIDIA's libraries from the user's index like all else.
        family.add("nvidia-cuda-runtime-cu11", "11.8.89", tag="py3-none-manylinux1_x86_64")
        index.add("cu118", "torchvision", "0.19.1+cu118", tag=OLD, requires=["torch==2.4.1"])
        yield index


def locked(name: str) -> Lock:
    return parse_lock(Path(f"envs/pylock.{name}.toml").read_text(), "")


def urls(name: str) -> dict[str, str]:
    return {p.name: p.wheel.url for p in locked(name).python}


def test_a_cuda_that_only_pytorch_s_index_has(pytorch: PyTorch, family: Index, call: Call) -> None:
    said = call("lock", "--cuda", "11.8", "--index", "pytorch", "--package", "torchvision")
    assert said.status == 0, said.err
    assert "PyTorch  2.4.1+cu118" in said.out
    hosts = {host for _, host, path in pytorch.log if path.startswith("/whl/cu118/")}
    assert len(hosts) == 1
    found = urls("torch-cu118")
    for name in ("torch", "torchvision"):
        assert found[name].startswith(f"https://{next(iter(hosts))}/whl/cu118/")
    for name in ("numpy", "pip", "filelock", "nvidia-cuda-runtime-cu11"):
        assert found[name].startswith(family.root)
    # It is asked whether it has a file of that name and other bytes; a page without one has no part.
    assert family.asked("/torch/") == ["GET"]
    request = tomllib.loads(Path("envs/torch-cu118.toml").read_text())
    assert (request["index"], locked("torch-cu118").request.index) == ("pytorch", "pytorch")
    assert call("lock", "--check", "torch-cu118").status == 0


def test_pins_stay_and_the_choice_too(pytorch: PyTorch, call: Call) -> None:
    assert call("lock", "--cuda", "11.8", "--index", "pytorch", "--name", "a").status == 0
    before = Path("envs/pylock.a.toml").read_bytes()
    pytorch.add("cu118", "torch", "2.5.0+cu118", tag=OLD, requires=["nvidia-cuda-runtime-cu11==11.8.89"])
    assert call("lock", "envs/a.toml").status == 0
    assert Path("envs/pylock.a.toml").read_bytes() == before
    said = call("lock", "--upgrade", "torch", "envs/a.toml")
    assert said.status == 0, said.err
    assert locked("a").version_of("torch") == "2.5.0+cu118"


def test_a_build_with_cuda_inside(pytorch: PyTorch, call: Call) -> None:
    pytorch.add("cu117", "torch", "2.0.1+cu117", tag=OLD, requires=["filelock"])
    said = call("lock", "--cuda", "11.7", "--index", "pytorch")
    assert said.status == 0, said.err
    assert set(urls("torch-cu117")) == {"torch", "numpy", "packaging", "pip", "filelock"}


def test_for_the_cpu_and_without_hashes(pytorch: PyTorch, call: Call) -> None:
    said = call("lock", "--cuda", "cpu", "--index", "pytorch", "--torch", "2.4.1")
    assert said.status == 0, said.err
    found = next(p for p in locked("torch-cpu").python if p.name == "torch")
    file = next(f for f in pytorch.folders["cpu"] if f.name == found.wheel.filename)
    assert (found.version, found.wheel.sha256, found.wheel.size) == (
        "2.4.1+cpu",
        file.sha256,
        len(file.body),
    )


def test_cuda_s_packages_in_a_file_for_the_cpu(pytorch: PyTorch, family: Index, call: Call) -> None:
    """As of `pip freeze` beside PyPI's torch."""
    Path("requirements.txt").write_text("torch==2.4.1\nfilelock\nnvidia-cuda-runtime-cu12==12.1.105\n")
    asked = ("lock", "--from", "requirements.txt", "--cuda", "cpu", "--index", "pytorch", "--name", "m1")
    said = call(*asked)
    assert said.status == 5
    assert "torch 2.4.1+cpu is for the CPU, as the request is, but the request asks for CUDA: " in said.err
    assert "CUDA: nvidia-cuda-runtime-cu12\n  hint: " in said.err
    assert "--loosen 'nvidia-*'" in said.err
    said = call(*asked, "--loosen", "nvidia-*")
    assert said.status == 0, said.err
    left = "requirements.txt: left out, since torch for the CPU does not require it: nvidia-cuda-runtime-cu12"
    assert left in said.err
    assert set(urls("m1")) == {"torch", "numpy", "pip", "filelock"}
    assert locked("m1").request.loosened == ("nvidia-cuda-runtime-cu12==12.1.105",)


def test_cuda_s_packages_of_another_package_beside_torch_for_the_cpu(
    pytorch: PyTorch, family: Index, call: Call
) -> None:
    family.add("fast", "1", requires=["nvidia-cuda-runtime-cu12"])
    Path("requirements.txt").write_text("torch==2.4.1\nfast\nnvidia-cuda-runtime-cu12==12.1.105\n")
    asked = ("lock", "--from", "requirements.txt", "--cuda", "cpu", "--index", "pytorch", "--name", "m1")
    said = call(*asked, "--loosen", "nvidia-*")
    assert said.status == 5
    assert "but another package asks for CUDA: nvidia-cuda-runtime-cu12" in said.err


def test_unless_the_request_names_it_it_is_not_asked(
    pytorch: PyTorch, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_TORCH_BACKEND", "cpu")
    said = call("lock", "--cuda", "cpu")
    assert said.status == 5
    assert "--index pytorch" in said.err
    assert call("lock", "--cuda", "12.1").status == 0
    assert pytorch.log == []


def test_a_backend_in_a_file_of_uv_s(
    pytorch: PyTorch, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "uv.toml"
    file.write_text('[pip]\ntorch-backend = "cpu"\n')
    monkeypatch.delenv("UV_NO_CONFIG")
    monkeypatch.setenv("UV_CONFIG_FILE", str(file))
    said = call("lock", "--cuda", "cpu")
    assert (said.status, f"{file}: pip.torch-backend" in said.err) == (7, True)
    assert pytorch.log == []
    said = call("lock", "--cuda", "11.8", "--index", "pytorch")
    assert said.status == 0, said.err
    assert locked("torch-cu118").version_of("torch") == "2.4.1+cu118"


def test_the_error_of_the_default_index_names_the_other(pytorch: PyTorch, call: Call) -> None:
    said = call("lock", "--cuda", "11.8")
    assert said.status == 5
    assert "12.1 (torch 2.4.1)" in said.err
    assert "--index pytorch" in said.err


def test_a_cuda_that_uv_knows_no_index_for(pytorch: PyTorch, call: Call) -> None:
    said = call("lock", "--cuda", "12.7", "--index", "pytorch")
    assert said.status == 5
    assert "named cu127" in said.err
    assert "cu118" in said.err.partition("it knows")[2]


def test_a_torch_that_is_not_there(pytorch: PyTorch, call: Call) -> None:
    said = call("lock", "--cuda", "11.8", "--index", "pytorch", "--torch", "1.0.0")
    assert said.status == 5
    assert "torch==1.0.0" in said.err


def test_it_has_no_dates(pytorch: PyTorch, call: Call) -> None:
    said = call("lock", "--cuda", "11.8", "--index", "pytorch", "--as-of", "2024-12-24")
    assert said.status == 5
    assert "gives no dates" in said.err


@pytest.mark.parametrize("value", ["https://h.example/whl/cu118", "pypi", ""])
def test_no_other_index_can_be_named(call: Call, value: str) -> None:
    said = call("lock", "--cuda", "11.8", "--index", value)
    assert said.status == 3
    assert "other indexes are set in uv or pip" in said.err


def test_another_build_than_was_asked_for(pytorch: PyTorch, call: Call) -> None:
    pytorch.folders["cu118"].clear()
    pytorch.add("cu118", "torch", "2.4.1+cu121", tag=LINUX, requires=["filelock"])
    said = call("lock", "--cuda", "11.8", "--index", "pytorch")
    assert said.status == 5
    assert "not 11.8" in said.err


def test_find_links_do_not_take_its_place(
    pytorch: PyTorch, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / f"torch-2.5.0+cpu-{LINUX}.whl").write_bytes(wheel("torch", "2.5.0+cpu"))
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    said = call("lock", "--cuda", "cpu", "--index", "pytorch")
    assert said.status == 5
    assert f"torch 2.5.0+cpu was found in {folder.as_uri()}" in said.err
    said = call("lock", "--cuda", "cpu", "--index", "pytorch", "--torch", "2.4.1")
    assert said.status == 0, said.err
    assert "/whl/cpu/" in urls("torch-cpu")["torch"]
    # Nor is the default index's build for CUDA mistaken for it.
    (folder / f"torch-2.4.1+cpu-{LINUX}.whl").write_bytes(wheel("torch", "2.4.1+cpu"))
    assert call("lock", "--cuda", "12.1").status == 0
    assert locked("torch-cu121").version_of("torch") == "2.4.1"
