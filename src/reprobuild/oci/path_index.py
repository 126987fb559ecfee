"""Index of paths by folder, to find those below one without a scan."""

from __future__ import annotations

from collections.abc import Iterator


class PathIndex:
    """The paths of a tree, relative and without a trailing slash."""

    def __init__(self) -> None:
        self._in: dict[str, set[str]] = {}

    def add(self, path: str) -> None:
        """Add a path, and with it the folders above."""
        while path:
            folder = path.rpartition("/")[0]
            siblings = self._in.setdefault(folder, set())
            if path in siblings:
                return
            siblings.add(path)
            path = folder

    def take_below(self, folder: str) -> Iterator[str]:
        """Remove the paths below a folder, and yield each; the folder itself stays."""
        rest = [folder]
        while rest:
            found = self._in.pop(rest.pop(), ())
            yield from found
            rest += found
