"""The checks of what the request names, on packages and shared objects that the tests make. No torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from reprobuild.in_image.selftest import linkage, requested
from reprobuild.in_image.selftest.outcomes import NOTES, Failed, NotRun
from support.elf import elf

pytest_plugins = ["support.site"]


@pytest.fixture
def install(site: Path) -> Callable[[str, Mapping[str, bytes]], None]:
    """Install a distribution and let the request name it."""

    def add(name: str, files: Mapping[str, bytes]) -> None:
        info = f"{name.replace('-', '_')}-1.0.dist-info"
        record = "".join(f"{path},,\n" for path in files)
        every = {**files, f"{info}/METADATA": f"Name: {name}\nVersion: 1.0\n".encode()}
        for path, content in {**every, f"{info}/RECORD": record.encode()}.items():
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            (site / path).write_bytes(content)
        lock = site.parents[2] / "pylock.toml"
        text = lock.read_text() if lock.exists() else "[tool.reprobuild.request]\npackages = []\n"
        lock.write_text(text.replace("[]", f'["{name}[extra]>=1"]').replace('"]\n', f'", "{name}"]\n'))

    return add


def test_packages_that_are_imported(site: Path, install: Callable[..., None]) -> None:
    install("plain", {"plain/__init__.py": b""})
    # Of several names at the top, the distribution's own; else all but tests and the like.
    install("other-name", {"first.py": b"", "second/__init__.py": b"", "tests/__init__.py": b"1/0"})
    install("spaced", {"shared/spaced/__init__.py": b"", "shared/spaced/deep/__init__.py": b"1/0"})
    assert requested.requested_imports("cpu") is None
    assert NOTES == ["4 modules"]
    found = requested.distribution_of("spaced")
    assert found is not None
    assert requested.modules_of(found, "spaced") == ["shared.spaced"]


def test_a_package_that_cannot_be_imported(site: Path, install: Callable[..., None]) -> None:
    install("broken", {"broken/__init__.py": b"import nonsense_that_is_not_there"})
    install("dies", {"dies.py": b"import os, signal; os.kill(os.getpid(), signal.SIGKILL)"})
    with pytest.raises(Failed, match="cannot be imported: broken, dies") as caught:
        requested.requested_imports("cpu")
    assert [line["got"] for line in caught.value.detail] == [
        "ModuleNotFoundError: No module named 'nonsense_that_is_not_there'",
        "the process was ended by signal 9",
    ]


def test_a_library_that_nothing_has_is_named_with_its_debian_package(
    site: Path, install: Callable[..., None]
) -> None:
    need = ["libnone-2.so.1", "libgthread-2.0.so.0.none", "libc.so.6", "libcuda.so.1"]
    code = b"raise ImportError('libnone-2.so.1: cannot open shared object file')"
    install("vision", {"cv/__init__.py": code, "cv/cv.abi3.so": elf(need)})
    with pytest.raises(Failed) as caught:
        requested.requested_imports("cpu")
    (line,) = caught.value.detail
    assert line["what"] == "import cv (vision)"
    assert line["got"].endswith(
        "no package of the image has libgthread-2.0.so.0.none, libnone-2.so.1: "
        'add apt = ["libglib2.0-0", "libnone-2-1"]'
    )


def test_an_import_that_needs_a_gpu_is_told_and_is_no_failure(
    site: Path, install: Callable[..., None]
) -> None:
    install("kernels", {"kernels.py": b"raise RuntimeError('Found no NVIDIA driver')"})
    assert requested.requested_imports("cpu") is None
    assert NOTES[0] == "kernels cannot be imported without a GPU: RuntimeError: Found no NVIDIA driver"


def test_an_extension_of_torch_is_imported_after_it(site: Path, install: Callable[..., None]) -> None:
    said = "libc10.so: cannot open shared object file: No such file or directory"
    code = f"import sys\nif 'torch' not in sys.modules: raise ImportError({said!r})"
    install("kernels", {"kernels.py": code.encode()})
    with pytest.raises(Failed, match="kernels"):
        requested.requested_imports("cpu")
    (site / "torch.py").write_bytes(b"")
    assert requested.requested_imports("cpu") is None
    assert NOTES == ["kernels has to be imported after torch", "1 modules"]


def test_an_import_that_never_ends(
    site: Path, install: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requested, "IMPORT_SECONDS", 0.2)
    install("endless", {"endless.py": b"while True: pass"})
    with pytest.raises(Failed) as caught:
        requested.requested_imports("cpu")
    assert caught.value.detail[0]["got"] == "it takes longer than 0 s"


def test_without_a_lock_or_packages_nothing_is_run(site: Path) -> None:
    with pytest.raises(NotRun, match=r"pylock\.toml does not exist"):
        requested.requested_imports("cpu")
    (site.parents[2] / "pylock.toml").write_text("[tool.reprobuild.request]\npackages = []\n")
    with pytest.raises(NotRun, match="names no packages"):
        requested.requested_imports("cpu")


def test_a_package_for_another_cuda(site: Path) -> None:
    for path, content in {
        "nvidia/cuda_runtime/lib/libcudart.so.12": elf([], soname="libcudart.so.12"),
        "fits/one.so": elf(["libcudart.so.12"]),
        # As bitsandbytes: one of them fits.
        "many/cuda12.so": elf(["libcublas.so.12"]),
        "many/cuda13.so": elf(["libcublas.so.13"]),
    }.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(content)
    assert requested.linked_cuda("cpu") is None
    assert "cuda13.so needs libcublas.so.13, which no package of the image has" in NOTES
    (site / "audio").mkdir()
    (site / "audio/audio.so").write_bytes(elf(["libcudart.so.13", "libc.so.6"]))
    linkage.installed_objects.cache_clear()
    linkage.library_names.cache_clear()
    with pytest.raises(Failed, match="built for another CUDA: audio") as caught:
        requested.linked_cuda("cpu")
    assert caught.value.detail == [{"what": "audio", "expected": "CUDA 12", "got": "libcudart.so.13"}]


def test_an_image_without_cuda(site: Path) -> None:
    with pytest.raises(NotRun, match="no CUDA libraries"):
        requested.linked_cuda("cpu")
