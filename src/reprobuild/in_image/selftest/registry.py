"""The checks by name, as their modules register them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .outcomes import Results


@dataclass(frozen=True)
class Check:
    """A check as `check` registered it; ``run`` takes the device."""

    name: str
    proves: str
    compares: tuple[str, ...]
    devices: tuple[str, ...]
    run: Callable[[str], Results]
    part: str = "battery"
    anywhere: bool = False
    order: int = 0
    hooked: bool = False
    missing: Callable[[str], str] | None = None
    once: bool = False


CHECKS: dict[str, Check] = {}
SETTING, WITHIN, ACROSS, GOLDEN, CONTROL = "setting", "within", "across", "golden", "control"
BOTH = ("cpu", "cuda")


def check(
    *compares: str,
    order: int,
    devices: tuple[str, ...] = ("cpu",),
    part: str = "battery",
    anywhere: bool = False,
    hooked: bool = False,
    missing: Callable[[str], str] | None = None,
    once: bool = False,
) -> Callable[[Callable[[str], Results]], Callable[[str], Results]]:
    """Register a function as a check: its name with dashes, and what its docstring says that it proves.

    ``order``: checks run in the order of this number, which is unique. ``part``: "battery", "full" or
    "prove". ``anywhere``: its results on the CPU depend on the versions alone, as those of a golden check do.
    ``hooked``: it cannot pass without the import hook, so it is not run where that is known to be gone.
    ``missing``: returns what the check lacks on a device, and how to add it, or nothing.
    ``once``: one of the two interpreters runs it, since it is about files, and takes long.
    """

    def register(function: Callable[[str], Results]) -> Callable[[str], Results]:
        name = function.__name__.replace("_", "-")
        proves = (function.__doc__ or name).rstrip(".")
        CHECKS[name] = Check(
            name=name,
            proves=proves,
            compares=compares,
            devices=devices,
            run=function,
            part=part,
            anywhere=anywhere or GOLDEN in compares,
            order=order,
            hooked=hooked,
            missing=missing,
            once=once,
        )
        return function

    return register


def in_order() -> list[Check]:
    """Return all checks in the order in which they run."""
    return sorted(CHECKS.values(), key=lambda each: each.order)
