"""The key ``user`` of a request: the user that the image's programs run as. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .table import Table

_USER = re.compile(r"([a-z_][a-z0-9_-]{0,31}):([1-9][0-9]{0,4})")
_LOWEST, _HIGHEST = 1000, 59999
"""The ids of ordinary users: https://www.debian.org/doc/debian-policy/ch-opersys.html#uid-and-gid-classes"""


@dataclass(frozen=True, slots=True)
class ImageUser:
    """A user of an image in addition to those of its system, with a group of the same name and number."""

    name: str
    number: int
    """Its id, and that of its group."""

    def __str__(self) -> str:
        """Return it as in a request."""
        return f"{self.name}:{self.number}"

    @property
    def home(self) -> str:
        """The home directory, the only thing that the user owns."""
        return f"/home/{self.name}"

    @property
    def ids(self) -> str:
        """User and group in an image's configuration: by number, Kubernetes verifies ``runAsNonRoot``."""
        return f"{self.number}:{self.number}"

    @property
    def lines(self) -> dict[str, str]:
        """The lines for ``etc/passwd`` and ``etc/group``. ``*``: no password, and none in ``etc/shadow``."""
        return {
            "etc/passwd": f"{self.name}:*:{self.number}:{self.number}::{self.home}:/bin/bash\n",
            "etc/group": f"{self.name}:*:{self.number}:\n",
        }


def image_user(table: Table) -> ImageUser | None:
    """Read the user of a request; None: root. Raises `TableError`."""
    text = table.text("user", _USER.fullmatch, 'a name and a number, like "app:1000"', "")
    if not text:
        return None
    name, _, number = text.partition(":")
    if not _LOWEST <= int(number) <= _HIGHEST:
        raise table.bad("user", f"{number} is not an ordinary user's id: expected {_LOWEST} to {_HIGHEST}")
    return ImageUser(name, int(number))
