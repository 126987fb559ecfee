"""Files of this machine that a lock names by a ``file:`` address: only where the user's own settings point.

A lock may be a stranger's, from a pull request: that a file is there, its size and its hash are told by the
errors of a build. Source of the settings: `index_settings`.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ..errors import FetchError
from .index_settings import find_links, indexes

VARIABLE = "REPROBUILD_LOCAL_FILES"
"""Further folders, with colons between them, whose files a lock may name."""


def file_path(url: str) -> Path:
    """Return the path that a ``file:`` address names."""
    return Path(url2pathname(urlsplit(url).path))


def named_file(url: str) -> Path:
    """Return the file of a ``file:`` address in a lock. Raises `FetchError` for one outside `folders`."""
    path = file_path(url)
    real = path.resolve()
    if not any(real.is_relative_to(folder) for folder in folders()):
        raise FetchError(
            f"{path}: the lock names this file, but none of your settings names its folder",
            hint=f"name the folder in UV_FIND_LINKS or {VARIABLE} if you trust the lock with it",
        )
    return path


def folders() -> list[Path]:
    """Return the folders that find-links, indexes on disk and the variable name, without symbolic links."""
    found = [file_path(url) for url in (*find_links(), *indexes().all) if urlsplit(url).scheme == "file"]
    found += [Path(name) for name in os.environ.get(VARIABLE, "").split(":") if name]
    return [path.resolve() for path in found]
