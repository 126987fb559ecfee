"""Archives that nobody makes by accident."""

from __future__ import annotations

import tarfile


def long_header(size: int = 1 << 30) -> bytes:
    """The start of a tar whose first PAX header says that it has so many bytes."""
    info = tarfile.TarInfo("././@PaxHeader")
    info.type, info.size = tarfile.XHDTYPE, size
    return info.tobuf(tarfile.USTAR_FORMAT) + bytes(10240)
