"""What the check of attention says of a backend that fails."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest import operations
from reprobuild.in_image.selftest.outcomes import NOTES


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let every backend but MATH fail with an error."""
    monkeypatch.setattr(operations, "attention_by", lambda _: contextlib.nullcontext())

    def fail(error: str) -> None:
        def attended(_: str, backend: str) -> dict[str, object]:
            if backend != "MATH":
                raise RuntimeError(error)
            return {"output": 1.0}

        monkeypatch.setattr(operations, "attended", attended)

    return fail


@pytest.mark.parametrize(
    "error",
    [
        "CUDA out of memory. Tried to allocate 20.00 MiB.",
        "CUDA error: an illegal memory access was encountered",
        "bmm does not have a deterministic implementation",
    ],
)
def test_an_error_of_a_backend_is_not_taken_for_one_that_is_missing(
    failing: Callable[[str], None], error: str
) -> None:
    failing(error)
    with pytest.raises(RuntimeError, match=error):
        operations.attention("cuda")


def test_a_backend_that_is_missing_is_named(failing: Callable[[str], None]) -> None:
    NOTES.clear()
    failing("No available kernel. Aborting execution.")
    assert operations.attention("cuda") == {"MATH output": 1.0}
    assert "FLASH_ATTENTION: not available here" in NOTES
