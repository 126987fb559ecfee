"""What compiles at run time is told when the lock is made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reprobuild.lock.compilers import compiler_hint
from reprobuild.lock.model import Lock
from support.locks import LOCK
from support.resolving import debian


def with_apt(*names: str) -> Lock:
    return replace(LOCK, debian=[*LOCK.debian, *(debian(name, "1") for name in names)])


LACKS = "which the image will not have; if you use them, add apt = "
BOTH = f'need a C++ compiler and Python\'s headers, {LACKS}["g++", "python3.11-dev"] to the request'


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], BOTH),
        (["g++"], f"need Python's headers, {LACKS}"),
        (["clang-16", "python3.11-dev"], ""),
        (["g++", "python3.11-dev"], ""),
    ],
)
def test_triton_needs_a_compiler_and_headers(names: list[str], words: str) -> None:
    assert "triton" in LOCK.distributions
    found = compiler_hint(with_apt(*names))
    assert words in found
    assert found.startswith("torch.compile and Triton kernels need ") if words else found == ""


def test_a_lock_in_which_nothing_compiles_says_nothing() -> None:
    assert compiler_hint(replace(LOCK, python=[p for p in LOCK.python if p.name != "triton"])) == ""
