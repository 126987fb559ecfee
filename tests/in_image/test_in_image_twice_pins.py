"""What an experiment pins is the same in each run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from support.twice import PROGRAMS, recorded


def printed(tmp_path: Path, settings: Mapping[str, str]) -> list[bytes]:
    """What a program prints of what it takes from outside, in two runs."""
    program = recorded(sys.executable, [str(PROGRAMS / "without_torch.py"), "drawn"])
    outputs = []
    for run in (1, 2):
        folder = tmp_path / f"{len(settings)} {run}"
        folder.mkdir()
        ran = program(folder, {"REPROBUILD_TWICE_EVERY": "1", **settings}, 30)
        assert (ran.status, ran.stderr) == (0, b"")
        outputs.append(ran.stdout)
    return outputs


KINDS = (
    "draw",
    "entropy",
    "process",
    "address",
    "name",
    "listing",
    "seed",
    "order",
    "mtime",
    "clock",
    "commands",
)


def test_what_is_pinned_is_the_same_in_each_run(tmp_path: Path) -> None:
    one, other = ([line.split(b" ", 1) for line in text.splitlines()] for text in printed(tmp_path, {}))
    differ = {x[0].decode() for x, y in zip(one, other, strict=True) if x != y}
    assert differ >= set(KINDS) - {"listing", "order"}  # whose order is mostly the same
    pins = "\n".join(f"{kind}\t0\t" for kind in KINDS)
    one, other = (
        [line.split(b" ", 1) for line in text.splitlines()]
        for text in printed(tmp_path, {"REPROBUILD_TWICE_PIN": pins})
    )
    assert one == other
