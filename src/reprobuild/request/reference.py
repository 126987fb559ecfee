"""An image of a registry as people write it: ``HOST/NAME:TAG``, or Docker's short form. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .table import Table

DOCKER_HUB = "docker.io"
"""The registry that a name without a host means, as with Docker."""

# distribution/reference, reference.go
NAME_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?"
_FORM = re.compile(
    rf"(?:(?P<host>{_HOST})/)?(?P<name>{NAME_PART}(?:/{NAME_PART})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)


@dataclass(frozen=True, slots=True)
class Reference:
    """An image in a registry, by a tag or by its digest."""

    host: str
    """With the port, where it has one."""
    repository: str
    tag: str
    """``latest`` by default."""
    digest: str | None
    """``sha256:…``; counts for more than the tag."""

    @classmethod
    def parse(cls, text: str) -> Reference | None:
        """Parse a reference; None if it is not valid."""
        found = _FORM.fullmatch(text)
        if found is None or len(text) > 255 + 72:
            return None
        host, name = found["host"] or "", found["name"]
        # As Docker tells a host from a part of a name.
        if host and not ("." in host or ":" in host or host == "localhost"):
            host, name = "", f"{host}/{name}"
            if re.fullmatch(rf"{NAME_PART}(?:/{NAME_PART})*", name) is None:
                return None
        if host in ("", DOCKER_HUB):
            host, name = DOCKER_HUB, name if "/" in name else f"library/{name}"
        return cls(host, name, found["tag"] or "latest", found["digest"])

    @property
    def wanted(self) -> str:
        """What the registry is asked for: the digest, else the tag."""
        return self.digest or self.tag

    @property
    def name(self) -> str:
        """Host and repository."""
        return f"{self.host}/{self.repository}"

    def __str__(self) -> str:
        """Return it in full."""
        return f"{self.name}@{self.digest}" if self.digest else f"{self.name}:{self.tag}"


def base_image(base: Table) -> str | None:
    """Return ``image`` of a request's table ``base``. Raises `TableError`."""
    image = base.text("image", Reference.parse, 'an image like "registry.example.org/team/base:1"', None)
    if image is not None and base.has("debian"):
        raise base.bad("debian", "cannot be combined with base.image")
    if image is None and base.has("allow-cuda"):
        raise base.bad("allow-cuda", "needs base.image, which is not set")
    return image
