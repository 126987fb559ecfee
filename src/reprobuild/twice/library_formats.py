"""What a run's own libraries told of files that only they read. Untrusted: bounded, and parsed strictly.

The format is that of ``in_image/twice/library_formats.py``: a file a process, a line for each file of its.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import BuildError
from ..host.untrusted_files import opened
from . import evidence_limits as limits
from . import record_fields as fields

HEAD = "as its library reads it: "
"""How the first line of such a file begins."""
MOST_FILES = 512
MOST_BYTES = 256 << 20
"""Of all that a run's processes told."""
MOST_LINES = 100_001
LONGEST = 4000
MAGIC = ((0, b"PAR1"), (0, b"ARROW1"), (0, b"\x89HDF\r\n\x1a\n"), (8, b"DUCK"))
"""What stands at which place of a file of such a format."""


def told_contents(folder: Path) -> dict[str, tuple[str, ...]]:
    """Return the lines of each file by its SHA-256. Raises ValueError, TypeError and KeyError."""
    found: dict[str, tuple[str, ...]] = {}
    left = MOST_BYTES
    for path in sorted(folder.glob("*.contents"))[:MOST_FILES]:
        try:
            with opened(folder, path.name) as file:
                while record := file.readline(left + 1):
                    left -= len(record)
                    if left < 0:
                        raise ValueError(f"a run told more than {MOST_BYTES >> 20} MiB of its files")
                    digest, lines = _record(limits.load_values(record))
                    found[digest] = lines
        except (OSError, BuildError) as error:
            raise ValueError(f"{path.name}: {error}") from None
    return found


def _record(record: Any) -> tuple[str, tuple[str, ...]]:
    if not isinstance(record, Mapping) or record.keys() != {"sha256", "lines"}:
        raise ValueError("a record has other keys than it should")
    first, *rest = (fields.text(line, LONGEST) for line in fields.items(record["lines"], MOST_LINES))
    return fields.digest(record["sha256"]), (HEAD + first, *rest)


def is_such(head: bytes) -> bool:
    """Return whether a file that begins so is of a format that only its library reads."""
    return any(head[at : at + len(magic)] == magic for at, magic in MAGIC)
