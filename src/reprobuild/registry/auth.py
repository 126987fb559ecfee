"""What a registry wants to see of a client, and what it says when it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import requests

from ..errors import RegistryError

CERTIFICATES = (Path("/etc/docker/certs.d"), Path("/etc/containers/certs.d"))
"""Where Docker and Podman look for a registry's own CA: ``HOST:PORT/*.crt``."""

_CHUNK = 1 << 20


class Nothing(requests.auth.AuthBase):
    """No credentials, not even those of netrc."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Leave the request as it is."""
        return request


class Bearer(requests.auth.AuthBase):
    """A token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the token."""
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class OnlyAt(requests.auth.AuthBase):
    """Credentials for one host: blobs may lie on another, which must see no password."""

    def __init__(self, host: str, auth: requests.auth.AuthBase) -> None:
        self._host, self._auth = host, auth

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the credentials where the request goes to the host."""
        at_home = urlsplit(request.url or "").netloc == self._host
        return self._auth(request) if at_home else request


class Body:
    """A file to send, whose length is known and whose bytes are counted; a broken way takes them back."""

    def __init__(self, file: IO[bytes], size: int, advance: Callable[[int], None]) -> None:
        self._file, self._size, self._advance = file, size, advance

    def __len__(self) -> int:
        """Return the length."""
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        """Give the bytes."""
        while chunk := self._file.read(_CHUNK):
            yield chunk
            self._advance(len(chunk))


class StumbledError(Exception):
    """An answer after which the same request may well succeed."""

    def __init__(self, error: RegistryError) -> None:
        super().__init__(error.message)
        self.error = error


def untrusted(host: str, error: Exception, certificates: Path) -> RegistryError:
    """Return the error of a registry with which no TLS can be spoken; its own CA goes into a folder."""
    if "certificate" not in str(error).lower():
        return RegistryError(
            f"{host} does not speak TLS: {error}", hint="only a loopback address may do without"
        )
    return RegistryError(
        f"{host} shows a certificate that is not trusted: {error}",
        hint=f"put its CA into {certificates}/{host}/ca.crt, as for Docker",
    )


def said(answer: requests.Response) -> str:
    """Return what a registry says of an error, in the specification's form or not."""
    try:
        return "; ".join(f"{e['code']}: {e.get('message', '')}" for e in answer.json()["errors"])
    except (ValueError, KeyError, TypeError):
        return answer.text[:200].strip() or answer.reason or ""
