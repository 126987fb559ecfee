"""lock and store → all layers of the image, those of earlier builds taken from the cache.

The wheels are read by a thread a processor, largest first, while mmdebstrap installs Debian; inflating,
hashing and compressing let go of the interpreter's lock, so threads do, and memory stays small.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from ..errors import BuildError
from ..fetch.store import Store
from ..host.home import storage_errors
from ..host.host import Host
from ..lock.model import Lock
from ..oci.documents import file_manifest
from ..oci.tar_writer import LayerWriter, Record, parents, write_tar
from ..render.own_files import image_files
from . import roots
from .base import base_layers, write_on_top
from .cache import Cached, LayerCache
from .conda import link, stage_sources, write_bytecode, write_packages
from .debian import write_debian
from .interpreter import run_interpreter, write_environment
from .package_files import PackageFiles
from .paths import refuse_own_names
from .plan import SYSTEM, LayerPlan, place, plan, with_losers
from .standalone import write_standalone
from .wheel_layer import WheelLayer

MANIFEST = "opt/reprobuild/manifest.tsv"


@dataclass(frozen=True, slots=True)
class BuiltLayer:
    """A layer of the image, with what to call it in the image's history."""

    title: str
    cached: Cached


def build_layers(lock: Lock, store: Store, host: Host) -> tuple[BuiltLayer, ...]:
    """Return the layers of a lock's image, lowest first. All that is locked must be in the store.

    Raises `BuildError`, `HostError`, `StorageError`; what was finished by then stays in the cache.
    """
    with host.home.scratch("layers") as scratch:
        builder = _Builder(lock, store, host, scratch)
        return builder.build()


def write_debian_tar(lock: Lock, store: Store, host: Host, target: Path) -> None:
    """Write the Debian layer of a lock as a plain tar file, the whole of it or nothing."""
    with host.home.scratch("layers") as scratch:
        cached = _Builder(lock, store, host, scratch).of_system("debian")
    write_tar([LayerCache(host.home).blob(cached.layer.digest)], target)


def write_python_tar(lock: Lock, store: Store, host: Host, target: Path) -> None:
    """Write the layer of a lock's standalone Python as a plain tar file, the whole of it or nothing."""
    with host.home.scratch("layers") as scratch:
        cached = _Builder(lock, store, host, scratch).of_system("python")
    write_tar([LayerCache(host.home).blob(cached.layer.digest)], target)


def system_folders(lock: Lock, store: Store, host: Host) -> list[Path]:
    """Return the unpacked layers of a lock's system, lowest first, made where they are not in the cache.

    The system is Debian, or the base image with the Debian packages on top, and a standalone Python. Hold
    them with `roots.in_use`.
    """
    with host.home.scratch("layers") as scratch:
        builder = _Builder(lock, store, host, scratch)
        return builder.unpacked(builder.system())


def debian_records(lock: Lock, store: Store, host: Host) -> tuple[Record, ...]:
    """Return all paths of the Debian layer of a lock, made where it is not in the cache."""
    with host.home.scratch("layers") as scratch:
        return _Builder(lock, store, host, scratch).of_system("debian").records


def write_conda_tar(lock: Lock, store: Store, host: Host, target: Path) -> None:
    """Write the linked conda packages of a lock, with their bytecode, as a plain tar file."""
    with host.home.scratch("layers") as scratch:
        built = _Builder(lock, store, host, scratch).build()
    kinds = [layer.kind for layer in plan(lock)]
    wanted = [y.cached for y, kind in zip(built, kinds, strict=False) if kind in ("conda", "environment")]
    write_tar([LayerCache(host.home).blob(cached.layer.digest) for cached in wanted], target)


class _Builder:
    def __init__(self, lock: Lock, store: Store, host: Host, scratch: Path) -> None:
        self._lock, self._store, self._host = lock, store, host
        self._cache = LayerCache(host.home)
        self._scratch = scratch
        self._workshop = scratch / "workshop"
        with storage_errors(scratch):
            (self._workshop / "stage").mkdir(parents=True)
        self._stop = threading.Event()

    def build(self) -> tuple[BuiltLayer, ...]:
        files = PackageFiles(self._lock, self._store)
        plans = [with_losers(layer, files.lost(layer.packages)) for layer in plan(self._lock)]
        done = {layer.key: cached for layer in plans if (cached := self._cache.get(layer.key))}
        missing = [layer for layer in plans if layer.key not in done]
        if missing:
            text = f"{len(missing)} of {len(plans) + 1} layers to build"
            self._host.console.step(
                text if len(missing) < len(plans) else f"building {len(plans) + 1} layers"
            )
            done |= self._build_missing(plans, missing, files)
        layers = [BuiltLayer(layer.title, done[layer.key]) for layer in plans]
        return (*layers, self._own_layer(layers))

    def _build_missing(
        self, plans: list[LayerPlan], missing: list[LayerPlan], files: PackageFiles
    ) -> dict[str, Cached]:
        wheels = [layer for layer in missing if layer.kind == "wheels"]
        wheels.sort(key=lambda layer: -sum(p.wheel.size for p in layer.packages))
        total = sum(files.size(package) for layer in wheels for package in layer.packages)
        done: dict[str, Cached] = {}
        with ExitStack() as stack:
            advance = stack.enter_context(self._host.console.progress("layers", total))
            pool = stack.enter_context(_workers(self._stop))
            opened = [(layer, stack.enter_context(self._blob(layer.key))) for layer in wheels]
            written = [pool.submit(self._write_files, layer, out, files, advance) for layer, out in opened]
            below = self.system()
            system = zip(plans, below, strict=False)
            done |= {layer.key: cached for layer, cached in system if layer in missing}
            if self._lock.conda:
                below += self._conda(missing, done, pool)
            open_layers = _results(written)
            if len(missing) > len(done):
                self._finish(below, missing, list(zip(opened, open_layers, strict=True)), done, pool)
        return done

    def system(self) -> list[Cached]:
        """Return the layers of the system, lowest first: of the base image, Debian, a standalone Python."""
        layers = [layer for layer in plan(self._lock) if layer.kind in SYSTEM]
        found: list[Cached] = []
        if self._lock.base is not None:
            found += base_layers(self._lock.base, layers, self._store, self._cache)
        for layer in layers[len(found) :]:
            cached = self._cache.get(layer.key)
            if cached is None:
                with self._blob(layer.key) as out:
                    writer = LayerWriter(out)
                    artifacts = [p.sha256 for p in self._lock.debian]
                    if layer.kind == "python":
                        artifacts = self._write_standalone(found, writer)
                    elif found:
                        owners = {r.path: r.owner for cached in found for r in cached.records}
                        below = self.unpacked(found)
                        home = self._host.home
                        with roots.in_use(below):
                            write_on_top(self._lock, self._store, below, home, writer, owners=owners)
                    else:
                        write_debian(self._lock, self._store, self._host.home, writer)
                    cached = self._put(layer.key, out, writer, artifacts)
            found.append(cached)
        return found

    def of_system(self, kind: Literal["debian", "python"]) -> Cached:
        """Return the layer of a kind that the system has one of."""
        kinds = [layer.kind for layer in plan(self._lock) if layer.kind in SYSTEM]
        return self.system()[kinds.index(kind)]

    def _write_standalone(self, found: Sequence[Cached], writer: LayerWriter) -> list[str]:
        """Write the layer of the standalone Python above some others; return what it is made of."""
        assert self._lock.standalone is not None
        sha256 = self._lock.standalone.sha256
        below = self.unpacked(found)
        with self._host.home.scratch("python") as folder, roots.in_use(below):
            write_standalone(self._lock, self._store.path(sha256), below, folder, writer)
        return [sha256]

    def unpacked(self, below: Sequence[Cached]) -> list[Path]:
        """Return the folders of some layers."""

        def one(cached: Cached) -> Path:
            blob, diff_id = self._cache.blob(cached.layer.digest), cached.layer.diff_id
            return roots.unpack(self._host, blob, diff_id, lambda _: None)

        return [one(cached) for cached in below]

    def _conda(
        self, missing: list[LayerPlan], done: dict[str, Cached], pool: ThreadPoolExecutor
    ) -> list[Cached]:
        """Return the layers of the conda packages, all linked anew when one is missing."""
        layers = [layer for layer in plan(self._lock) if layer.kind == "conda"]
        wanted = [layer for layer in layers if layer in missing]

        def write(layer: LayerPlan) -> tuple[str, Cached]:
            with self._blob(layer.key) as out, storage_errors(self._scratch):
                writer = LayerWriter(out)
                write_packages(linked, layer.conda, writer)
                return layer.key, self._put(layer.key, out, writer, [p.sha256 for p in layer.conda])

        if wanted:
            linked = link(self._lock, self._store, self._scratch, self._host.console)
            done |= dict(pool.map(write, wanted))
        found = [done.get(layer.key) or self._cache.get(layer.key) for layer in layers]
        return [cached for cached in found if cached is not None]

    def _finish(
        self,
        below: Sequence[Cached],
        missing: list[LayerPlan],
        wheels: list[tuple[tuple[LayerPlan, IO[bytes]], WheelLayer]],
        done: dict[str, Cached],
        pool: ThreadPoolExecutor,
    ) -> None:
        """Do what takes the image's own interpreter, and close the layers."""
        folders = self.unpacked(below)
        environment = next((layer for layer in missing if layer.kind == "environment"), None)
        stage = self._workshop / "stage"
        system = sum(layer.kind in SYSTEM for layer in plan(self._lock))
        sent: Mapping[str, int] = {}
        with roots.in_use(folders):
            if environment is not None and self._lock.conda:
                with storage_errors(self._workshop):
                    sent = stage_sources(folders[system:], place(self._lock).site, stage)
            upper = run_interpreter(self._lock, folders, self._workshop, environment=environment is not None)

        def close(item: tuple[tuple[LayerPlan, IO[bytes]], WheelLayer]) -> tuple[str, Cached]:
            (layer, out), open_layer = item
            with storage_errors(self._scratch):
                open_layer.write_bytecode(list(layer.packages))
            wheels = [package.wheel.sha256 for package in layer.packages]
            return layer.key, self._put(layer.key, out, open_layer.writer, wheels)

        done |= dict(pool.map(close, wheels))
        if environment is not None:
            with self._blob(environment.key) as out:
                writer = LayerWriter(out)
                if self._lock.conda:
                    write_bytecode(stage, sent, place(self._lock).python, writer)
                else:
                    write_environment(upper, writer)
                done[environment.key] = self._put(environment.key, out, writer)

    def _write_files(
        self, layer: LayerPlan, out: IO[bytes], files: PackageFiles, advance: Callable[[int], None]
    ) -> WheelLayer:
        def counted(amount: int) -> None:
            if self._stop.is_set():
                raise BuildError("stopped")
            advance(amount)

        open_layer = WheelLayer(out, self._workshop / "stage", place(self._lock))
        with storage_errors(self._scratch):
            open_layer.write_files({p: files.of(p) for p in layer.packages}, files.path, counted)
        return open_layer

    def _own_layer(self, below: Sequence[BuiltLayer]) -> BuiltLayer:
        """Write reprobuild's own files; the manifest among them depends on all, so it is made each time."""
        for layer in below:
            refuse_own_names((record.path for record in layer.cached.records), layer.title)
        own = {path.lstrip("/"): content for path, content in image_files(self._lock).items()}
        with self._blob("own") as out:
            writer = LayerWriter(out)
            for folder in parents([*own, MANIFEST]):
                writer.folder(folder)
            for path, (content, mode) in sorted(own.items()):
                writer.file(path, mode, len(content), [content])
            records = [record for layer in below for record in layer.cached.records] + writer.records
            manifest = file_manifest(records)
            writer.file(MANIFEST, 0o644, len(manifest), [manifest])
            return BuiltLayer(
                "reprobuild's own files", self._put(f"own-{self._lock.digest[7:]}", out, writer)
            )

    def _blob(self, name: str) -> IO[bytes]:
        with storage_errors(self._scratch):
            return (self._scratch / name).open("wb", buffering=0)

    def _put(self, key: str, out: IO[bytes], writer: LayerWriter, artifacts: Iterable[str] = ()) -> Cached:
        with storage_errors(self._scratch):
            cached = Cached(writer.close(), tuple(writer.records), tuple(artifacts))
            return self._cache.put(key, Path(out.name), cached)


@contextmanager
def _workers(stop: threading.Event) -> Iterator[ThreadPoolExecutor]:
    """A thread a processor; when the block fails, waiting work is dropped and running work stops soon."""
    pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)))
    try:
        yield pool
    except BaseException:
        stop.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _results(futures: Sequence[Future[WheelLayer]]) -> list[WheelLayer]:
    """Wait for all, or raise the first failure as soon as it is there."""
    finished, _ = wait(futures, return_when=FIRST_EXCEPTION)
    for future in finished:
        future.result()
    return [future.result() for future in futures]
