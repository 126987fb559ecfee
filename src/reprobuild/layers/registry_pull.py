"""Pull the layers of a lock from a team's registry, using a record committed with the locks.

A layer is a function of what is locked, so who has one need not fetch, inflate, hash and compress its wheels.
The registry is not trusted: of what it gives, only bytes with the recorded digest are taken.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from ..errors import FetchError, LockError, RegistryError, StorageError
from ..fetch.download import Download, Patience, Stop, Stopped, Wanted
from ..fetch.store import Partial, Store
from ..host.console import size_text
from ..host.home import free_bytes, storage_errors
from ..host.host import Host
from ..lock.layer_record import LayerRecord, RecordedLayer
from ..lock.model import Lock
from ..oci.blobs import open_blob
from ..oci.file_tree import layer_of, nothing
from ..oci.merge_layers import KeptContents, read_layer
from ..oci.registry.client import Registry, Target
from ..oci.tar_fields import LayerRefused
from ..oci.tar_writer import Kind, Layer, Record
from . import unpacked_layers
from .cache import Cached, LayerCache
from .plan import plan, plan_digest

_AT_ONCE = 4
_POLL_SECONDS = 0.2
_HINT = "do not use it before you know who changed it; `reprobuild push --record-layers` writes it"
_MOST_FAILURES = 4
"""Of layers whose connection failed; then the cause is a common one, and no more are asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """Slowest download rate, below which layers are built instead."""

    seconds: float = 30.0
    """Between two measurements."""
    rate: float = 1e6
    """Bytes a second, of all layers together: far less than building them gives."""


def take_layers(
    lock: Lock,
    record: LayerRecord,
    source: Target,
    host: Host,
    *,
    lay_out: bool = False,
    patience: Patience | None = None,
    pace: Pace | None = None,
) -> bool:
    """Pull the recorded layers of a lock into the cache; return whether all but reprobuild's own were found.

    With ``lay_out`` each is also unpacked as soon as it is there, to run the image here. What the registry
    lacks, gives with other bytes, or gives too slowly is left out, with a warning: the caller builds it.
    Raises `LockError` for a record that does not fit the lock, whose lists are none, or whose layer does not
    unpack to what it says, `StorageError`.
    """
    asked = plan(lock)
    keys = record.keys_of(plan_digest(asked))
    if keys is not None and len(keys) != len(asked):
        raise LockError(
            f"the record of layers gives this lock {len(keys)} layers, and it has {len(asked)}", hint=_HINT
        )
    base = {layer.key: layer.base for layer in asked if layer.base is not None}
    recorded = [
        record.layers[key] for key in keys or [layer.key for layer in asked if layer.key in record.layers]
    ]
    if keys is None:
        host.console.step(
            f"the record has {len(recorded)} of the {len(asked)} layers of this lock, not the lock itself;"
            " the others are built from its wheels"
        )
    for layer in recorded:
        locked = base.get(layer.key)
        if locked is not None and (layer.digest, layer.diff_id) != (locked.digest, locked.diff_id):
            raise LockError(
                f"the record of layers names other bytes for {layer.title} than the lock: {layer.digest}",
                hint=_HINT,
            )
    cache = LayerCache(host.home, record, host.console)
    missing = [layer for layer in recorded if cache.get(layer.key) is None]
    if missing:
        taking = _Taking(source, host, patience or Patience(), pace or Pace(), lay_out=lay_out)
        taking.take(missing, in_base=base)
    return keys is not None and all(cache.get(key) is not None for key in keys)


class _Taking:
    def __init__(self, source: Target, host: Host, patience: Patience, pace: Pace, *, lay_out: bool) -> None:
        self._lay_out, self._unpacked = lay_out, list[Future[Path]]()
        self._source, self._host, self._patience, self._pace = source, host, patience, pace
        self._cache, self._store = LayerCache(host.home), Store(host.home)
        self._stop, self._mutex = Stop(), threading.Lock()
        self._failures = self._arrived = 0
        self._name = f"{source.host}/{source.repository}"

    def take(self, layers: Sequence[RecordedLayer], in_base: Container[str]) -> None:
        """Fetch some layers; the keys of those of a base image, which the lock itself names, are given."""
        self._in_base = in_base
        total = sum(layer.size + layer.paths_size for layer in layers)
        if total > free_bytes(self._store.root):
            raise StorageError(
                f"{self._store.root}: the layers take {size_text(total)}, and that much is not free",
                hint="`reprobuild clean` removes what no image needs; REPROBUILD_HOME names another place",
            )
        try:
            registry = Registry(self._source, "pull")
        except RegistryError as error:
            self._warn(_told(error), "the layers are built")
            return
        self._host.console.step(f"fetching {len(layers)} layers from {self._name}, {size_text(total)}")
        pool = ThreadPoolExecutor(_AT_ONCE)
        # Not those that fetch: who looks how fast bytes arrive would take a slow disk for a slow registry.
        self._unpacking = ThreadPoolExecutor(len(os.sched_getaffinity(0)))
        try:
            with self._host.console.progress("layers", total) as advance:

                def counted(amount: int) -> None:
                    with self._mutex:
                        self._arrived += amount
                    advance(amount)

                # The largest first, so that no thread is left with it at the end.
                order = sorted(layers, key=lambda layer: -layer.size)
                self._watch({pool.submit(self._try, registry, layer, counted) for layer in order})
                for each in self._unpacked:
                    each.result()
        finally:
            self._stop.set()
            pool.shutdown(cancel_futures=True)
            self._unpacking.shutdown(cancel_futures=True)

    def _watch(self, left: set[Future[None]]) -> None:
        """Wait for all layers while they arrive fast enough; raise the first failure."""
        begin, before = time.monotonic(), 0
        while left:
            done, left = wait(left, timeout=self._pace.seconds, return_when="FIRST_COMPLETED")
            for each in done:
                each.result()
            if (now := time.monotonic()) < begin + self._pace.seconds:
                continue
            if left and self._arrived - before < self._pace.rate * (now - begin):
                few = f"{self._name} gives less than {size_text(int(self._pace.rate))} a second"
                self._warn(few, f"{len(left)} of its layers are built")
                return
            begin, before = now, self._arrived

    def _try(self, registry: Registry, layer: RecordedLayer, advance: Callable[[int], None]) -> None:
        try:
            self._stop.check()
            if registry.has_blob(layer.digest):
                self._one(registry, layer, advance)
            else:
                self._warn(f"{self._name} does not have the layer of {layer.title}", "it is built")
        except Stopped:
            return
        except (FetchError, RegistryError) as error:
            with self._mutex:
                self._failures += 1
                last = self._failures == _MOST_FAILURES
            self._warn(f"{layer.title}: {_told(error)}", "it is built")
            if last:
                self._warn(
                    f"{self._name} has failed {_MOST_FAILURES} times", "it is asked for no more layers"
                )
                self._stop.set()

    def _one(self, registry: Registry, layer: RecordedLayer, advance: Callable[[int], None]) -> None:
        title = f"the list of paths of {layer.title}"
        with self._fetched(registry, title, layer.paths, layer.paths_size, advance) as partial:
            with storage_errors(partial.path):
                partial.file.seek(0)
                listed = partial.file.read()
            partial.discard()
        records, artifacts = parse_paths(listed, layer)
        found = Layer(layer.diff_id, layer.digest, layer.size, layer.media_type)
        title = f"the layer of {layer.title}"
        with self._fetched(registry, title, layer.digest, layer.size, advance) as partial:
            if layer.key not in self._in_base and (
                fault := _fault(partial.path, layer, records, self._looked)
            ):
                partial.discard()
                raise LockError(
                    f"the record of layers is wrong about {layer.title}, {layer.digest}: {fault}", hint=_HINT
                )
            self._cache.put_taken(layer, partial.path, Cached(found, records, artifacts))
        if self._lay_out:
            blob = self._cache.blob(layer.digest)
            self._unpacked.append(
                self._unpacking.submit(
                    unpacked_layers.unpack, self._host, blob, layer.diff_id, lambda _: None
                )
            )

    def _looked(self, amount: int) -> None:
        """Count bytes that are compared as if they arrived: the registry is not slow meanwhile."""
        with self._mutex:
            self._arrived += amount

    @contextmanager
    def _fetched(
        self, registry: Registry, title: str, digest: str, size: int, advance: Callable[[int], None]
    ) -> Iterator[Partial]:
        """Yield a claimed file that has the bytes of a digest."""
        session, url = registry.address(digest)
        sha256 = digest.removeprefix("sha256:")
        wanted = Wanted(filename=title, sha256=sha256, size=size, urls=(url,), gone="")
        while True:
            with self._store.partial(sha256) as partial:
                if partial is None:
                    self._stop.wait(_POLL_SECONDS)  # another process is fetching it
                    continue
                Download(
                    wanted,
                    partial,
                    session=session,
                    stop=self._stop,
                    advance=advance,
                    patience=self._patience,
                ).run()
                yield partial
                return

    def _warn(self, what: str, then: str) -> None:
        self._host.console.warn(f"{what}; {then}")


def dump_paths(cached: Cached) -> bytes:
    """Return the list of a layer's paths, which belongs to the layer as its manifest does."""
    rows = [[r.path, r.kind, r.mode, r.content, r.owner] for r in cached.records]
    return json.dumps({"artifacts": cached.artifacts, "records": rows}, separators=(",", ":")).encode()


def parse_paths(data: bytes, layer: RecordedLayer) -> tuple[tuple[Record, ...], tuple[str, ...]]:
    """Return the paths of a layer and the sha256 of the artifacts in it, from bytes of the recorded digest.

    Raises `LockError`, since nobody but the record can be wrong.
    """
    try:
        table = json.loads(data)
        records = tuple(Record(*row) for row in table["records"])
        artifacts = tuple(table["artifacts"])
        good = all(_is_record(each) for each in records) and all(isinstance(each, str) for each in artifacts)
    except (ValueError, KeyError, TypeError, RecursionError):
        good = False
    if not good:
        raise LockError(
            f"the record of layers names no list of paths for {layer.title}: {layer.paths}",
            hint=_HINT,
        )
    return records, artifacts


def _fault(
    blob: Path, layer: RecordedLayer, records: Sequence[Record], looked: Callable[[int], object]
) -> str | None:
    """Say what a layer's tar has that is not as recorded; None for nothing. ``looked`` gets the bytes read.

    By its diff_id an unpacked layer is found, which may be there from another image; by the list of its
    paths the names are refused that are reprobuild's own, and the image's manifest of files is written.
    """
    digest = hashlib.sha256()

    def seen(chunk: bytes) -> None:
        digest.update(chunk)
        looked(len(chunk))

    try:
        with open_blob(blob) as file:
            found = read_layer(layer_of(file), nothing, KeptContents(), seen)
    except LayerRefused as refused:
        return str(refused)
    if f"sha256:{digest.hexdigest()}" != layer.diff_id:
        return f"it unpacks to sha256:{digest.hexdigest()}, not to {layer.diff_id}"
    listed = {each.path: each for each in records if each.path != "."}
    if other := {path for path, _ in found.entries.items() ^ listed.items()}:
        return f"its list of paths is not that of its files: {min(other)!r}"
    hides = next((name for name in (*found.links, *found.gone, *found.emptied)), None)
    return None if hides is None else f"it changes {hides!r} of a layer below"


def _is_record(record: Record) -> bool:
    texts = (record.path, record.content, record.owner)
    return (
        record.kind in get_args(Kind)
        and type(record.mode) is int
        and all(isinstance(text, str) for text in texts)
        and not record.path.startswith("/")
    )


def _told(error: FetchError | RegistryError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message
