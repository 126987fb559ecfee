"""What of this machine a lock may name, files and servers: only where the user's own settings point.

A lock may be a stranger's, from a pull request: that a file or a page is there, its size and its hash are
told by the errors of a build. Source of the settings: `index_settings`.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ..errors import FetchError
from .index_settings import find_links, indexes
from .machine_address import is_on_link
from .session import origin

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


def check_address(url: str) -> None:
    """Raise `FetchError` for an address in a lock that no setting names: a file, or a server on this link."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        named_file(url)
    elif is_on_link(parts.hostname):
        known = {origin(urlsplit(each)) for each in (*find_links(), *indexes().all)}
        if origin(parts) not in known:
            raise FetchError(
                f"the lock names {parts.scheme}://{parts.netloc}, where clouds keep a machine's own secrets,"
                " but none of your settings names it",
                hint="use no lock that does, unless it is your index: then name it in UV_INDEX",
            )


def folders() -> list[Path]:
    """Return the folders that find-links, indexes on disk and the variable name, without symbolic links."""
    found = [file_path(url) for url in (*find_links(), *indexes().all) if urlsplit(url).scheme == "file"]
    found += [Path(name) for name in os.environ.get(VARIABLE, "").split(":") if name]
    return [path.resolve() for path in found]
