"""Streams of two runs, as a trace has them.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reprobuild.twice.causes import Cause, find_cause
from reprobuild.twice.first_difference import Parting
from reprobuild.twice.records import Operation, ProgramLine, Source, Stream

PARTING = Parting(kind="value", stream="", moment=0, label="step 0 (SGD)", part="loss")


def at(line: int, text: str = "") -> ProgramLine:
    return ProgramLine("/code/train.py", line, "train", text)


def op(line: int, out: str, *inputs: tuple[str, int], name: str = "mul.Tensor", **more: Any) -> Operation:
    """Return an operation at a line: the digests of its output and inputs, and what made these."""
    made = Operation(
        name=name, inputs=inputs, outputs=(out,), place=at(line), plain="", kept=(-1,),
        shapes=("float32[4] cpu",), module="", backward=False, deterministic=True, thread="", empty=False,
        moment=0, sources=99,
    )  # fmt: skip
    return replace(made, **more)


def stream(
    *operations: Operation, rank: str = "", worker: str = "", sources: Sequence[Source] = ()
) -> Stream:
    return Stream(
        rank=rank, worker=worker, process="MainProcess", argv=("train.py",), values=Path("none"),
        operations=list(operations), sources=list(sources),
    )  # fmt: skip


def cause(one: Stream | list[Stream], other: Stream | list[Stream], parting: Parting = PARTING) -> Cause:
    sides = [each if isinstance(each, list) else [each] for each in (one, other)]
    found = find_cause(sides[0], sides[1], parting)
    assert found is not None
    return found


def backward(out: str, *inputs: tuple[str, int]) -> Operation:
    return op(9, out, *inputs, name="mul_backward.default", backward=True)
