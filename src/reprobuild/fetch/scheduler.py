"""Download all files of a lock into the store over several connections, and verify them."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import SimpleQueue

import requests

from ..errors import FetchError, HostError
from ..host.console import Console, size_text
from ..host.home import require_free
from ..host.workers import workers
from ..lock.base_image import BaseLayer
from ..lock.model import UNPACKED, Artifact, Lock
from ..lock.packages import CondaPackage, DebianPackage, PythonPackage
from ..lock.standalone_python import StandalonePython
from ..net.index_settings import PYTHON_MIRROR, mirrored_python
from ..net.local_files import check_address
from ..net.session import session
from . import debian_snapshot
from .arrivals import Arrivals
from .base_layers import fetch_base
from .debian_mirrors import package_urls
from .download import Download, Patience, Stop, Stopped, Wanted
from .store import Store

FROM_LARGEST = 3
FROM_SMALLEST = 5
"""Threads at either end of the list by size: the large files need all the time there is, while a small
one costs a round trip; so both the line and the server are kept busy, and a missing Debian package is
seen early."""

MOST_FAILURES = 8
"""After this many failures the cause is a common one, and the rest is not tried."""

MOST_SHOWN = 5

_GONE = (
    "a Debian mirror carries current versions only: `reprobuild lock --upgrade` takes those; or name a "
    f"snapshot archive, which keeps old ones, in {debian_snapshot.VARIABLE}"
)

_JOIN_SECONDS = 2.0
"""After Ctrl-C, for threads that cannot be woken: one that connects, or asks for an address."""

_POLL_SECONDS = 0.1
"""Poll interval for a file that another process is downloading."""


def fetch(lock: Lock, store: Store, console: Console, *, patience: Patience | None = None) -> None:
    """Make every artifact of the lock present in the store.

    Files that are there are left alone; with all there, nothing is asked of any server. Downloads that a
    killed run had begun are resumed. Several processes may fetch the same at once: each file is downloaded by
    one of them. Raises `FetchError` that names the files that could not be fetched, `RegistryError` for a
    base image, `HostError` for an archive without a mirror, `StorageError`.
    """
    with fetching(lock, store, console, patience=patience) as arrivals:
        arrivals.wait()


@contextmanager
def fetching(
    lock: Lock, store: Store, console: Console, *, patience: Patience | None = None
) -> Iterator[Arrivals]:
    """As `fetch`, while the block works on the files that have arrived; a base image is complete before it.

    The block is to wait for every file. When one cannot be fetched, `Arrivals` ends the block's waiting by
    `Stopped`, and the error that is raised is that of `fetch`. When the block fails, the fetching ends.
    """
    if lock.base is not None:
        fetch_base(lock.base, lock.platform, store, console, patience)
    missing = _missing(lock, store)
    if not missing:
        yield Arrivals()
        return
    total = sum(artifact.size for artifact in missing)
    _check_space(store, missing, total, console)
    console.step(f"fetching {len(missing)} files, {size_text(total)}")
    arrivals = Arrivals([wanted.sha256 for wanted in missing])
    with session(retries=0) as http, console.progress("fetch", total) as advance:
        crew = _Crew(
            missing,
            store,
            console,
            session=http,
            advance=advance,
            patience=patience or Patience(),
            arrivals=arrivals,
        )
        with crew.at_work():
            try:
                yield arrivals
            except Exception:
                # What has failed because a file is missing says less than why it is missing.
                if not arrivals.failed:
                    raise
            crew.wait()
    crew.report()


def _missing(lock: Lock, store: Store) -> Sequence[Wanted]:
    """Return what the store lacks, each once, largest first."""
    artifacts = [artifact for artifact in lock.artifacts if not isinstance(artifact.of, BaseLayer)]
    # The first time after a boot, all are hashed.
    with workers(len(os.sched_getaffinity(0))) as pool:
        there = list(pool.map(lambda artifact: store.has(artifact.sha256, artifact.size), artifacts))
    found = {a.sha256: _wanted(lock, a) for a, has in zip(artifacts, there, strict=True) if not has}
    return sorted(found.values(), key=lambda wanted: (-wanted.size, wanted.filename))


def _wanted(lock: Lock, artifact: Artifact) -> Wanted:
    urls: tuple[str, ...] = (artifact.address,)
    more = None
    match artifact.of:
        case DebianPackage() as deb:
            urls, gone = _mirrors(lock, deb), _GONE
            more = functools.partial(debian_snapshot.addresses, deb, lock.request.as_of)
        case StandalonePython(url=url):
            if (mirrored := mirrored_python(url)) == url:
                check_address(url)
            urls = tuple(dict.fromkeys((mirrored, url)))
            gone = f"`reprobuild lock --upgrade python` takes the newest; {PYTHON_MIRROR} can name a mirror"
        case CondaPackage(name=name):
            check_address(artifact.address)
            gone = f"the channel no longer has this file: `reprobuild lock --upgrade {name}`"
        case PythonPackage(name=name):
            check_address(artifact.address)
            gone = f"the index no longer has this file: `reprobuild lock --upgrade {name}`"
        case BaseLayer():
            gone = "the registry no longer has this image: `reprobuild lock --upgrade`"
    return Wanted(
        filename=artifact.filename,
        sha256=artifact.sha256,
        size=artifact.size,
        urls=urls,
        gone=gone,
        more=more,
    )


def _mirrors(lock: Lock, package: DebianPackage) -> tuple[str, ...]:
    try:
        return package_urls(lock.suite, package)
    except HostError:
        if debian_snapshot.address() is None:
            raise
        return ()


def _check_space(store: Store, missing: Sequence[Wanted], total: int, console: Console) -> None:
    needed = total - sum(store.partial_size(artifact.sha256) for artifact in missing)
    free = require_free(store.root, needed)
    if needed * UNPACKED > free:
        console.warn(
            f"{store.root}: {size_text(free)} free is enough for the download, but an image of it "
            f"needs about {size_text(needed * UNPACKED)}"
        )


class _Crew:
    """The worker threads, the remaining files, and the failures."""

    def __init__(
        self,
        missing: Sequence[Wanted],
        store: Store,
        console: Console,
        *,
        session: requests.Session,
        advance: Callable[[int], None],
        patience: Patience,
        arrivals: Arrivals,
    ) -> None:
        self._arrivals = arrivals
        self._store, self._console = store, console
        self._session, self._advance, self._patience = session, advance, patience
        self._count = len(missing)
        self._lock = threading.Lock()
        self._todo = deque(missing)
        self._elsewhere: deque[Wanted] = deque()
        self._told = False
        self._stop = Stop()
        self._ended: SimpleQueue[None] = SimpleQueue()
        self._failures: list[FetchError] = []
        self._fatal: BaseException | None = None
        self._working = 0

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Run the workers during the block at most; its end or an exception stops them first."""
        # Daemons, so that one that hangs in a name lookup cannot keep the program from ending.
        threads = [
            threading.Thread(target=self._member, kwargs={"from_smallest": end}, daemon=True)
            for end in ([False] * FROM_LARGEST + [True] * FROM_SMALLEST)[: self._count]
        ]
        try:
            for thread in threads:
                thread.start()
                self._working += 1
            yield
        finally:
            self._stop.set()
            deadline = time.monotonic() + _JOIN_SECONDS
            for thread in threads:
                with suppress(RuntimeError):  # not started
                    thread.join(max(0, deadline - time.monotonic()))

    def wait(self) -> None:
        """Return when all is done or given up."""
        while self._working:
            # Not by join: Ctrl-C in a join makes Python 3.11 take the thread for ended (cpython#90882).
            self._ended.get()
            self._working -= 1

    def report(self) -> None:
        """Raise what went wrong, if anything did."""
        if self._fatal is not None:
            raise self._fatal
        if len(self._failures) == 1:
            raise self._failures[0]
        if self._failures:
            lines = [f"{len(self._failures)} of {self._count} files could not be fetched"]
            if len(self._failures) >= MOST_FAILURES:
                lines[0] += ", and the rest was not tried"
            lines += [f"  {error.message}" for error in self._failures[:MOST_SHOWN]]
            if len(self._failures) > MOST_SHOWN:
                lines.append(f"  and {len(self._failures) - MOST_SHOWN} more")
            hints = dict.fromkeys(error.hint for error in self._failures)
            raise FetchError("\n".join(lines), hint="; ".join(hints))

    def _member(self, *, from_smallest: bool) -> None:
        try:
            while (artifact := self._next(from_smallest=from_smallest)) is not None:
                try:
                    self._one(artifact)
                except FetchError as error:
                    with self._lock:
                        self._failures.append(error)
                        too_many = len(self._failures) >= MOST_FAILURES
                    self._arrivals.fail()
                    if too_many:
                        self._stop.set()
        except Stopped:
            return
        except BaseException as error:  # noqa: BLE001 -- `report` raises it in the caller's thread
            self._fatal = self._fatal or error
            self._stop.set()
            self._arrivals.fail()
        finally:
            self._ended.put(None)

    def _next(self, *, from_smallest: bool) -> Wanted | None:
        self._stop.check()
        with self._lock:
            if self._todo:
                return self._todo.pop() if from_smallest else self._todo.popleft()
            if not self._elsewhere:
                return None
            artifact = self._elsewhere.popleft()
        self._stop.wait(_POLL_SECONDS)
        return artifact

    def _one(self, artifact: Wanted) -> None:
        with self._store.partial(artifact.sha256) as partial:
            if partial is None:
                self._leave_to_other(artifact)
            elif self._store.has(artifact.sha256, artifact.size):
                self._advance(artifact.size)  # another process has finished it meanwhile
                self._arrivals.came(artifact.sha256)
            else:
                Download(
                    artifact,
                    partial,
                    session=self._session,
                    stop=self._stop,
                    advance=self._advance,
                    patience=self._patience,
                ).run()
                self._store.add(artifact.sha256, partial.path)
                self._arrivals.came(artifact.sha256)

    def _leave_to_other(self, artifact: Wanted) -> None:
        with self._lock:
            self._elsewhere.append(artifact)
            told, self._told = self._told, True
        if not told:
            self._console.step(f"another reprobuild is fetching {artifact.filename}: waiting for it")
