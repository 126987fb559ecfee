"""The CUDA of a file that names none or its own."""

from __future__ import annotations

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports.choose_cuda import ChosenCuda, choose_cuda
from reprobuild.imports.recognize import read_import
from support.fixtures import fixtures_of
from support.team_files import PYTORCH, Write, table

globals().update(fixtures_of("support.team_files"))


@pytest.mark.parametrize(
    "line",
    [
        "torch @ https://download.{host}/whl/cu118/torch-2.0.1%2Bcu118-cp311-cp311-linux_x86_64.whl",
        "https://download.{host}/whl/cu118/torch-2.0.1%2Bcu118-cp311-cp311-linux_x86_64.whl",
    ],
)
def test_a_wheel_of_pytorch_s_index_is_its_version(write: Write, line: str) -> None:
    found = table(write("requirements.txt", line.format(host=PYTORCH)))
    assert (found["torch"], found["cuda"], found["index"]) == ("2.0.1+cu118", "11.8", "pytorch")


def test_torch_from_elsewhere_is_refused(write: Write) -> None:
    file = write("requirements.txt", "torch @ https://h.example/torch-2.0.1-cp311-cp311-linux_x86_64.whl\n")
    with pytest.raises(RequestError, match="torch comes from an address"):
        table(file, cuda="cpu")


def test_no_word_of_cuda_is_an_error(write: Write) -> None:
    with pytest.raises(RequestError, match="does not say which CUDA") as caught:
        table(write("requirements.txt", "torch==2.4.1"))
    assert "--cuda" in caught.value.hint


@pytest.mark.parametrize(
    ("flags", "line", "existing", "chosen"),
    [
        ({"cuda": "12.1"}, "nvidia-cuda-runtime-cu11==11.8.89", "12.4", "12.1"),
        ({}, "nvidia-cuda-runtime-cu11==11.8.89", "12.4", "11.8"),
        ({}, "torch>=2", "12.4", "12.4"),
        ({}, "torch>=2", None, "13.0"),
        ({"torch": "2.9"}, "torch>=2", "12.4", None),
    ],
)
def test_the_first_that_names_a_cuda_version_counts(
    write: Write, flags: dict[str, str], line: str, existing: str | None, chosen: str | None
) -> None:
    """The flag, the file, the request of that name, the newest torch; with --torch the first two."""
    imported = read_import(write("requirements.txt", f"{line}\n"))
    newest = ChosenCuda("13.0", "2.11.0")

    def choice() -> str:
        found = choose_cuda(imported, flags, of_request=lambda _: existing, newest=lambda *_: newest)
        assert (found.torch is not None) == (found is newest)
        return found.cuda

    if chosen is None:
        with pytest.raises(RequestError, match="does not say which CUDA PyTorch is for"):
            choice()
    else:
        assert choice() == chosen
