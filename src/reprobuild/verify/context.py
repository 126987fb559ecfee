"""What each rule of `check` needs to know of an image and its lock. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ..lock.model import Lock
from ..oci.file_tree import ImageTree
from ..oci.tar_writer import Record
from ..request.image_layout import SITE_PREFIX
from .compare import settings

PREFIX = SITE_PREFIX.lstrip("/")
_SHELLS = frozenset(f"usr/bin/{name}" for name in ("bash", "dash", "env", "sh"))


class Context:
    """An image, its lock, and the files that the manifest names (``named``)."""

    def __init__(self, named: Mapping[str, Record], tree: ImageTree, lock: Lock) -> None:
        self.named, self.tree, self.lock = named, tree, lock
        self.start = str(tree.config.get("WorkingDir") or "/")
        """The working directory of a program."""
        self.env = {n[4:]: v for n, v in settings(tree.config).items() if n.startswith("Env ")}
        self.added = sorted(p for p, r in tree.files.items() if p not in named and r.kind != "dir")
        """Files that the manifest does not name, wherever they are."""

    @staticmethod
    def runs(path: str) -> bool:
        """Whether a locked path is a program on the way to a user's: Python's, or a shell."""
        return path in _SHELLS or path.startswith((f"{PREFIX}/bin/", "usr/bin/python"))
