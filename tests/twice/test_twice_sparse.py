"""Digests of files with holes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reprobuild.twice.sparse import PIECE, sparse_digest


@pytest.mark.parametrize("start", [0, 1, 4095, PIECE + 17])
def test_a_hole_is_zeros_and_every_other_byte_and_its_place_count(start: int, tmp_path: Path) -> None:
    def digest(*at: int, hole: bool, size: int = 3 * PIECE) -> str:
        path = tmp_path / "file"
        path.write_bytes(b"" if hole else bytes(start + size))
        with path.open("r+b") as file:
            os.truncate(file.fileno(), start + size)
            for place in at:
                os.pwrite(file.fileno(), b"x", start + place)
            return sparse_digest(file.fileno(), start, size)

    assert digest(hole=True) == digest(hole=False)
    places = [0, 5, PIECE - 1, PIECE, 2 * PIECE, 3 * PIECE - 1]
    for at in places:
        assert digest(at, hole=True) == digest(at, hole=False)
    assert len({digest(at, hole=True) for at in places} | {digest(hole=True)}) == len(places) + 1
    assert digest(hole=True) != digest(hole=True, size=3 * PIECE - 1)


def test_a_file_that_cannot_be_read_is_not_taken_for_a_hole(tmp_path: Path) -> None:
    closed = os.open(tmp_path, os.O_RDONLY)
    os.close(closed)
    with pytest.raises(OSError, match="Bad file descriptor"):
        sparse_digest(closed, 0, 1)
