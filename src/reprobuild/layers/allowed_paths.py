"""Paths that a package may put into an image, and those reserved for reprobuild. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..errors import BuildError
from ..in_image.manifest import reserved

_LONGEST = 4096
_LONGEST_NAME = 255
_CUSTOM = re.compile(
    r"/opt/venv/(local/)?lib/python3[^/]*/(dist-packages/)?(__pycache__/)?(site|user)customize([./].*)?"
)
"""In the other folders of the environment where Python may look for it: conda's library, Debian's folders."""
_REFUSED = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""A backslash, control characters, what ends a line in Unicode, and bytes that are not text."""


def is_plain(path: str) -> bool:
    """Whether a path is relative, leads nowhere but down, and prints as one line of text."""
    parts = path.split("/")
    return (
        not {"", ".", ".."}.intersection(parts)
        and _REFUSED.search(path) is None
        and len(path.encode()) <= _LONGEST
        and all(len(part.encode()) <= _LONGEST_NAME for part in parts)
    )


def refuse_own_names(paths: Iterable[str], whose: str) -> None:
    """Raise `BuildError` for a path, without a leading slash, that is `reserved` or a ``sitecustomize``."""
    for path in paths:
        if reserved(f"/{path}") or _CUSTOM.fullmatch(f"/{path}"):
            raise BuildError(
                f"{whose}: has the file {'/' + path!a}, a name that is reprobuild's own, or of a module that "
                "Python runs at every start",
                hint="use another version of it; this one would change what the self-test has tested",
            )
