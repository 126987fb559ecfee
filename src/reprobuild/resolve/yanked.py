"""Locked files that their index has yanked (PEP 592), or no longer has."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import requests

from ..errors import ResolveError
from ..lock.packages import PythonPackage
from .index_page import files

_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A locked package whose file is yanked, missing, or not to be judged."""

    name: str
    version: str
    reason: str


def find_withdrawn(packages: Iterable[PythonPackage], session: requests.Session) -> tuple[Withdrawn, ...]:
    """Return the packages whose file the index has yanked or does not have, each with the reason.

    Files are told by their SHA-256. A package from an address of its own is on no index, and left out.
    """
    asked = [package for package in packages if package.source is None or not package.source.address]
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        reasons = list(threads.map(partial(_reason, session=session), asked))
    return tuple(
        Withdrawn(package.name, package.version, reason)
        for package, reason in zip(asked, reasons, strict=True)
        if reason
    )


def _reason(package: PythonPackage, session: requests.Session) -> str:
    try:
        found = [each.package for each in files(package.name, session)]
    except ResolveError as error:
        return f"not known: {error.message}"
    same = [each for each in found if each.digests.get("sha256") == package.file.sha256]
    # An index may give no hashes.
    same = same or [
        each for each in found if each.filename == package.file.filename and "sha256" not in each.digests
    ]
    if not same:
        return "not on the index, or with other bytes"
    if all(each.is_yanked for each in same):
        return (
            f"yanked: {next((each.yanked_reason for each in same if each.yanked_reason), 'no reason given')}"
        )
    return ""
