"""Stand-ins for packages without a wheel: an empty wheel of exactly that version for each.

Of what conda brings, so that uv picks wheels that fit conda's versions, and says so where none does: those
versions end in ``+conda``, which no index has. And of what is built from source (`sources`). None of them
comes into a lock.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

MARK = "conda"


def write_standins(folder: Path, provided: Mapping[str, str]) -> Mapping[str, str]:
    """Write a wheel for each package, name → version, that pip could know; return those, versions as marked.

    conda has more kinds of names and versions than Python packages have; what is none of those is left out.
    """
    written = {}
    for name, text in sorted(provided.items()):
        try:
            version = Version(text)
        except InvalidVersion:
            continue
        if canonicalize_name(name) != name or not name.replace("-", "").isalnum():
            continue
        marked = f"{version}.{MARK}" if version.local else f"{version}+{MARK}"
        stem = f"{name.replace('-', '_')}-{marked}"
        (folder / f"{stem}-py3-none-any.whl").write_bytes(standin(name, marked))
        written[name] = marked
    return written


def standin(name: str, version: str, metadata: bytes | None = None) -> bytes:
    """Return a wheel of metadata only: those given, else ones without requirements."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    plain = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {
        "METADATA": plain if metadata is None else metadata,
        "WHEEL": "Wheel-Version: 1.0\nGenerator: reprobuild\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for file, text in files.items():
            archive.writestr(f"{info}/{file}", text)
    return out.getvalue()
