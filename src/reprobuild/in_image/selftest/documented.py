"""What torch's documentation says of such operations, and what they do."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from .cases import cases
from .exact import must_repeat
from .libraries import torch
from .outcomes import Failed, Results, note
from .registry import BOTH, SETTING, check

REPEATS = 10  # of a control, with determinism on


def documented(name: str, word: str, device: str) -> str:
    """Return what the installed torch's documentation says of an operation on a device, with the flag on.

    "raises", "repeats", or nothing where it lists no such case; from the docstring of
    torch.use_deterministic_algorithms, whose lists change with the version.
    """
    text = torch.use_deterministic_algorithms.__doc__ or ""
    _, _, switching = text.partition("will act\n")
    switching, _, raising = switching.partition("will throw a\n")
    for section, behaviour in ((switching, "repeats"), (raising.partition("In addition")[0], "raises")):
        for item in section.split("* :")[1:]:
            words = " ".join(item.split())
            # Of a choice of modes, each stands on a line of its own.
            if f"`{name}`" in words.split(" ")[0] and word in words:
                named = {where for where in BOTH if where.upper() in words}
                if not named or device in named:
                    return behaviour
    return ""


def observed(operation: Callable[[str], object], device: str) -> str:
    """Return "raises" or "repeats" (in ten runs); raises `Failed` when runs differ."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            must_repeat(lambda: operation(device), REPEATS)
    except RuntimeError as error:
        if "determinis" not in str(error):
            raise
        return "raises"
    return "repeats"


@check(SETTING, devices=BOTH, order=440, hooked=True)
def raises(device: str) -> Results:
    """What lacks a deterministic algorithm raises or repeats; notes say where the documentation errs."""
    seen: dict[str, str] = {}
    for label, (name, word, operation) in cases().items():
        try:
            seen[label] = observed(operation, device)
        except Failed as failure:
            raise Failed(f"{label} {failure}, with determinism on", failure.detail) from None
        said = documented(name, word, device)
        if said and said != seen[label]:
            note(f"{label}: documented: {said}; here it {seen[label]}")
        elif not said and seen[label] == "raises":
            note(f"{label}: raises, which the documentation does not say")
    # The two that raise on every device in every torch from 2.4 to 2.13.
    for label in ("put_", "max_unpool2d"):
        if seen[label] != "raises":
            line = {"what": label, "expected": "RuntimeError", "got": "a result"}
            raise Failed(f"{label} gave a result: deterministic algorithms are not enforced", [line])
    raising = [label for label, how in seen.items() if how == "raises"]
    note(f"{len(seen)} operations; {len(raising)} raise here: {', '.join(raising)}")
    return {label: how.encode() for label, how in seen.items()}
