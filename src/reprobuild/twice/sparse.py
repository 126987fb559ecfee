"""Digest of a file's bytes that skips its holes, which equal zeros."""

from __future__ import annotations

import errno
import hashlib
import os

PIECE = 1 << 20
_ZEROS = bytes(PIECE)


def sparse_digest(file: int, start: int, size: int, kind: bytes = b"") -> str:
    """Return the SHA-256 over ``kind``, ``size``, and the pieces from ``start`` on with their places, but
    those that are all zero. A file that ends before that is taken as far as it goes.

    So a file of many gigabytes need not have them, and one with zeros in place of holes is the same.
    """
    found = hashlib.sha256(b"%d:%s" % (size, kind))
    at, end = start, start + size
    while at < end:
        try:
            data = os.lseek(file, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # the rest is a hole
                break
            raise
        at = max(at, start + (data - start) // PIECE * PIECE)
        piece = os.pread(file, min(PIECE, end - at), at)
        if not piece:
            break
        if piece != _ZEROS[: len(piece)]:
            found.update(b"%d:" % (at - start) + piece)
        at += len(piece)
    return found.hexdigest()
