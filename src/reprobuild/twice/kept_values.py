"""The values of tensors that a trace kept: how far those of two runs are apart. Reads files."""

from __future__ import annotations

import math
import re
from pathlib import Path

from ..host.home import open_regular
from ..selftest.distance import largest_ulp
from .records import Operation, Stream

_SHAPE = re.compile(r"([a-z0-9]+)\[([0-9, ]*)\] \S+")
_WIDTHS = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
MOST_VALUES = 8 << 20


def ulp_apart(a: Operation, b: Operation, streams: tuple[Stream, Stream]) -> int | None:
    """Return the largest distance between the outputs of two operations; None if no values were kept."""
    distances = []
    for at, (x, y) in enumerate(zip(a.outputs, b.outputs, strict=False)):
        if x == y or at >= min(len(a.kept), len(b.kept)) or min(a.kept[at], b.kept[at]) < 0:
            continue
        shape = _SHAPE.fullmatch(a.shapes[at])
        if shape is None or shape[1] not in _WIDTHS:
            continue
        sizes = [int(size) for size in shape[2].split(",") if size.strip()]
        size = math.prod(sizes) * _WIDTHS[shape[1]]
        if not 0 < size <= MOST_VALUES:
            continue
        one, other = (
            _values(streams[0].values, a.kept[at], size),
            _values(streams[1].values, b.kept[at], size),
        )
        found = largest_ulp(one, other, shape[1]) if len(one) == len(other) == size else None
        if found is not None:
            distances.append(found)
    return max(distances, default=None)


def _values(path: Path, at: int, size: int) -> bytes:
    try:
        if path.is_symlink():
            return b""
        with open_regular(path) as file:
            file.seek(at)
            return file.read(size)
    except OSError:
        return b""
