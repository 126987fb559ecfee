"""One ordered stream of torch's operations, around the step that parted: what went in and what came out.

An operation's record has the digests of its inputs, and for each the record that made that memory; the
digests of its outputs; the line of the program that called it, in a backward pass the line of the forward's;
the path of the module. Outputs' values are kept beside, for their distance, as long as there is room.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from . import digests, handovers, hints, kernels, modes
from .places import constructed_at, here, text
from .watching import warn
from .writing import Writer

RECEIVING = frozenset(
    (
        *("broadcast_", "recv_", "recv_any_source_", "allgather_", "_allgather_base_", "scatter_"),
        *("allgather_into_tensor_coalesced_", "allgather_coalesced_", "reduce_scatter_", "gather_"),
        *("_reduce_scatter_base_", "reduce_scatter_tensor_coalesced_", "alltoall_", "alltoall_base_"),
    )
)
"""Collectives that use nothing of what the tensors that they write held before."""
MOST = 300_000
"""Operations of one process."""
VALUES = 256 << 20
"""Bytes of outputs that are kept, of one process."""
ONE_VALUE = 8 << 20

EMPTY = frozenset(
    ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_", "empty_permuted")
)
"""They give memory as it is, so their outputs may differ."""
NAMELESS = frozenset(("aten", "prim", "prims", "c10d", "_c10d_functional"))
"""torch's own namespaces; an operation of a library or of the program is told with its own."""
OVERWRITING = frozenset(
    (
        *("fill_", "zero_", "copy_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_"),
        *("log_normal_", "cauchy_", "geometric_"),
    )
)
"""They use nothing of what the tensor that they write held before."""


class Trace(TorchDispatchMode):  # type: ignore[misc]
    """Records every operation while it is on."""

    def __init__(self, torch: Any, names: Any, writer: Writer) -> None:
        super().__init__()
        self._torch, self._names, self._writer = torch, names, writer
        self._count = 0
        self._places: dict[tuple[str, int, str], int] = {}
        self._forward: dict[int, tuple[int, str, Any]] = {}
        """Where the node of a backward pass was made, and by which thread: each counts for itself."""
        self._made: dict[int, int] = {}
        """The last operation that wrote into some memory."""
        self._viewed: dict[tuple[Any, ...], int] = {}
        """The last one that gave a view of it, by the view's place and shape."""
        self._unwritten: set[int] = set()
        """Those that gave memory as it is, and views of it."""
        self._values, self._room = -1, VALUES
        self._lock = threading.RLock()
        self.modules: list[Any] = []
        self.modes = modes.Modes()
        self.active = False
        """Whether this is a moment of the window; threads that began in it may go on."""
        self._hinted = False
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._values, self._room, self._lock = -1, VALUES, threading.RLock()
        self._count, self._places, self._unwritten = 0, {}, set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record an operation, and do it."""
        kwargs = kwargs or {}
        if (
            getattr(_here, "hidden", 0)
            or not self.active
            or self._count >= MOST
            or func.namespace == "profiler"
        ):
            return func(*args, **kwargs)
        if digests.capturing(self._torch):
            # What is known of memory no longer holds: an operation that is not seen may take what was freed.
            self._made.clear()
            self._viewed.clear()
            return func(*args, **kwargs)
        try:
            with self._lock:
                before = self._before(func, args, kwargs)
        except Exception as error:  # noqa: BLE001 -- the program must not fail because of the recorder
            warn(f"{func} is not traced", error)
            return func(*args, **kwargs)
        result = func(*args, **kwargs)
        try:
            with self._lock:
                self._after(func, before, args, kwargs, result)
        except Exception as error:  # noqa: BLE001 -- as above
            warn(f"{func} is not traced", error)
        return result

    def _before(self, func: Any, args: Any, kwargs: Any) -> dict[str, Any]:
        name = func._schema.name.rpartition("::")[2]
        overwritten = (
            {id(each) for each in self._written(func, args, kwargs)}
            if self._overwrites(func, name, args)
            else set()
        )
        inputs, handed, plain = list[list[Any]](), list[int](), hashlib.sha256()
        for value in (*args, *(kwargs[key] for key in sorted(kwargs))):
            tensors = digests.tensors_in(self._torch, value)
            for tensor in tensors:
                if id(tensor) in overwritten:
                    continue
                maker = self._maker(tensor)
                if handovers.is_over(maker):
                    handed.append(len(inputs))
                inputs.append([digests.of_tensor(self._torch, tensor).hex()[:16], maker])
            if not tensors:
                plain.update(digests.of_value(self._torch, value))
        if self._torch.Tag.nondeterministic_seeded in func.tags:
            given = kwargs.get("generator")
            state = given.get_state() if given is not None else self._torch.get_rng_state()
            inputs.append([digests.of_tensor(self._torch, state).hex()[:16], -2])
            if not self._torch.is_grad_enabled() and self.modules:
                told = self.modes.hint(name, self.modules, here(3))
                if told is not None:
                    self._writer.write(told)
        space = "" if func.namespace in NAMELESS else f"{func.namespace}::"
        return {
            "k": "op",
            "op": f"{space}{name}.{func._overloadname}",
            "in": inputs,
            "handed": handed,
            "plain": plain.hexdigest()[:16],
            **self._where(),
        }

    def _where(self, *, own_line: bool = False) -> dict[str, Any]:
        """Return where in the program this thread is; with ``own_line`` also in a backward pass."""
        node = getattr(self._torch._C, "_current_autograd_node", lambda: None)()
        back = node is not None
        known = self._forward.get(node._sequence_nr()) if node is not None and not own_line else None
        if known is None:
            place = self._place()
            module = self._names.module(self.modules[-1]) if self.modules else ""
            if not back:
                number = getattr(self._torch.autograd, "_get_sequence_nr", lambda: 0)() - 1
                key, before = _key(), self._forward.get(number)
                # What first sees a number of its thread made the node; later ones make none, as the gradient
                # of ones from which a backward pass begins.
                if before is None or before[2] is not key:
                    self._forward[number] = (place, module, key)
        else:
            place, module, _ = known
        return {
            "place": place,
            "module": module[:300],
            "back": back,
            "flag": self._torch.are_deterministic_algorithms_enabled(),
            "thread": _thread(),
        }

    def launch(self, name: str, given: Any, run: Callable[[], Any]) -> Any:
        """Record the launch of a kernel that torch does not see as an operation, and do it."""
        if getattr(_here, "hidden", 0) or not self.active or self._count >= MOST:
            return run()
        if digests.capturing(self._torch):
            self._made.clear()
            self._viewed.clear()
            return run()
        before, tensors = None, list[Any]()
        try:
            with self._lock, _Hidden(self._torch):
                tensors = digests.tensors_in(self._torch, given, objects=True)
                before = self._before_launch(name, given, tensors)
        except Exception as error:  # noqa: BLE001 -- the program must not fail because of the recorder
            warn(f"{name} is not traced", error)
        _here.hidden = getattr(_here, "hidden", 0) + 1  # an autotuner's copies, an interpreter's
        try:
            result = run()
        finally:
            _here.hidden -= 1
        if before is not None:
            try:
                with self._lock, _Hidden(self._torch):
                    self._after_launch(*before, tensors)
            except Exception as error:  # noqa: BLE001 -- as above
                warn(f"{name} is not traced", error)
        return result

    def _before_launch(self, name: str, given: Any, tensors: list[Any]) -> tuple[dict[str, Any], list[str]]:
        plain, inputs, handed, held = hashlib.sha256(), list[list[Any]](), list[int](), list[str]()
        for value in (*given[0], *(given[1][key] for key in sorted(given[1]))):
            if not digests.tensors_in(self._torch, value, objects=True):
                plain.update(digests.of_value(self._torch, value))
        for tensor in tensors:
            maker = self._maker(tensor)
            held.append(digests.of_tensor(self._torch, tensor).hex()[:16])
            if maker in self._unwritten:
                continue  # memory as it is, into which a kernel writes
            if handovers.is_over(maker):
                handed.append(len(inputs))
            inputs.append([held[-1], maker])
        record = {
            "k": "op",
            "op": name,
            "in": inputs,
            "handed": handed,
            "plain": plain.hexdigest()[:16],
            **self._where(own_line=kernels.in_backward_of_program()),
        }
        return record, held

    def _after_launch(self, record: dict[str, Any], held: list[str], tensors: list[Any]) -> None:
        found, kept, shapes = [], [], []
        for tensor, before in zip(tensors, held):
            found.append(digests.of_tensor(self._torch, tensor).hex()[:16])
            kept.append(self._keep(tensor) if found[-1] != before else -1)
            shapes.append(f"{str(tensor.dtype)[6:]}{list(tensor.shape)} {tensor.device}"[:120])
            if found[-1] != before:
                self._made[digests.memory_of(tensor)] = self._count
        self._write({**record, "out": found, "kept": kept, "shapes": shapes, "empty": False})

    def _after(self, func: Any, record: dict[str, Any], args: Any, kwargs: Any, result: Any) -> None:
        name = func._schema.name.rpartition("::")[2]
        # What others send may come at any time until the program waits for it.
        empty = name in EMPTY or func.namespace == "c10d"
        view = any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)
        # Nothing is read by a view of memory that nobody has written yet.
        empty = empty or (view and any(made in self._unwritten for _, made in record["in"]))
        if empty:
            self._unwritten.add(self._count)
        outputs = digests.tensors_in(self._torch, result)
        written = [t for t in self._written(func, args, kwargs) if not any(t is each for each in outputs)]
        found, kept, shapes = [], [], []
        for tensor in (*outputs, *written):
            found.append("" if empty else digests.of_tensor(self._torch, tensor).hex()[:16])
            kept.append(-1 if empty else self._keep(tensor))
            shapes.append(f"{str(tensor.dtype)[6:]}{list(tensor.shape)} {tensor.device}"[:120])
            if view:
                self._viewed[self._window(tensor)] = self._count
            else:
                self._made[digests.memory_of(tensor)] = self._count
        if not outputs:
            found.append(digests.of_value(self._torch, result).hex()[:16])
            kept.append(-1)
            shapes.append(type(result).__name__)
        self._write({**record, "out": found, "kept": kept, "shapes": shapes, "empty": empty})

    def _write(self, record: dict[str, Any]) -> None:
        self._writer.write({**record, "n": self._count})
        handovers.made()
        self._count += 1
        if self._count == MOST:
            self._writer.write({"k": "full"})

    def _overwrites(self, func: Any, name: str, args: Any) -> bool:
        overload = func._overloadname
        if func.namespace == "c10d":
            sends = name == "broadcast_" and len(args) > 2 and args[2] == self._torch.distributed.get_rank()
            return name in RECEIVING and not sends
        return name in OVERWRITING or overload == "out" or overload.endswith("_out")

    def _written(self, func: Any, args: Any, kwargs: Any) -> list[Any]:
        if func.namespace == "c10d":  # whose schemas do not say: the first argument, but of what only sends
            writes = args and func._schema.name.endswith("_")
            return digests.tensors_in(self._torch, args[0]) if writes else []
        found = []
        for at, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = args[at] if at < len(args) else kwargs.get(argument.name)
                found += digests.tensors_in(self._torch, value)
        return found

    def _window(self, tensor: Any) -> tuple[Any, ...]:
        try:
            where = (tensor.storage_offset(), tuple(tensor.stride()))
        except Exception:  # noqa: BLE001 -- sparse and other tensors without one storage
            where = (0, ())
        return (digests.memory_of(tensor), *where, tuple(tensor.shape))

    def _maker(self, tensor: Any) -> int:
        """Return the operation that gave what a tensor holds: the last writer, or a later view of it."""
        return max(self._made.get(digests.memory_of(tensor), -1), self._viewed.get(self._window(tensor), -1))

    def _place(self) -> int:
        place = here(3)
        if place not in self._places:
            self._places[place] = len(self._places)
            made = constructed_at(3)
            told = {"at": [*place, text(place)], "for": [*made, text(made)]}
            self._writer.write({"k": "place", "n": len(self._places) - 1, **told})
            if place[0] and not any(place[0] == other[0] for other in list(self._places)[:-1]):
                self._hint(place[0])
        return self._places[place]

    def hints(self) -> None:
        """Read the program's other modules for what could explain a difference; once."""
        if self._hinted:
            return
        self._hinted = True
        hints.write(self._writer, {place[0] for place in self._places})

    def _hint(self, path: str) -> None:
        hints.write_of(self._writer, path)

    def _keep(self, tensor: Any) -> int:
        """Keep the values of an output; return where they are in the file of values, or -1."""
        size = tensor.numel() * tensor.element_size()
        if not tensor.is_floating_point() or not 0 < size <= min(ONE_VALUE, self._room):
            return -1
        whole = digests.plain(self._torch, tensor)  # of a GPU's a copy, which must last as long as it is read
        data = bytes(digests.raw(whole))
        if self._values < 0:
            path = self._writer.path()[:-5] + "values"
            self._values = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        at = VALUES - self._room
        os.write(self._values, data)
        self._room -= size
        return at


_here = threading.local()
"""Of a thread: the task that it does now, whether it is traced, and whether it does the recorder's work."""


def _key() -> object:
    """Return what stands for this thread, of whose numbers and identifiers later ones may have the same."""
    if not hasattr(_here, "key"):
        _here.key = object()
    return _here.key


def _thread() -> str:
    """Name what runs beside the main thread: a task by its number, since any thread of a pool may do it."""
    task: str = getattr(_here, "task", "")
    thread = threading.current_thread()
    return task or ("" if thread is threading.main_thread() else thread.name[:60])


class _Hidden:
    """While inside, nothing of this thread is traced and no gradient is followed."""

    def __init__(self, torch: Any) -> None:
        self._without = torch.no_grad()

    def __enter__(self) -> None:
        _here.hidden = getattr(_here, "hidden", 0) + 1
        self._without.__enter__()

    def __exit__(self, *error: object) -> None:
        self._without.__exit__(*error)
        _here.hidden -= 1


def _name_tasks(traced: Callable[[], Any]) -> None:
    """Number the tasks of each thread pool; ``traced`` traces one whose thread is older than the window."""
    submit = ThreadPoolExecutor.submit
    numbers: dict[str, int] = {}

    def submit_named(pool: Any, act: Any, *arguments: Any, **keywords: Any) -> Any:
        name = pool._thread_name_prefix[:40]
        numbers[name] = number = numbers.get(name, -1) + 1

        def task(*arguments: Any, **keywords: Any) -> Any:
            _here.task = f"task {number} of {name}"
            try:
                with traced():
                    return act(*arguments, **keywords)
            finally:
                _here.task = ""

        return submit(pool, task, *arguments, **keywords)

    setattr(ThreadPoolExecutor, "submit", submit_named)  # noqa: B010 -- its type is that of a method


def install(torch: Any, recorder: Any, writer: Writer, window: str) -> None:
    """Turn the trace on before the record FIRST and off after LAST of the window ``FIRST-LAST``."""
    first, _, last = window.partition("-")
    if not last:
        return
    trace = Trace(torch, recorder.names, writer)
    kernels.record_into(trace)
    recorder.unseen = lambda: _Hidden(torch)
    from torch.nn.modules import module as modules  # noqa: PLC0415 -- there only now

    def called(module: Any, _: Any) -> None:
        trace.modules.append(module)

    def returned(*_: Any) -> None:
        if trace.modules:
            trace.modules.pop()

    trace.modes.watch(modules.Module)
    modules.register_module_forward_pre_hook(called)
    modules.register_module_forward_hook(returned, always_call=True)
    state = {"on": False}

    def turn(ordinal: int) -> None:
        trace.active = on = int(first) <= ordinal <= int(last)
        if on and not state["on"]:
            trace.__enter__()
        elif state["on"] and not on:
            trace.__exit__(None, None, None)
        state["on"] = on
        if ordinal == int(last) + 1:
            with recorder.unseen():
                trace.hints()
            writer.write({"k": "traced"})

    inner = threading.Thread.run

    def run(thread: threading.Thread) -> None:
        own = getattr(getattr(thread, "_target", None), "__module__", "") == digests.__name__
        if own or not state["on"]:
            inner(thread)
            return
        _here.traced = True
        with trace:
            inner(thread)

    _name_tasks(lambda: trace if state["on"] and not getattr(_here, "traced", False) else nullcontext())
    setattr(threading.Thread, "run", run)  # noqa: B010 -- its type is that of a method
    atexit.register(trace.hints)
    recorder.between.append(turn)
    turn(0)
