"""Schedule the work on a lock's layers: each step starts once its inputs are ready, on all processors.

Files arrive → Debian is installed, beside it the large files of each wheel become layers → when all wheels
are there, it is known which package keeps a path that two name, and the small files follow → once Debian is
there, its interpreter compiles what has been written → each layer gets its bytecode and is finished. What a
layer is depends on none of this order.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, Literal

from ..errors import BuildError
from ..fetch.arrivals import Arrivals
from ..fetch.store import Store
from ..host.home import storage_errors
from ..host.host import Host
from ..host.workers import workers
from ..lock.model import Lock
from ..lock.packages import PythonPackage
from ..oci.tar_writer import LayerWriter
from . import unpacked_layers
from .cache import Cached
from .conda import link, stage_sources, write_bytecode, write_packages
from .image_python import run_interpreter, write_environment
from .layer_writing import Drafts
from .package_files import PackageFiles, unpacked
from .plan import SYSTEM, LayerPlan, place, plan, with_losers
from .system import SystemLayers
from .unpacked_copy import LaidOut
from .wheel_layer import WheelLayer, large_files


@dataclass(slots=True, eq=False)
class _Draft:
    """A layer of wheels that is being written."""

    out: IO[bytes]
    layer: WheelLayer
    laid: LaidOut | None
    large: frozenset[str]
    """The paths of its large files."""
    step: Literal["large", "waiting", "small", "written", "compiling", "closing"] = "large"


class Schedule:
    """One build. `run` it once."""

    def __init__(
        self, lock: Lock, store: Store, host: Host, drafts: Drafts, arrivals: Arrivals, *, lay_out: bool
    ) -> None:
        """``lay_out``: whether the layers are also wanted unpacked, to run the image here."""
        self._lock, self._host, self._drafts, self._arrivals = lock, host, drafts, arrivals
        self._store, self._lay_out = store, lay_out
        self._system = SystemLayers(lock, store, host, drafts)
        self._files = PackageFiles(lock, store)
        self._unread = list(lock.python)
        self._plans, self._settled = list(plan(lock)), False
        self._open: dict[int, _Draft] = {}
        self._dropped: list[_Draft] = []
        self._known: frozenset[str] | None = None
        self._opened = 0
        self._done: dict[str, Cached] = {}
        self._begun = False
        self._folders: list[Path] | None = None
        self._compiling = False
        self._batches = 0
        self._stop = threading.Event()
        self._stack = ExitStack()
        self._events: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._advance_bar: Callable[[int], None] | None = None
        self._counted = 0
        self._counting = threading.Lock()

    def run(self) -> tuple[list[LayerPlan], dict[str, Cached]]:
        """Return the plans of the layers, lowest first, and each by its key.

        Raises `BuildError`, `HostError`, `StorageError`, and `Stopped` when a file will not come; what was
        finished by then stays in the cache.
        """
        processors = len(os.sched_getaffinity(0))
        with storage_errors(self._drafts.folder):
            (self._drafts.folder / "sources").mkdir()
        with self._stack as stack:
            stack.callback(self._let_go)  # once no thread writes any more
            # Two, so that what the compiler waits for does not wait behind gigabytes of libraries.
            self._large = stack.enter_context(workers(processors, stop=self._stop))
            self._small = stack.enter_context(workers(processors, stop=self._stop))
            self._single = stack.enter_context(workers(2, stop=self._stop))
            self._arrivals.listen(lambda: self._events.put(lambda: None))
            while True:
                self._advance()
                if self._settled and self._complete():
                    self._stop.set()  # what was begun in vain
                    return self._plans, self._done
                self._events.get()()

    def _advance(self) -> None:
        """Start every step whose inputs are ready."""
        self._read()
        if not self._settled and not self._unread:
            self._settle()
        if not self._begun and not (self._settled and self._complete()) and self._system_came():
            self._begun = True
            self._submit(self._single, self._make_system, self._system_made)
        self._compile()

    def _complete(self) -> bool:
        return all(layer.key in self._done for layer in self._plans)

    def _system_came(self) -> bool:
        wanted = [*self._system.artifacts(), *(p.sha256 for p in self._lock.conda)]
        return all(self._arrivals.has(sha256) for sha256 in wanted)

    def _submit(
        self, pool: ThreadPoolExecutor, work: Callable[[], Any], then: Callable[[Any], object]
    ) -> None:
        """Run work in a thread, and what follows from its result, or its failure, in this one."""
        future: Future[Any] = pool.submit(work)
        future.add_done_callback(lambda done: self._events.put(lambda: then(done.result())))

    # What the wheels have

    def _read(self) -> None:
        """Read the file lists of downloaded wheels; start the layers of new ones.

        A layer of what was there before may be in the cache, under a key that all wheels have a part in; so
        may one that came from a registry.
        """
        if not self._unread or not self._arrivals.has(self._files.template_from):
            return
        came = [p for p in self._unread if self._arrivals.has(p.wheel.sha256)]
        for package in came:
            self._files.read(package)
            self._unread.remove(package)
        for number, layer in enumerate(self._plans if came and self._unread else ()):
            packages = layer.packages
            if (
                layer.kind == "wheels"
                and number not in self._open
                and not any(p in self._unread for p in packages)
                and all(self._is_new(p.wheel.sha256) for p in packages)
            ):
                self._begin(number)

    def _is_new(self, sha256: str) -> bool:
        if self._known is None:
            self._known = self._drafts.cache.made_of()
        return self._arrivals.fetched(sha256) and sha256 not in self._known

    def _settle(self) -> None:
        """Assign each path to its wheel once all wheels are read, and find the cached layers."""
        self._files.settle()
        self._plans = [with_losers(layer, self._files.lost(layer.packages)) for layer in self._plans]
        self._settled = True
        cache = self._drafts.cache
        self._done |= {y.key: cached for y in self._plans if (cached := cache.get(y.key))}
        missing = [n for n, layer in enumerate(self._plans) if layer.key not in self._done]
        if missing:
            count = len(self._plans) + 1
            text = f"{len(missing)} of {count} layers to build"
            self._host.console.step(text if len(missing) < len(self._plans) else f"building {count} layers")
        wheels = [n for n in missing if self._plans[n].kind == "wheels"]
        self._show([self._plans[n] for n in wheels])
        for number in sorted(wheels, key=lambda n: -_size(self._plans[n])):
            draft = self._open.get(number)
            if draft is not None and draft.large != large_files(self._parted(number)):
                self._dropped.append(self._open.pop(number))  # one of them is another package's
                draft = None
            if draft is None:
                self._begin(number)
            elif draft.step == "waiting":
                self._add_small(number)
        for number in self._open.keys() - set(wheels):
            self._dropped.append(self._open.pop(number))

    def _show(self, layers: list[LayerPlan]) -> None:
        total = sum(unpacked(self._files.of(p, y.part, y.parts)) for y in layers for p in y.packages)
        advance = self._stack.enter_context(self._host.console.progress("layers", total))
        with self._counting:
            self._advance_bar = advance
            advance(self._counted)

    def _count(self, amount: int) -> None:
        if self._stop.is_set():
            raise BuildError("stopped")
        with self._counting:
            self._counted += amount
        if self._advance_bar is not None:
            self._advance_bar(amount)

    # One layer of wheels

    def _parted(self, number: int) -> dict[PythonPackage, Any]:
        layer = self._plans[number]
        return {p: self._files.of(p, layer.part, layer.parts) for p in layer.packages}

    def _begin(self, number: int) -> None:
        """Open a layer and write its large files."""
        self._opened += 1
        with storage_errors(self._drafts.folder):
            out = self._drafts.open(f"wheels-{self._opened}")
            laid = LaidOut(self._drafts.folder / f"laid-{self._opened}") if self._lay_out else None
        parted = self._parted(number)
        aside, pages = self._drafts.folder / "sources", self._drafts.pages
        layer = WheelLayer(out, aside, place(self._lock), pages, laid)
        draft = self._open[number] = _Draft(out, layer, laid, large_files(parted))

        def write() -> None:
            with storage_errors(self._drafts.folder):
                layer.write_large(parted, self._files.path, self._count)

        def written(_: None) -> None:
            draft.step = "waiting"
            if self._settled and self._open.get(number) is draft:
                self._add_small(number)

        self._submit(self._large, write, written)

    def _add_small(self, number: int) -> None:
        draft, parted = self._open[number], self._parted(number)
        draft.step = "small"

        def write() -> None:
            with storage_errors(self._drafts.folder):
                draft.layer.write_small(parted, self._files.path, self._count)

        def written(_: None) -> None:
            draft.step = "written"
            if not draft.layer.sources:
                self._close(number, None)

        self._submit(self._small, write, written)

    def _close(self, number: int, stage: Path | None) -> None:
        draft, layer = self._open[number], self._plans[number]
        draft.step = "closing"

        def close() -> Cached:
            with storage_errors(self._drafts.folder):
                if stage is not None:
                    draft.layer.write_bytecode(stage)
                wheels = [package.wheel.sha256 for package in layer.packages]
                cached = self._drafts.put(layer.key, draft.out, draft.layer.writer, wheels)
                draft.out.close()
                if draft.laid is not None:
                    draft.laid.finish()
                    unpacked_layers.take_over(
                        self._host, draft.laid.root, cached.layer.diff_id, draft.laid.size
                    )
            return cached

        def closed(cached: Cached) -> None:
            self._done[layer.key] = cached
            del self._open[number]

        self._submit(self._small, close, closed)

    def _let_go(self) -> None:
        for draft in (*self._open.values(), *self._dropped):
            draft.out.close()
            if draft.laid is not None:
                draft.laid.close()

    # The system, and what its interpreter makes

    def _make_system(self) -> tuple[list[Cached], list[Path]]:
        below = self._system.layers()
        if self._lock.conda:
            below += self._conda()
        return below, self._system.unpacked(below)

    def _system_made(self, made: tuple[list[Cached], list[Path]]) -> None:
        below, folders = made
        self._done |= {layer.key: cached for layer, cached in zip(self._plans, below, strict=False)}
        self._stack.enter_context(unpacked_layers.in_use(folders))
        self._folders = folders

    def _conda(self) -> list[Cached]:
        """Return the layers of the conda packages, all linked anew when one is missing."""
        layers = [layer for layer in self._plans if layer.kind == "conda"]
        found = {layer.key: cached for layer in layers if (cached := self._drafts.cache.get(layer.key))}

        def write(layer: LayerPlan) -> tuple[str, Cached]:
            with self._drafts.open(layer.key) as out, storage_errors(self._drafts.folder):
                writer = LayerWriter(out)
                write_packages(linked, layer.conda, writer, layer.part, layer.parts)
                return layer.key, self._drafts.put(layer.key, out, writer, [p.sha256 for p in layer.conda])

        wanted = [layer for layer in layers if layer.key not in found]
        if wanted:
            linked = link(self._lock, self._store, self._drafts.folder, self._host.console)
            found |= dict(self._small.map(write, wanted))
        return [found[layer.key] for layer in layers]

    def _compile(self) -> None:
        """Start compiling all staged files, unless the interpreter is running."""
        if not self._settled or self._folders is None or self._compiling:
            return
        batch = [n for n, draft in self._open.items() if draft.step == "written"]
        environment = next((y for y in self._plans if y.kind == "environment"), None)
        made = environment is None or environment.key in self._done
        if not batch and made:
            return
        for number in batch:
            self._open[number].step = "compiling"
        self._compiling, self._batches = True, self._batches + 1
        workshop = self._drafts.folder / f"workshop-{self._batches}"
        skeleton = None if made else environment

        def compiled(cached: Cached | None) -> None:
            self._compiling = False
            if cached is not None and skeleton is not None:
                self._done[skeleton.key] = cached
            for number in batch:
                self._close(number, workshop / "stage")

        drafts = [self._open[number] for number in batch]
        self._submit(self._single, lambda: self._interpret(workshop, drafts, skeleton), compiled)

    def _interpret(self, workshop: Path, batch: list[_Draft], environment: LayerPlan | None) -> Cached | None:
        """Compile what some layers have laid aside; with ``environment`` also make that layer."""
        assert self._folders is not None
        stage, sent = workshop / "stage", dict[str, int]()
        with storage_errors(workshop):
            stage.mkdir(parents=True)
            for draft in batch:
                draft.layer.lay_sources(stage)
            if environment is not None and self._lock.conda:
                above = sum(layer.kind in SYSTEM for layer in self._plans)
                sent = dict(stage_sources(self._folders[above:], place(self._lock).site, stage))
        upper = run_interpreter(self._lock, self._folders, workshop, environment=environment is not None)
        if environment is None:
            return None
        with self._drafts.open(environment.key) as out:
            writer = LayerWriter(out)
            if self._lock.conda:
                write_bytecode(stage, sent, place(self._lock).python, writer)
            else:
                write_environment(upper, writer)
            return self._drafts.put(environment.key, out, writer)


def _size(layer: LayerPlan) -> int:
    return sum(p.wheel.size for p in layer.packages) // layer.parts
