"""Which paths a package may put into an image, and which are reprobuild's alone. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..errors import BuildError
from ..request.profiles import OWN_FOLDER

_LONGEST = 4096
_LONGEST_NAME = 255
_REFUSED = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""A backslash, control characters, what ends a line in Unicode, and bytes that are not text."""
_OWN = re.compile(
    rf"{OWN_FOLDER.lstrip('/')}(/.*)?|(.*/)?(reprobuild_hook(\.[^/]*)?|reprobuild\.pth)(/.*)?", re.DOTALL
)
_STARTS = re.compile(r"(__pycache__/)?(sitecustomize|usercustomize)(\..*|/.*)?", re.DOTALL)
"""Modules that Python runs at every start, by their path in site-packages."""


def is_plain(path: str) -> bool:
    """Whether a path is relative, leads nowhere but down, and prints as one line of text."""
    parts = path.split("/")
    return (
        not {"", ".", ".."}.intersection(parts)
        and _REFUSED.search(path) is None
        and len(path.encode()) <= _LONGEST
        and all(len(part.encode()) <= _LONGEST_NAME for part in parts)
    )


def refuse_own_names(paths: Iterable[str], site: str, whose: str) -> None:
    """Raise `BuildError` for a path in the image, without a leading slash, that is reprobuild's alone.

    Python would import a file, package, library or bytecode of the hook's name in place of the hook, and the
    self-test one that lies beside it. ``site`` is where ``whose`` Python packages go; there, what Python runs
    at every start is refused as well. A Debian or a base image may have that of its own: ``site`` is empty.
    """
    for path in paths:
        starts = site and path.startswith(f"{site}/") and _STARTS.fullmatch(path[len(site) + 1 :])
        if starts or _OWN.fullmatch(path):
            raise BuildError(
                f"{whose}: has the file /{path}, a name that "
                + ("Python runs at every start" if starts else "is reprobuild's own"),
                hint="take another version of it; it would change what the self-test has tested",
            )
