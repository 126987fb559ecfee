"""What commands and shell scripts draw by from the system's generator, read from their text."""

from __future__ import annotations

import os
import re
from typing import Any

MOST_BYTES = 1 << 16
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_MOST_PARENTS = 8


_DRAWING = re.compile(
    r"\bshuf\b|\$\{?RANDOM\b|/dev/u?random\b|\bsort (?:-\w+ )*-\w*R\b|\bopenssl rand\b"
    r"|\bsrand\s*\(\s*\)"  # of awk, by the time: POSIX, awk, "Arithmetic Functions"
    r"|\bxargs\b[^|;&]* (?:-P ?|--max-procs[= ])\"?(?:0|[2-9]|1\d|\$)"  # they write as they end
)
_SEEDED = re.compile(r"--random-source|\bRANDOM=\d")


def drawn_by(command: Any) -> str:
    """Return what a command, as text or words, draws by from the system's generator; empty: nothing known."""
    words = [command] if isinstance(command, (str, bytes)) else list(command)
    line = " ".join(os.fsdecode(word) for word in words if isinstance(word, (str, bytes, os.PathLike)))
    found = _DRAWING.search(line)
    return found[0] if found and not _SEEDED.search(line) else ""


def drawn_in(path: str) -> list[tuple[int, str, str]]:
    """Return the lines of a shell script that draw, what they draw by, and their text."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 -- pathlib is not imported for this
            data = file.read(MOST_BYTES)
    except OSError:
        return []
    first = data.partition(b"\n")[0]
    if not path.endswith((".sh", ".bash")) and not (first.startswith(b"#!") and b"sh" in first):
        return []
    lines = data.decode("utf-8", "replace").splitlines()
    if _SEEDED.search("\n".join(line for line in lines if "RANDOM=" in line)):
        lines = [line.replace("RANDOM", "") for line in lines]
    return [
        (number, drawn_by(line), line.strip()[:300])
        for number, line in enumerate(lines, 1)
        if not line.lstrip().startswith("#") and drawn_by(line)
    ]


def scripts(command: Any) -> list[str]:
    """Return the files that a command, as words, names."""
    words = [command] if isinstance(command, (str, bytes)) else list(command)
    found = [os.fsdecode(word) for word in words if isinstance(word, (str, bytes, os.PathLike))]
    found = [part for word in found for part in word.split()] if isinstance(command, (str, bytes)) else found
    return [word for word in found if os.path.isfile(word)]  # noqa: PTH113 -- as above


def parents_scripts() -> list[str]:
    """Return the shell scripts that started this process."""
    found, process = [], os.getpid()
    for _ in range(_MOST_PARENTS):
        try:
            with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123 -- as above
                process = int(file.read().rpartition(b")")[2].split()[1])
            with open(f"/proc/{process}/cmdline", "rb") as file:  # noqa: PTH123 -- as above
                words = os.fsdecode(file.read()).split("\0")
        except (OSError, ValueError, IndexError):
            break
        if os.path.basename(words[0]).lstrip("-") in _SHELLS:  # noqa: PTH119 -- as above
            found += [word for word in words[1:4] if drawn_in(word)]
    return found
