"""Remember what apt resolved, for as long as the archives are in the same state.

The state of an archive is its signed list, InRelease: it has the hash of each index of packages, and apt has
verified its signature. While a mirror serves the same bytes of it, the same request has the same answer.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import requests

from ..errors import ReprobuildError
from ..fetch.debian_mirrors import Mirror, mirrors
from ..host.home import atomic_write
from ..host.host import Host
from ..host.process import require
from ..host.verified import read_sealed, sealed
from ..lock.packages import DebianPackage
from ..net.session import session
from ..request.table import Table
from .debian import DebianRequest, resolve_debian_state

_DATES = re.compile(rb"^(Date|Valid-Until): ([ -~]+)$", re.MULTILINE)

_FORMAT = 1
"""Raise it when `resolve_debian_state` would give another answer, or when records are of another form."""


def resolve_debian_unless_known(wanted: DebianRequest, host: Host) -> tuple[DebianPackage, ...]:
    """Return what `resolve_debian` does; apt is asked only if an archive has changed since the last time.

    Raises as `resolve_debian` does.
    """
    served = mirrors(wanted.suite)
    record = host.home.folder("resolved") / _name(wanted, served)
    before = _read(record)
    if before is not None and (known := _packages(before)) and before["releases"] == _releases(served):
        return known
    found = resolve_debian_state(wanted, keep={}, console=host.console)
    packages = [package.table() for package in found.packages]
    table = {"releases": sorted(found.releases), "packages": packages}
    atomic_write(record, sealed(record.name, json.dumps(table).encode()), sync=False)
    return found.packages


def _name(wanted: DebianRequest, served: Mapping[str, Sequence[Mirror]]) -> str:
    """Return the name of the record of a request: a hash of all that the answer depends on but the archives.

    Another release of apt may choose otherwise, and another keyring may trust other archives.
    """
    every = [mirror for found in served.values() for mirror in found]
    files = {require("apt-get", "to resolve Debian packages"), *(mirror.signed_by for mirror in every)}
    changes = [(file, _changed(file)) for file in sorted(files)]
    facts = (_FORMAT, wanted, sorted(map(repr, served.items())), changes)
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _changed(file: str) -> int:
    """Return when a file was changed, in nanoseconds; 0 where the text names none."""
    with suppress(OSError, ValueError):
        return Path(file).stat().st_mtime_ns
    return 0


def _read(record: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(read_sealed(record))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _packages(table: Mapping[str, Any]) -> tuple[DebianPackage, ...]:
    """Return the packages in a record; none if they are of another form."""
    try:
        return tuple(DebianPackage.read(Table(each)) for each in table["packages"])
    except (KeyError, TypeError, ValueError):
        return ()


def _releases(served: Mapping[str, Iterable[Mirror]]) -> list[str] | None:
    """Return the SHA-256 of the signed lists that the mirrors serve now.

    None where one cannot be read or apt would refuse it for its date: apt says why.
    """
    urls = sorted(
        {f"{m.url}/dists/{suite}/InRelease" for found in served.values() for m in found for suite in m.suites}
    )
    if not all(url.startswith(("http://", "https://")) for url in urls):
        return None
    try:
        with session(retries=0) as http, ThreadPoolExecutor(len(urls), "release") as pool:
            texts = list(pool.map(lambda url: _get(http, url), urls))
        if not all(_is_current(text, datetime.now(UTC)) for text in texts):
            return None
    except (ReprobuildError, requests.RequestException, ValueError, KeyError, OverflowError):
        return None
    return sorted(hashlib.sha256(text).hexdigest() for text in texts)


def _get(http: requests.Session, url: str) -> bytes:
    with http.get(url) as answer:
        answer.raise_for_status()
        return answer.content


def _is_current(release: bytes, now: datetime) -> bool:
    """Whether a list is of no future day and has not expired. By lines: the fields are of 100,000 bytes."""
    dates = {key: parsedate_to_datetime(text.decode()) for key, text in _DATES.findall(release)}
    return dates[b"Date"] <= now <= dates.get(b"Valid-Until", now)
