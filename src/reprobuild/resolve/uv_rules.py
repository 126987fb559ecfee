"""Constraints and overrides of a request, as uv's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import Requirement

from ..request.model import Request


def write_rules(request: Request, requirements: Sequence[str], folder: Path) -> list[str]:
    """Write the files of the rules into a folder; return uv's arguments that name them.

    The override ``torch`` stands for the torch among the requirements.
    """
    torch = [text for text in requirements if Requirement(text).name == "torch"]
    overrides = [line for text in request.overrides for line in (torch if text == "torch" else [text])]
    arguments: list[str] = []
    for option, lines in (("--constraint", request.constraints), ("--override", overrides)):
        if lines:
            file = folder / f"request{option[1:]}.txt"
            file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
            arguments += [option, file.name]
    return arguments
