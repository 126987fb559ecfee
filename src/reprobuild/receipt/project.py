"""The project in git, and the machine: what a receipt says of both."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import stat
from pathlib import Path

from ..errors import BuildError
from ..host import process
from ..host.untrusted_files import opened
from .model import Code

MOST_TRACKED = 50_000
MOST_TRACKED_BYTES = 2 << 30
_QUIET = ("--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


def code_of(project: Path) -> Code | None:
    """Return the commit of a folder and a digest of what git tracks below it; None where it is in no git."""
    git = process.which("git")
    if git is None:
        return None

    def ask(*words: str) -> bytes | None:
        done = process.run([git, *_QUIET, "-C", str(project), *words], check=False, timeout=120)
        return done.stdout if done.returncode == 0 else None

    listed = ask("ls-files", "-z", "--cached", "--", ".")
    if listed is None:
        return None
    head = ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    status = ask("status", "--porcelain", "-z", "--untracked-files=no", "--", ".")
    commit = (head or b"").decode("ascii", "replace").strip()
    return Code(commit=commit, dirty=bool(status) or not commit, tree=_tree(project, listed))


def _tree(project: Path, listed: bytes) -> str:
    """Return the digest over the files as they are on disk; empty for too many."""
    names = sorted(set(filter(None, listed.split(b"\0"))))
    found, left = hashlib.sha256(), MOST_TRACKED_BYTES
    if len(names) > MOST_TRACKED:
        return ""
    for name in names:
        path = os.fsdecode(name)
        place = project / path
        try:
            if place.is_symlink():
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


def machine_here(proc: Path = Path("/proc")) -> dict[str, str]:
    """Return what kind of machine this is, as the host sees it."""
    found = {"architecture": platform.machine()}
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
