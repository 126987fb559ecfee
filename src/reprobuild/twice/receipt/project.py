"""The project in git, and the machine: what a receipt says of both."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import BuildError
from ...host.machine import visible_devices
from ...host.repository import repository_at
from ...host.untrusted_files import opened
from .model import Code

MOST_TRACKED = 50_000
MOST_TRACKED_BYTES = 2 << 30
_DEEPEST = 8
"""Submodules within submodules."""


def code_of(project: Path) -> Code | None:
    """Return the commit of a folder and a digest of what git tracks below it; None where it is in no git.

    A file whose time has changed, and which only a filter of the repository's own settings could compare,
    counts as changed.
    """
    return _code(project, _DEEPEST)


def _code(project: Path, deeper: int) -> Code | None:
    with repository_at(project) as repository:
        if repository is None:
            return None
        listed = repository.ask("ls-files", "-z", "--cached", "--stage", "--", ".")
        if listed is None:
            return None
        # What is changed within a submodule is asked of it; git would do so with that one's settings.
        asked = (
            "status",
            "--porcelain",
            "-z",
            "--untracked-files=no",
            "--ignore-submodules=dirty",
            "--",
            ".",
        )
        status = repository.ask(*asked)
    entries = dict(_entry(line) for line in filter(None, listed.split(b"\0")))
    modules = {
        path: code
        for path, mode in entries.items()
        if mode == b"160000" and deeper and (code := _module(project / os.fsdecode(path), deeper - 1))
    }
    dirty = status != b"" or not repository.commit or any(code.dirty for code in modules.values())
    return Code(commit=repository.commit, dirty=dirty, tree=_tree(project, sorted(entries), modules))


def _module(folder: Path, deeper: int) -> Code | None:
    """Return the code of a submodule; None for one that is not checked out."""
    return _code(folder, deeper) if not folder.is_symlink() and (folder / ".git").exists() else None


def _entry(line: bytes) -> tuple[bytes, bytes]:
    """Return path and mode of a line of ``git ls-files --stage``."""
    facts, _, path = line.partition(b"\t")
    return path, facts.split(b" ")[0]


def _tree(project: Path, names: Sequence[bytes], modules: Mapping[bytes, Code]) -> str:
    """Return the digest over the files as they are on disk; empty for too many."""
    found, left = hashlib.sha256(), MOST_TRACKED_BYTES
    if len(names) > MOST_TRACKED:
        return ""
    for name in names:
        path = os.fsdecode(name)
        place = project / path
        try:
            if name in modules:
                digest, mode = f"commit {modules[name].commit} {modules[name].tree}", ""
            elif place.is_symlink():
                digest, mode = f"link {os.fspath(place.readlink())}", ""
            else:
                with opened(project, path) as file:
                    status = os.fstat(file.fileno())
                    left -= status.st_size
                    if left < 0:
                        return ""
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                    mode = "x" if status.st_mode & stat.S_IXUSR else "-"
        except (OSError, BuildError):
            digest, mode = "gone", ""
        found.update(b"%s\0%s %s\0" % (name, digest.encode("utf-8", "surrogateescape"), mode.encode()))
    return found.hexdigest()


BY_HOST = ("architecture", "chosen gpus", "driver", "gpus", "processor")
"""The facts of `machine_here`; the others of a receipt are those that its program gave."""


def chosen_gpus(own: Mapping[str, str]) -> str:
    """Return which of this machine's GPUs the caller's variables choose.

    ``own``: the variables of the run itself, which outrank them and are in the receipt by name.
    """
    chosen = [f"{name}={value}" for name, value in sorted(visible_devices().items()) if name not in own]
    return ", ".join(chosen)[:1000].encode("utf-8", "replace").decode() or "all"


def machine_here(gpus: str | None, proc: Path = Path("/proc")) -> dict[str, str]:
    """Return what kind of machine this is, as the host sees it; ``gpus``: see `chosen_gpus`."""
    found = {"architecture": platform.machine(), "chosen gpus": gpus or ""}
    try:
        names = re.findall(
            r"^model name\s*: (.*)$", (proc / "cpuinfo").read_text(errors="replace"), re.MULTILINE
        )
        if names:
            found["processor"] = names[0].strip()[:200]
        driver = re.search(
            r"\d+\.\d+(?:\.\d+)?", (proc / "driver/nvidia/version").read_text(errors="replace")
        )
        if driver:
            found["driver"] = driver[0]
        cards = sorted((proc / "driver/nvidia/gpus").glob("*/information"))
        models = [
            re.search(r"^Model:\s*(.*)$", card.read_text(errors="replace"), re.MULTILINE) for card in cards
        ]
        found["gpus"] = ", ".join(sorted(model[1].strip() for model in models if model))[:1000]
    except OSError:
        pass
    return {name: value for name, value in found.items() if value}
