"""A snapshot archive of Debian's: every state that Debian ever had, and every file by its SHA-1.

The scheme is that of the software which Debian runs for it, and which debsnap(1) speaks too:
``/archive/ARCHIVE/TIME/…`` is a mirror as it was, ``/mr/binary/…`` finds a file, ``/file/SHA1`` has it.
No address of one is built in: a variable names it.
"""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from datetime import date
from urllib.parse import quote

import requests

from ..errors import HostError
from ..lock.packages import DebianPackage
from ..net.session import scrub, session
from .debian_mirrors import MAIN, SECURITY, Mirror, keyring, mirrors, suites

log = logging.getLogger(__name__)

VARIABLE = "REPROBUILD_SNAPSHOT"


def address() -> str | None:
    """Return the root of the snapshot archive that the user has named, without a slash at the end."""
    return os.environ.get(VARIABLE, "").rstrip("/") or None


def dated_mirrors(suite: str, day: date) -> dict[str, tuple[Mirror, ...]] | None:
    """Return Debian's archives as of the start of a day (UTC); None if no snapshot is configured."""
    root = address()
    if root is None:
        return None
    found: dict[str, tuple[Mirror, ...]] = {}
    with suppress(HostError):  # a machine that is no Debian
        found = mirrors(suite)
    signed_by = next((each.signed_by for every in found.values() for each in every), "") or keyring()
    return {
        key: (Mirror(url=_state(root, key, day), suites=suites(key, suite), signed_by=signed_by),)
        for key in (MAIN, SECURITY)
    }


def addresses(package: DebianPackage, day: date | None) -> tuple[str, ...]:
    """Return where a snapshot archive has a locked package; none where it is not found."""
    root = address()
    if root is None:
        return ()
    path = quote(package.path, safe="/~")
    found = [] if day is None else [f"{_state(root, package.archive, day)}/{path}"]
    # What it finds by name is not trusted: the bytes must have the SHA-256 of the lock.
    asked = f"{root}/mr/binary/{quote(package.name)}/{quote(package.version, safe='')}/binfiles"
    try:
        with session() as http:
            answer = http.get(asked, params={"fileinfo": "1"})
        rows = answer.json()["result"] if answer.ok else []
        hashes = [str(row["hash"]) for row in rows if row["architecture"] == package.architecture]
    except (requests.RequestException, ValueError, KeyError, TypeError, RecursionError) as error:
        log.debug("%s: %s", scrub(asked), scrub(str(error)))
        hashes = []
    return (*found, *(f"{root}/file/{each}" for each in hashes if re.fullmatch("[0-9a-f]{40}", each)))


def _state(root: str, archive: str, day: date) -> str:
    return f"{root}/archive/{archive}/{day:%Y%m%d}T000000Z"
