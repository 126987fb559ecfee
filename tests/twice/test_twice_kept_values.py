from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from reprobuild.twice.kept_values import ulp_apart
from reprobuild.twice.records import Operation, ProgramLine, Stream

ADDED = Operation(
    name="add.Tensor",
    inputs=(),
    plain="",
    outputs=("a",),
    kept=(4,),
    shapes=("float32[2] cpu",),
    place=ProgramLine("train.py", 1, "main", ""),
    module="",
    backward=False,
    deterministic=True,
    thread="",
    empty=False,
    moment=0,
    sources=0,
)


@pytest.mark.parametrize(
    ("digest", "kept", "shape", "apart"),
    [
        ("b", 4, "float32[2] cpu", 3),
        ("a", 4, "float32[2] cpu", None),  # they are equal
        ("b", -1, "float32[2] cpu", None),
        ("b", 4, "int64[1] cpu", None),
        ("b", 4, "float32[1000] cpu", None),  # the file is too short
    ],
)
def test_kept_values_are_as_far_apart_as_their_bytes(
    digest: str, kept: int, shape: str, apart: int | None, tmp_path: Path
) -> None:
    streams = []
    for name, bits in (("one", (0x3F800000, 0x40000000)), ("other", (0x3F800001, 0x40000003))):
        (tmp_path / name).write_bytes(b"head" + struct.pack("<2I", *bits))
        streams.append(
            Stream(rank="", worker="", process="MainProcess", argv=("train.py",), values=tmp_path / name)
        )
    one = replace(ADDED, shapes=(shape,))
    other = replace(one, outputs=(digest,), kept=(kept,))
    assert ulp_apart(one, other, (streams[0], streams[1])) == apart
