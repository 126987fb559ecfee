"""Split a package that is too large for one layer: assign its files to several layers. Pure.

Engines pull and unpack layers beside one another, so one of a gigabyte bounds them all. The cut is a function
of the package's own files: nothing else in an image moves it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

PART_BYTES = 450_000_000
"""Of a wheel as it is fetched; zstd makes about the same of it, and layers are to stay below 500 MB."""

CONDA_PART_BYTES = 300_000_000
"""Of a conda package as it is fetched: compressed with more effort than a layer is."""

_RUN = 16_000_000
"""Bytes of neighbouring small files that stay together."""


def parts_of(size: int, bound: int) -> int:
    """Return in how many parts a package of so many bytes is cut."""
    return max(1, -(-size // bound))


def cut(sizes: Mapping[str, int], first: Collection[str], parts: int) -> dict[str, int]:
    """Return the number of the part, from 0, for each path.

    ``sizes`` has the bytes of each file, compressed where that is known. Those in ``first`` go into the first
    part; of the others the largest is placed first, each time where there is least. A file is never cut, so a
    part may be as large as the largest file.
    """
    found = dict.fromkeys(first, 0)
    loads = [sum(sizes[path] for path in found), *[0] * (parts - 1)]
    for size, run in sorted(_runs(sizes, found), key=lambda each: (-each[0], each[1][0])):
        part = loads.index(min(loads))
        loads[part] += size
        found |= dict.fromkeys(run, part)
    return found


def _runs(sizes: Mapping[str, int], without: Collection[str]) -> list[tuple[int, list[str]]]:
    """Return the bytes and the paths of each large file and of each run of small ones, by path."""
    found: list[tuple[int, list[str]]] = []
    size, run = 0, list[str]()
    for path in sorted(path for path in sizes if path not in without):
        if sizes[path] >= _RUN:
            found.append((sizes[path], [path]))
            continue
        size += sizes[path]
        run.append(path)
        if size >= _RUN:
            found.append((size, run))
            size, run = 0, []
    return found + ([(size, run)] if run else [])
