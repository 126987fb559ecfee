"""Refuse paths in an image that are reserved for reprobuild. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..errors import BuildError
from ..in_image.manifest import reserved

_CUSTOM = re.compile(
    r"/opt/venv/(local/)?lib/python3[^/]*/(dist-packages/)?(__pycache__/)?(site|user)customize([./].*)?"
)
"""In the other folders of the environment where Python may look for it: conda's library, Debian's folders."""


def refuse_own_names(paths: Iterable[str], whose: str) -> None:
    """Raise `BuildError` for a path, without a leading slash, that is `reserved` or a ``sitecustomize``."""
    for path in paths:
        if reserved(f"/{path}") or _CUSTOM.fullmatch(f"/{path}"):
            raise BuildError(
                f"{whose}: has the file {'/' + path!a}, a name that is reprobuild's own, or of a module that "
                "Python runs at every start",
                hint="use another version of it; this one would change what the self-test has tested",
            )
