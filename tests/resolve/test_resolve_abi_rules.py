"""What no package names: the NumPy that a wheel is compiled against, its torch, its CUDA."""

from __future__ import annotations

import io
import zipfile

import pytest

from reprobuild.errors import ResolveError
from reprobuild.net.session import session
from reprobuild.resolve.abi_rules import Rule
from reprobuild.resolve.constraint_loop import fitting
from support.elf import elf
from support.index import Index
from support.resolving import LINUX, request, resolution

pytest_plugins = ["support.family"]

BEFORE_NUMPY_2 = "2023-03-09T08:00:00Z"


def fitted(torch: str, *packages: str, cuda: str = "12.1") -> tuple[dict[str, str], list[str]]:
    """Return the versions, and the notes."""
    with session(retries=0) as http:
        about = resolution(http, request(cuda=cuda, packages=list(packages)))
        found = fitting([f"torch=={torch}", *packages, "numpy", "pip"], about)
    return {package.name: package.version for package in found or ()}, about.notes


def test_a_torch_of_before_numpy_2(family: Index) -> None:
    versions, notes = fitted("2.0.1", cuda="11.7")
    assert versions["numpy"] == "1.26.4"
    assert notes == [
        "packaging: torch 2.0.1 imports it, and does not name it",
        "numpy<2: torch 2.0.1 is compiled against NumPy 1",
    ]
    assert "packaging" in versions


def test_a_later_torch_takes_any(family: Index) -> None:
    versions, notes = fitted("2.4.1")
    assert (versions["numpy"], notes) == ("2.1.0", [])


def test_numpy_that_the_torch_cannot_take(family: Index) -> None:
    with pytest.raises(ResolveError) as caught:
        fitted("2.0.1", "numpy>=2", cuda="11.7")
    assert "numpy<2 is required: torch 2.0.1 is compiled against NumPy 1" in caught.value.hint


def test_a_compiled_wheel_of_before_numpy_2(family: Index) -> None:
    family.add("learn", "1.2", tag=LINUX, requires=["numpy>=1.17"], uploaded=BEFORE_NUMPY_2)
    versions, notes = fitted("2.4.1", "learn")
    assert versions["numpy"] == "1.26.4"
    assert notes == ["numpy<2: learn 1.2 is compiled against NumPy 1"]


@pytest.mark.parametrize(
    ("tag", "requires", "uploaded"),
    [
        ("py3-none-any", ["numpy"], BEFORE_NUMPY_2),  # nothing in it is compiled
        (LINUX, [], BEFORE_NUMPY_2),  # nothing to do with NumPy
        (LINUX, ["numpy"], "2024-08-01T08:00:00Z"),
        (LINUX, ["numpy"], None),
    ],
)
def test_others_take_numpy_2(family: Index, tag: str, requires: list[str], uploaded: str | None) -> None:
    family.add("other", "1.2", tag=tag, requires=requires, uploaded=uploaded)
    versions, notes = fitted("2.4.1", "other")
    assert (versions["numpy"], notes) == ("2.1.0", [])


def test_what_is_asked_for_goes_before_numpy(family: Index) -> None:
    """The older frames fits any NumPy by its own word, and is not taken for the sake of a newer NumPy."""
    family.add("frames", "2.0", tag=LINUX, requires=["numpy>=1.2"])
    family.add("frames", "2.1", tag=LINUX, requires=["numpy>=1.2,<2"])
    versions, _ = fitted("2.4.1", "frames<2.2")
    assert (versions["frames"], versions["numpy"]) == ("2.1", "1.26.4")


def test_a_torchaudio_that_names_no_torch(family: Index) -> None:
    family.add("torchaudio", "2.4.1", tag=LINUX, requires=["torch==2.4.1"])
    family.add("torchaudio", "2.11.0", tag=LINUX)
    versions, notes = fitted("2.4.1", "torchaudio")
    assert versions["torchaudio"] == "2.4.1"
    assert notes == ["torchaudio<2.5.dev0: torchaudio 2.11.0 is made for torch 2.11 and later, not for 2.4.1"]
    family.add("torchaudio", "2.3.9", tag=LINUX)
    versions, _ = fitted("2.6.0", "torchaudio", cuda="12.4")
    assert versions["torchaudio"] == "2.3.9"
    with pytest.raises(ResolveError) as caught:
        fitted("2.4.1", "torchaudio==2.11.0")
    assert "torchaudio 2.11.0 is made for torch 2.11 and later" in caught.value.hint


def test_a_wheel_for_another_cuda(family: Index) -> None:
    """As onnxruntime-gpu: the CUDA that it is linked against is named in an extra."""
    extra = "; extra == 'cuda'"
    for version, runtime in {"1.1": "-cu12~=12.0", "1.2": "-cu13~=13.0", "1.3": "~=13.0"}.items():
        need = [f"nvidia-cuda-runtime{runtime}{extra}"]
        family.add("onnx-gpu", version, tag=LINUX, requires=need, extras=["cuda"])
    versions, notes = fitted("2.4.1", "onnx-gpu")
    assert versions["onnx-gpu"] == "1.1"
    assert notes[-1] == "onnx-gpu<1.2: onnx-gpu 1.2 is built for CUDA 13, not 12.1"
    versions, _ = fitted("2.9.0", "onnx-gpu", cuda="13.0")
    assert versions["onnx-gpu"] == "1.3"
    versions, _ = fitted("2.4.1", "onnx-gpu==1.1")
    assert versions["onnx-gpu"] == "1.1"
    with pytest.raises(ResolveError) as caught:
        fitted("2.4.1", "onnx-gpu==1.3")
    assert "onnx-gpu 1.3 is built for CUDA 13, not 12.1" in caught.value.hint


def linked(index: Index, name: str, version: str, *needed: str) -> None:
    """Put a compiled wheel on the index whose one shared object needs some libraries."""
    file = index.add(name, version, tag=LINUX, requires=["torch"])
    out = io.BytesIO(file.body)
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr(f"{name}/_C.so", elf(needed))
    file.body = out.getvalue()


def test_a_build_of_torch_s_kin_for_another_cuda(family: Index) -> None:
    linked(family, "torchvision", "0.18", "libtorch_cuda.so", "libcudart.so.12", "libc.so.6")
    linked(family, "torchvision", "0.19", "libtorch_cuda.so", "libcudart.so.13")
    versions, notes = fitted("2.4.1", "torchvision")
    assert versions["torchvision"] == "0.18"
    assert notes[-1] == "torchvision<0.19: torchvision 0.19 is built for CUDA 13, not 12.1"
    assert fitted("2.9.0", "torchvision", cuda="13.0")[0]["torchvision"] == "0.19"


def test_a_build_for_a_gpu_beside_a_torch_for_the_cpu(family: Index) -> None:
    """torchaudio of an index that has no other: it does not load there."""
    linked(family, "torchaudio", "2.4.1", "libtorch_cuda.so", "libcudart.so.12", "libm.so.6")
    with pytest.raises(ResolveError) as caught:
        fitted("2.4.1", "torchaudio", cuda="cpu")
    assert caught.value.message == (
        "torchaudio 2.4.1 is built for a GPU, and the request is for the CPU: it needs libcudart.so.12, "
        "libtorch_cuda.so"
    )
    assert "--index pytorch" in caught.value.hint
    linked(family, "torchvision", "0.18", "libtorch_cpu.so")
    assert fitted("2.4.1", "torchvision", cuda="cpu")[0]["torchvision"] == "0.18"


def test_what_only_an_old_release_requires_is_not_asked_for(family: Index) -> None:
    """deepspeed's last wheel is of 2020 and names torchvision: its source, which is newer, does not."""
    family.add("speed", "0.3.1.dev5", requires=["torchvision"])
    family.add_sdist("speed", "0.18.2")
    linked(family, "torchvision", "0.19", "libtorch_cuda.so", "libcudart.so.13")
    linked(family, "torchvision", "0.18", "libtorch_cuda.so", "libcudart.so.12")
    for cuda in ("cpu", "12.1"):
        with pytest.raises(ResolveError, match=r"speed: no release can be taken"):
            fitted("2.4.1", "speed", cuda=cuda)


def test_a_bound_on_a_package_does_not_ask_for_it(family: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = iter([[Rule("torchvision<0.19", "for this test")], []])
    monkeypatch.setattr("reprobuild.resolve.constraint_loop.broken_rules", lambda *_: next(rules))
    linked(family, "torchvision", "0.18", "libc.so.6")
    assert "torchvision" not in fitted("2.4.1")[0]


def test_a_rule_that_each_release_breaks_comes_to_an_end(
    family: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reprobuild.resolve.constraint_loop._MOST_ATTEMPTS", 2)
    for version in ("1.1", "1.2", "1.3"):
        need = ["nvidia-cuda-runtime~=13.0; extra == 'cuda'"]
        family.add("onnx-gpu", version, tag=LINUX, requires=need, extras=["cuda"])
    with pytest.raises(ResolveError, match=r"in 2 attempts; the last rule was onnx-gpu<1\.2"):
        fitted("2.4.1", "onnx-gpu")


def test_a_marker_that_is_neither_true_nor_false(family: Index) -> None:
    """Of a stranger's metadata; it was a traceback."""
    need = ["nvidia-cuda-runtime-cu13~=13.0; extra == 'cuda' and python_version ~= 'new'"]
    family.add("onnx-gpu", "1.0", tag=LINUX, requires=need, extras=["cuda"])
    versions, _ = fitted("2.4.1", "onnx-gpu")
    assert versions["onnx-gpu"] == "1.0"
