"""Download one artifact into a claimed partial file: resumed, retried, verified."""

from __future__ import annotations

import hashlib
import logging
import random
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import requests
import urllib3

from ..errors import FetchError, StorageError
from ..host.home import open_regular, storage_errors, write_all
from ..net.local_files import file_path
from .http_errors import TAMPERED, Again, failure_of, host_of, is_page, refusal_of, summary_of
from .store import Partial

log = logging.getLogger(__name__)

LARGEST = 1 << 40
"""Bytes of a locked file; the largest layers and wheels have a hundredth of it."""

CHUNK = 1 << 20
"""Bytes between two checks of `Stop`; also the most that a broken connection loses."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """A locked file that the store lacks, and where to fetch it."""

    filename: str
    sha256: str
    size: int
    """Bytes."""
    urls: tuple[str, ...]
    """http, https or file; tried in turn."""
    gone: str
    """What to do when no address has it any more."""
    more: Callable[[], tuple[str, ...]] | None = None
    """Called for more addresses when those have failed."""

    def __post_init__(self) -> None:
        """Raise `FetchError` for a size out of range, which a registry may send."""
        if type(self.size) is not int or not 0 < self.size <= LARGEST:
            raise FetchError(
                f"{self.filename}: its size is given as {str(self.size)[:40]}, which is not that of a file",
                hint=self.gone,
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How long a bad server is tolerated; times in seconds."""

    attempts: int = 5
    """Rounds over all addresses in which nothing new arrives."""
    pause: float = 0.5
    """After the first round; doubles with each."""
    longest_pause: float = 30.0
    connect: float = 10.0
    silence: float = 60.0
    """Seconds without a byte until the server counts as silent."""


class Stop:
    """Ends the work of all threads at once, also of those that wait for a server's next byte."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._open: set[urllib3.BaseHTTPResponse] = set()

    def set(self) -> None:
        """Stop the work: every `check` and every read ends from now on."""
        with self._lock:
            self._event.set()
            for raw in self._open:
                # It may have ended by itself a moment ago.
                with suppress(OSError, ValueError, RuntimeError):
                    raw.shutdown()

    def check(self) -> None:
        """Raise `Stopped` when it is set."""
        if self._event.is_set():
            raise Stopped

    def wait(self, seconds: float) -> None:
        """Sleep, and raise `Stopped` as soon as it is set."""
        if self._event.wait(seconds):
            raise Stopped

    @contextmanager
    def watching(self, response: requests.Response) -> Iterator[None]:
        """Abort this response as soon as it is set."""
        with self._lock:
            self._open.add(response.raw)
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._open.discard(response.raw)


class Stopped(Exception):  # noqa: N818 -- no error: someone else's failure, or Ctrl-C, ended the work
    """The work was ended by `Stop`."""


class _Mismatch(Exception):  # noqa: N818 -- a state of the try, seen by `Download` only
    """The bytes are not those locked; says what they are."""


class Download:
    """Download of one artifact into its partial file. Each byte is hashed once, as it arrives."""

    def __init__(
        self,
        artifact: Wanted,
        partial: Partial,
        *,
        session: requests.Session,
        stop: Stop,
        advance: Callable[[int], None],
        patience: Patience,
    ) -> None:
        self._artifact, self._partial, self._file = artifact, partial, partial.file
        self._session, self._stop, self._advance, self._patience = session, stop, advance, patience
        self._hash = hashlib.sha256()
        self._done = 0
        self._in_pieces = False
        self._fresh_start_left = True

    def run(self) -> None:
        """Return when the partial file holds the verified bytes.

        Raises `FetchError` when no address gave them (a wrong file leaves nothing behind, a broken download
        what came so far), `StorageError` (nothing left behind), `Stopped`.
        """
        try:
            self._take_up()
            self._from_any()
        except StorageError:
            self._partial.discard()
            raise

    def _take_up(self) -> None:
        """Resume the partial file of an earlier run: hash it and seek to its end."""
        if self._partial.size() > self._artifact.size:
            self._partial.discard()
        with storage_errors(self._partial.path):
            while chunk := self._file.read(CHUNK):
                self._count(chunk)
        self._in_pieces = self._done > 0
        if self._done == self._artifact.size and self._hash.hexdigest() != self._artifact.sha256:
            self._start_over()

    def _from_any(self) -> None:
        urls, errors = list(self._artifact.urls), dict[str, FetchError]()
        attempt, furthest, more = 0, self._done, self._artifact.more
        while self._done < self._artifact.size:
            after = 0.0
            for url in tuple(urls):
                try:
                    self._from_one(url)
                except Again as problem:
                    errors[url] = problem.error
                    after = max(after, problem.after)
                except FetchError as error:
                    errors[url] = error
                    urls.remove(url)
                else:
                    return
                log.debug("%s: %s", self._artifact.filename, errors[url].message)
            # A server that gives a little more each time may go on; one that starts anew each time may not.
            attempt = 1 if self._done >= furthest + CHUNK else attempt + 1
            furthest = max(furthest, self._done)
            if (not urls or attempt >= self._patience.attempts) and more is not None:
                urls, attempt, more = list(more()), 0, None
                continue
            if not urls or attempt >= self._patience.attempts:
                raise summary_of(self._artifact.filename, list(errors.values()))
            pause = self._patience.pause * 2 ** (attempt - 1)
            # Spread by chance, so that many downloads do not come back in one moment.
            pause = max(pause * random.uniform(0.75, 1.25), after)  # noqa: S311 -- no secret depends on it
            self._stop.wait(min(pause, self._patience.longest_pause))

    def _from_one(self, url: str) -> None:
        try:
            if urlsplit(url).scheme == "file":
                self._copy(url)
            else:
                self._request(url)
        except _Mismatch as mismatch:
            again = self._in_pieces and self._fresh_start_left
            self._start_over()
            if again:
                # The part from an earlier run or another server may be the bad one.
                self._fresh_start_left = False
                self._from_one(url)
                return
            raise FetchError(
                f"{host_of(url)} gives another file than the one locked: {mismatch}", hint=TAMPERED
            ) from None

    def _copy(self, url: str) -> None:
        path = file_path(url)
        try:
            with open_regular(path) as source:
                source.seek(self._done)
                self._receive(source.read)
        except OSError as error:
            raise FetchError(f"{path}: {error.strerror}", hint=self._artifact.gone) from None
        self._verify()

    def _request(self, url: str) -> None:
        self._stop.check()
        headers = {"Accept-Encoding": "identity"}
        if self._done:
            headers["Range"] = f"bytes={self._done}-"
        limits = (self._patience.connect, self._patience.silence)
        try:
            with (
                self._session.get(url, headers=headers, stream=True, timeout=limits) as response,
                self._stop.watching(response),
            ):
                self._begin(response)
                self._receive(lambda size: response.raw.read(size, decode_content=False))
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            self._stop.check()
            raise failure_of(url, error) from None
        # A body of unknown length that `Stop` broke off looks like one that has ended.
        self._stop.check()
        # Whatever length the answer claims: a proxy may have cut it.
        short = self._done < self._artifact.size and self._hash.hexdigest() != self._artifact.sha256
        if short and not is_page(response):
            by = f" (from {host_of(response.url)})" if response.history else ""
            raise Again(
                f"{host_of(url)}{by} ended its answer after {self._done} of {self._artifact.size} bytes:"
                " it was cut short, or it is another file than the one locked"
            )
        self._verify(response)

    def _begin(self, response: requests.Response) -> None:
        """See from the answer's head where its body starts. Raises `FetchError` or `Again` on a bad one."""
        if response.status_code == 206:
            found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
            if found and int(found[1]) == self._done:
                self._in_pieces = self._in_pieces or self._done > 0
                return
        elif response.status_code == 200:
            if self._done:
                self._start_over()
            return
        elif response.status_code != 416:
            raise refusal_of(response, self._artifact.gone)
        self._start_over()
        raise Again(f"{host_of(response.url)} cannot go on in the middle of a file")

    def _receive(self, read: Callable[[int], bytes]) -> None:
        while chunk := read(CHUNK):
            self._stop.check()
            if self._done + len(chunk) > self._artifact.size:
                raise _Mismatch(f"more than the {self._artifact.size} bytes locked")
            with storage_errors(self._partial.path):
                write_all(self._file, chunk)
            self._count(chunk)

    def _verify(self, response: requests.Response | None = None) -> None:
        got = self._hash.hexdigest()
        if got != self._artifact.sha256 or self._done != self._artifact.size:
            page = ", a web page" if response is not None and is_page(response) else ""
            by = f", from {host_of(response.url)}" if response is not None and response.history else ""
            raise _Mismatch(
                f"sha256 {got} ({self._done} bytes{page}{by}) instead of {self._artifact.sha256} "
                f"({self._artifact.size} bytes)"
            )

    def _count(self, chunk: bytes) -> None:
        self._hash.update(chunk)
        self._done += len(chunk)
        self._advance(len(chunk))

    def _start_over(self) -> None:
        self._partial.discard()
        self._advance(-self._done)
        self._hash, self._done, self._in_pieces = hashlib.sha256(), 0, False
