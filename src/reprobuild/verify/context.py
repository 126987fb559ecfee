"""Context of the rules of `check`: the image and its lock. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from ..lock.model import Lock
from ..oci.file_tree import ImageTree
from ..oci.tar_writer import Record
from ..render.image_config import image_config
from ..request.image_layout import SITE_PREFIX
from .compare import settings
from .links import folders

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

    @cached_property
    def locked_env(self) -> Mapping[str, str]:
        """The variables of the lock's image."""
        return image_config(self.lock).env

    @cached_property
    def locked_programs(self) -> Mapping[str, str]:
        """The locked programs that the lock's PATH finds, with their folders."""
        found = dict[str, str]()
        for folder, names in self.programs(folders(self.locked_env["PATH"], "/", self.tree.files)).items():
            for name in names:
                if f"{folder}/{name}" in self.named:
                    found.setdefault(name, folder)
        return found

    def programs(self, places: Iterable[str]) -> Mapping[str, list[str]]:
        """Return what can be run in some folders."""
        programs: dict[str, list[str]] = {folder: [] for folder in places}
        for file, record in self.tree.files.items():
            folder, _, name = file.rpartition("/")
            is_run = record.kind == "link" or (record.kind == "file" and record.mode & 0o111)
            if is_run and folder in programs:
                programs[folder].append(name)
        return programs

    @staticmethod
    def runs(path: str) -> bool:
        """Whether a locked path is a program on the way to a user's: Python's, or a shell."""
        return path in _SHELLS or path.startswith((f"{PREFIX}/bin/", "usr/bin/python"))
