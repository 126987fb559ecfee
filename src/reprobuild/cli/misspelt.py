"""Variables of the environment that are named almost like a setting."""

from __future__ import annotations

from collections.abc import Iterable

_PREFIX = "REPROBUILD_"

SETTINGS = frozenset(
    {
        *("BUILD_SECONDS", "DEBIAN_MIRROR", "DEBIAN_SECURITY_MIRROR", "HOME", "LOCAL_FILES", "MEMORY", "OSV"),
        *("OUTSIDE_FILES", "PROCESSES", "SIGN_PASSPHRASE", "SIGN_PASSPHRASE_FILE", "SNAPSHOT"),
    }
)
"""What follows the prefix in the settings of a machine. Variables in an image are others."""


def misspelt(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the variables that no setting has the name of, each with the one that it resembles.

    A variable that resembles none may be a team's own.
    """
    own = [name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX)]
    unknown = sorted({*own} - SETTINGS)
    if not unknown:
        return []
    from difflib import get_close_matches  # noqa: PLC0415 -- not loaded by every command

    meant = ((name, get_close_matches(name, SETTINGS, 1, 0.8)) for name in unknown)
    return [(_PREFIX + name, _PREFIX + close[0]) for name, close in meant if close]
