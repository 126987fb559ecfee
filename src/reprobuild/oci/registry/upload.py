"""Upload of a blob to a registry: its location and progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Self
from urllib.parse import urljoin, urlsplit

import requests

from ...errors import RegistryError

_CHUNK = 1 << 20


def next_place(answer: requests.Response, root: str) -> str:
    """Return the address at which an upload to the registry at ``root`` continues, from an answer's Location.

    Raises `RegistryError` for no address, or one without TLS where the registry has it.
    """
    host = urlsplit(root).netloc
    try:
        place = urljoin(answer.url, answer.headers["Location"])
        scheme = urlsplit(place).scheme
    except (KeyError, ValueError):
        raise RegistryError(
            f"{host} does not say where an upload goes (no valid Location in its answer)",
            hint="look at the registry's log; it does not keep to the distribution specification",
        ) from None
    if scheme != "https" and (scheme != "http" or root.startswith("https:")):
        raise RegistryError(
            f"{host} redirects the upload to {place}, without TLS",
            hint="a proxy before the registry must pass on that it speaks https (X-Forwarded-Proto)",
        )
    return place


class Body:
    """A file to upload, with progress per byte; the progress is undone unless it ``arrived``."""

    def __init__(self, file: IO[bytes], size: int, advance: Callable[[int], None]) -> None:
        self._file, self._size, self._advance = file, size, advance
        self._sent = 0
        self.arrived = False

    def __enter__(self) -> Self:
        """Start an attempt."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the attempt, successful or not."""
        if not self.arrived and self._sent:
            self._advance(-self._sent)

    def __len__(self) -> int:
        """Return the length."""
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        """Yield the bytes."""
        while chunk := self._file.read(_CHUNK):
            yield chunk
            self._sent += len(chunk)
            self._advance(len(chunk))
