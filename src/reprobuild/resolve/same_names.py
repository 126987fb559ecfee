"""Locked files that another configured index has with the same name and other bytes.

uv takes the file of the first index that knows the package, and says nothing of the others; who asks them in
another order gets another image: https://github.com/astral-sh/uv/issues/16784
"""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import urlsplit

import requests

from ..errors import ResolveError
from ..lock.packages import PythonPackage
from ..net.index_settings import find_links
from ..net.session import indexes, without_credentials
from .index_page import File, index_files, linked_files

_AT_ONCE = 16
_SHOWN = 12
"""Digits of a SHA-256."""
_UNKNOWN = " is unknown: "


def other_bytes(packages: Collection[PythonPackage], session: requests.Session, own: str = "") -> list[str]:
    """Return a line for each file that differs on another index, or whose index is unreachable.

    ``own`` is the host of an index of the request's own, as PyTorch's is: the user's are asked for all that
    is from there. The default index is asked for packages that one of the others knows, too.
    """
    places = (*find_links(), *indexes().all)
    asked = [p for p in packages if p.source is None or not p.source.address]
    if len(set(places)) < 2:
        asked = [p for p in asked if own and urlsplit(p.file.url).netloc == own]
    with ThreadPoolExecutor(_AT_ONCE, "same-names") as pool:
        found = list(pool.map(partial(_lines, places=places, session=session, own=own), asked))
    # Of an index that does not answer, the first project's reason is enough.
    return list({line.partition(_UNKNOWN)[0]: line for lines in reversed(found) for line in lines}.values())


def _lines(package: PythonPackage, places: Collection[str], session: requests.Session, own: str) -> list[str]:
    *others, default = places
    lines: list[str] = []
    known = bool(own) and urlsplit(package.file.url).netloc == own
    for place in [*others, default]:
        if place == default and not known:
            break
        try:
            found = _files(place, package.name, session)
        except ResolveError as error:
            lines.append(f"whether {without_credentials(place)} has other bytes{_UNKNOWN}{error.message}")
            known = True
            continue
        known = known or bool(found)
        same = [file for file in found if file.package.filename == package.file.filename]
        if not all(file.sha256 for file in same):
            lines.append(
                f"whether {without_credentials(place)} has other bytes under the name "
                f"{package.file.filename}{_UNKNOWN}it gives no SHA-256"
            )
        lines += [
            f"{package.file.filename} is locked from {without_credentials(package.file.url)} (SHA-256 "
            f"{package.file.sha256[:_SHOWN]}…), and {without_credentials(place)} has other bytes under that "
            f"name ({sha256[:_SHOWN]}…): set up only the index that you trust, or name it first"
            for sha256 in sorted({file.sha256 for file in same} - {package.file.sha256, ""})
        ]
    return lines


def _files(place: str, project: str, session: requests.Session) -> list[File]:
    if place in find_links():
        return linked_files(place, project, session)
    return (index_files(place, project, session) or []) if place.startswith(("http://", "https://")) else []
