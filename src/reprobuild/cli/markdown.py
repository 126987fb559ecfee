"""Changes between locks as Markdown, for a pull request."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..host.console import size_text
from ..lock.diff import MEANINGS, Change
from ..lock.model import Lock
from ..lock.platforms import digest_of


def sum_of(changes: Sequence[Change]) -> str:
    """Return how many changes there are of each meaning, and their size."""
    counts = {m: sum(c.meaning == m for c in changes) for m in MEANINGS}
    parts = [f"{count} {MEANINGS[m]}" for m, count in counts.items() if count]
    return f"{', '.join(parts)}; {more(sum(c.size for c in changes)) or 'no change'} in size"


def more(size: int) -> str:
    """Return a difference in size, with its sign; empty if there is none."""
    return f"{'+' if size > 0 else '-'}{size_text(abs(size))}" if size else ""


def changes_as_markdown(old: Sequence[Lock], new: Sequence[Lock], changes: Sequence[Change]) -> str:
    """Return the changes between two locks as Markdown."""
    title = f"### Lock of {cell(new[0].request.name)}: {len(changes)} change{'s' * (len(changes) > 1)}"
    digests = f"`{digest_of(old)[:19]}` → `{digest_of(new)[:19]}`"
    if not changes:
        return f"{title.rpartition(':')[0]}: nothing changed\n\n{digests}"
    lines = [title, "", f"{digests}. {sum_of(changes)}."]
    for meaning, words in MEANINGS.items():
        rows = [c for c in changes if c.meaning == meaning]
        if rows:
            lines += [
                "",
                f"**{words[0].upper()}{words[1:]}**" if meaning != "nothing" else "**Cannot move either**",
            ]
            lines += ["", "| | Name | Old | New | Size | Why |", "|---|---|---|---|---:|---|"]
            lines += [
                "| "
                + " | ".join((c.kind, code(c.name), code(c.old), code(c.new), more(c.size), cell(c.why)))
                + " |"
                for c in rows
            ]
    return "\n".join(lines)


def code(text: str | None) -> str:
    """Return a value as code in a cell of a Markdown table."""
    return "" if text is None else f"`{cell(text)}`" if text else ""


def cell(text: str) -> str:
    """Return a value that does not end its cell of a Markdown table, or its code."""
    return re.sub(r"\s", " ", text).replace("`", "'").replace("|", "\\|")
