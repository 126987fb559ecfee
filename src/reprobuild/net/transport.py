"""What every peer is held to over HTTP: a minimum rate, and a limit of what is read whole.

Both sit below requests, so that they hold for headers, redirects and proxies too, and for every caller.
"""

from __future__ import annotations

import http.client
import math
import re
import ssl
import time
from collections.abc import Iterator
from io import BufferedReader, RawIOBase
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util import Retry

SLOWEST = 1000
"""Bytes a second. A peer that sends less, over `WINDOW`, has stalled."""

WINDOW = 60.0
"""Seconds of waiting for the peer over which `SLOWEST` is measured."""

LARGEST_PAGE = 128 << 20
"""Bytes, inflated, of an answer that is read whole. The largest pages of public indexes have about 40 MB."""

LONGEST = 900.0
"""Seconds that an answer may take that is read whole."""

_MOST_LINES = 4 << 20
"""Bytes of heads and of what stands around chunks. Beyond that, `_LINES_PER_BYTE` for one of a body."""
_LINES_PER_BYTE = 16

_PIECE = 1 << 16
_LENGTH = re.compile(r"[0-9]{1,18}")


class StalledError(TimeoutError):
    """A peer sends too slowly for its answer to end."""


class EndlessError(http.client.HTTPException):
    """An answer that consists of heads, trailers or the lines around chunks, and never of a body."""


class BadLengthError(http.client.HTTPException):
    """An answer that says of its length what is not a number: nobody knows where it ends (RFC 9112, 6.3)."""


class TooLargeError(requests.RequestException):
    """An answer that is read whole has more bytes than any honest one."""


class Adapter(HTTPAdapter):
    """Sends requests over connections that are verified by one context and keep to the limits above."""

    def __init__(self, retry: Retry, context: ssl.SSLContext) -> None:
        self._context = context
        super().__init__(pool_maxsize=32, max_retries=retry)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Make the pools of direct connections."""
        super().init_poolmanager(*args, ssl_context=self._context, **kwargs)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        """Make the pools of connections through a proxy."""
        manager = super().proxy_manager_for(*args, ssl_context=self._context, **kwargs)
        manager.pool_classes_by_scheme = _POOLS
        return manager

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Keep certifi's CAs out of the context, which verifies by itself."""

    def build_response(self, req: requests.PreparedRequest, resp: Any) -> requests.Response:
        """Return an answer that refuses to be read whole beyond a limit."""
        answer = super().build_response(req, resp)
        # requests has no place to name the class, and reads the bodies of redirects by itself.
        answer.__class__ = _Answer
        return answer


def read_whole(answer: requests.Response, limit: int) -> bytes:
    """Return the body of an answer that was asked for as a stream.

    Raises `TooLargeError` above ``limit`` bytes, other exceptions of requests where the body breaks off.
    """
    if isinstance(answer, _Answer):
        answer.limit = limit
    with answer:
        return answer.content


class _Answer(requests.Response):
    limit: int = LARGEST_PAGE

    @property
    def content(self) -> bytes:
        content: bytes | bool | None = self._content  # False: not read yet
        if not isinstance(content, bytes):
            if self._paced is not None:
                self._paced.end = time.monotonic() + LONGEST
            found = bytearray()
            for piece in self.iter_content(_PIECE):
                found += piece
                if len(found) > self.limit:
                    self.close()
                    raise TooLargeError(
                        f"the answer has more than {self.limit} bytes", response=self, request=self.request
                    )
            self._content = content = bytes(found)
        return content

    def iter_content(self, chunk_size: int | None = 1, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """Yield the body in pieces; one that inflates to nothing ends with an error."""
        pieces, arrived = super().iter_content(chunk_size, *args, **kwargs), 0
        while True:
            if self._paced is not None:
                most = _MOST_LINES + 2 * (chunk_size or 0) + (1 + _LINES_PER_BYTE) * arrived
                self._paced.most = most
            try:
                piece = next(pieces, None)
            except ValueError as error:
                if isinstance(error, requests.RequestException):
                    raise
                # urllib3 takes a chunk of -5 bytes for one, and http.client does not read it.
                raise requests.exceptions.ChunkedEncodingError(f"not a valid answer: {error}") from None
            if piece is None:
                return
            arrived += len(piece)
            yield piece

    @property
    def _paced(self) -> _PacedReader | None:
        return getattr(getattr(self.raw, "_fp", None), "paced", None)


class _PacedReader(RawIOBase):
    """Reads the answer to one request, and counts the time spent waiting for the peer."""

    def __init__(self, inner: RawIOBase) -> None:
        self._inner = inner
        self._begun = False
        self._waited, self._arrived = 0.0, 0
        self.total = 0
        """Bytes that have come."""
        self.most, self.end = math.inf, math.inf
        """Bytes that may come, and when the last one may."""

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._inner.fileno()

    def close(self) -> None:
        if not self.closed:
            self._inner.close()
        super().close()

    def readinto(self, buffer: Any) -> int | None:
        start = time.monotonic()
        count: int | None = self._inner.readinto(buffer)
        self.total += count or 0
        if self.total > self.most:
            raise EndlessError(f"the answer has more than {self.most:.0f} bytes as it is sent")
        if time.monotonic() > self.end:
            raise StalledError(f"the answer takes more than {LONGEST:g} s")
        if not self._begun:
            # Until the first byte the time limit for silence counts alone: some pages are made on demand.
            self._begun = True
            return count
        self._waited += time.monotonic() - start
        self._arrived += count or 0
        if self._waited >= WINDOW:
            if self._arrived < SLOWEST * self._waited:
                raise StalledError(f"less than {SLOWEST} bytes a second for {WINDOW:g} s")
            self._waited, self._arrived = 0.0, 0
        return count


class _Lines(BufferedReader):
    """Reads an answer. http.client and urllib3 read by lines what is not a body, in any number."""

    def __init__(self, paced: _PacedReader) -> None:
        super().__init__(paced)
        self._paced = paced
        self._in_lines = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(-1 if size is None else size)
        self._in_lines += len(line)
        body = self._paced.total - self._in_lines
        if self._in_lines > _MOST_LINES and self._in_lines > _LINES_PER_BYTE * body:
            raise EndlessError(f"the answer has {self._in_lines} bytes of heads and of lines around chunks")
        return line


class _PacedResponse(http.client.HTTPResponse):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.paced = _PacedReader(self.fp.detach())
        self.fp = _Lines(self.paced)

    def begin(self) -> None:
        """Read the headers. The body of an error is bounded from here on: urllib3 reads it before a retry."""
        super().begin()
        said = self.headers.get("Content-Length")
        if said is not None and not self.chunked and not _LENGTH.fullmatch(said.strip()):
            # http.client would wait until the server closes the connection.
            self.close()
            raise BadLengthError(f"the answer has the Content-Length {said[:40]!r}")
        if self.status >= 300:
            self.paced.most, self.paced.end = self.paced.total + _MOST_LINES, time.monotonic() + LONGEST


class _Connection(HTTPConnection):
    response_class = _PacedResponse


class _SecureConnection(HTTPSConnection):
    response_class = _PacedResponse


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


_POOLS = {"http": _Pool, "https": _SecurePool}
