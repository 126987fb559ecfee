"""What uv says when it finds nothing, in our words."""

from __future__ import annotations

import pytest

from reprobuild.host.process import Completed
from reprobuild.resolve.uv_command import _refusal


def refusal(text: str, backend: str | None = None) -> tuple[str, str]:
    found = _refusal(Completed(returncode=1, stdout=b"", stderr=text.encode()), None, backend)
    return found.message, found.hint


def test_thousands_of_lines_are_cut() -> None:
    message, _ = refusal("\n".join(f"Because a=={n} depends on b" for n in range(2742)))
    assert len(message.splitlines()) == 21
    assert message.endswith("and 2722 more lines of uv's reasons")


def test_an_index_that_cannot_be_reached() -> None:
    text = "error: Request failed after 3 retries\n  Caused by: Failed to fetch: `https://index.example/cu118/a/`"
    message, hint = refusal(text, "cu118")
    assert message.startswith("PyTorch's own index cannot be reached: ")
    assert (hint.startswith("check the network"), "correct the versions" in hint) == (True, False)
    assert "take index out" not in refusal(text)[1]


def test_a_build_that_only_pytorch_s_index_has() -> None:
    text = "No solution found\nBecause there is no version of torch==2.4.1+cpu and you require it"
    assert refusal(text)[1] == "PyTorch's own index may have that build: give --index pytorch"
    assert "give --index" not in refusal(text, "cpu")[1]


@pytest.mark.parametrize(
    ("name", "meant"),
    [("sklearn", "scikit-learn"), ("tranformers", "transformers"), ("sent-of-nobody", None)],
)
def test_a_misspelt_name(name: str, meant: str | None) -> None:
    hint = refusal(f"Because {name} was not found in the package registry and you require {name}")[1]
    assert (f"{name}: perhaps {meant}" in hint) == (meant is not None)
    assert ("perhaps" in hint) == (meant is not None)
