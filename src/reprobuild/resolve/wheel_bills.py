"""The bills of materials in a wheel (PEP 770): what its binaries were built from.

A stranger has written them: only a few fields are taken over, each of a known form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..fetch.wheel_zip import opened
from ..lock.bill import Facts
from ..lock.packages import PythonPackage

_BILL = re.compile(r"[^/]+\.dist-info/sboms/.+")
_MOST = 8 << 20
"""Bytes of a bill."""
_MOST_PARTS = 10_000
"""Components of a wheel."""
_LONGEST = 500
"""Characters of a name, a version or a purl."""
_TYPES = frozenset(
    ("application", "framework", "library", "container", "platform", "operating-system", "device", "firmware")
) | {"device-driver", "file", "machine-learning-model", "data", "cryptographic-asset"}
"""Of components (CycloneDX 1.6)."""


def with_own_bills(facts: Facts, package: PythonPackage, wheel: Path) -> Facts:
    """Return the facts of a wheel with what its own bills say. Raises `BuildError` if it is not a wheel."""
    parts: list[Mapping[str, str]] = []
    unread: list[str] = []
    with opened(wheel, package.name) as archive:
        for info in sorted(archive.infolist(), key=lambda info: info.filename):
            if not _BILL.fullmatch(info.filename) or info.is_dir():
                continue
            found = None if info.file_size > _MOST else _parts(archive.read(info))
            if found is None or len(parts) + len(found) > _MOST_PARTS:
                unread.append(info.filename[:_LONGEST])
            else:
                parts += found
    unique = {tuple(sorted(part.items())): part for part in parts}
    return replace(facts, parts=[unique[key] for key in sorted(unique)], unread=unread)


def _parts(data: bytes) -> list[Mapping[str, str]] | None:
    """Return the components of a bill; None if it is not CycloneDX JSON."""
    try:
        table = json.loads(data)
        if table.get("bomFormat") != "CycloneDX":
            return None
        return [part for each in _components(table) if (part := _part(each))]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _components(table: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the components of a table, and those in them."""
    for each in table.get("components") or ():
        yield each
        yield from _components(each)


def _part(table: Mapping[str, Any]) -> Mapping[str, str]:
    """Return what is taken over of a component; empty where it has no name."""
    texts = {key: table.get(key) for key in ("name", "version", "purl")}
    found = {
        key: text
        for key, text in texts.items()
        if isinstance(text, str) and 0 < len(text) <= _LONGEST and text.isprintable()
    }
    if "name" not in found:
        return {}
    kind = table.get("type")
    hashes = [h.get("content") for h in table.get("hashes") or () if h.get("alg") == "SHA-256"]
    sha256 = next((h for h in hashes if isinstance(h, str) and re.fullmatch("[0-9a-f]{64}", h)), None)
    return {
        "type": kind if isinstance(kind, str) and kind in _TYPES else "library",
        **found,
        **({"sha256": sha256} if sha256 else {}),
    }
