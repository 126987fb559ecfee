"""Resolve a path in an image, following links as Linux does. Pure."""

from __future__ import annotations

import posixpath
from collections import deque
from collections.abc import Mapping

from ..oci.tar_fields import MOST_PATH
from ..oci.tar_writer import Record

_MOST_LINKS = 40
"""Most links in one path (Linux, path_resolution(7))."""


_MOST_PARTS = 1024
"""Parts of one path, with those of its links: four times what a layer's paths may have."""


def resolve(path: str, files: Mapping[str, Record]) -> str | None:
    """Return a path without links and leading slash, whether or not a file is there.

    None for what no process can open: a loop of links, or a path longer than Linux takes.
    """
    links = parts = 0
    if len(path) > MOST_PATH:
        return None
    left = deque(path.split("/"))
    real: list[str] = []
    while left:
        part, parts = left.popleft(), parts + 1
        if parts > _MOST_PARTS:
            return None
        if part in ("", "."):
            continue
        if part == "..":
            del real[-1:]
            continue
        real.append(part)
        record = files.get("/".join(real))
        if record is None or record.kind != "link":
            continue
        links += 1
        if links > _MOST_LINKS:
            return None
        real = [] if record.content.startswith("/") else real[:-1]
        left.extendleft(reversed(record.content.split("/")))
    return "/".join(real)


def folders(text: str, start: str, files: Mapping[str, Record]) -> list[str]:
    """Return the folders of a variable such as PATH, links followed; ``start``: the working directory.

    An empty part stands for the working directory (environ(7)).
    """
    found = (resolve(posixpath.join(start, part), files) for part in text.split(":"))
    return list(dict.fromkeys(each for each in found if each is not None)) if text else []
