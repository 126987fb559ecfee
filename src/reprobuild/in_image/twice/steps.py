"""Records what each optimizer step and each call of a model computes, through torch's public global hooks.

A ``step`` record has its parts in the order in which they came to be: batch, inputs and outputs of the
model, loss, gradients, parameters, buffers, the optimizer's state and settings, random generators. A
``call`` record is one of a top module with gradients turned off.
"""

from __future__ import annotations

import base64
import functools
import os
import struct
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from . import digests
from .names import Names
from .pending import Pending, is_main
from .watching import warn
from .writing import Writer, shared

MOST_RECORDS = 200_000
MOST_ROWS = 4096
STOPPED = 75
"""The exit status of a process that is stopped after a step, to see whether it can go on."""
SAMPLED = 16
"""Parameters of which one value is kept, for distances between machines."""

_SCALER = ("_scale", "_growth_tracker")
"""What a scaler of gradients changes by; it has none of them before its first use."""


class _Known:
    """An optimizer that has stepped."""

    def __init__(self, optimizer: weakref.ref[Any], which: int) -> None:
        self.optimizer, self.which = optimizer, which
        self.steps = 0
        self.parameters: tuple[int, ...] = ()
        self.names: list[str] = []


class Recorder:
    """Holds what the hooks have seen since the last record."""

    def __init__(self, torch: Any, writer: Writer, every: str) -> None:
        self._torch, self._writer = torch, writer
        self.names = Names()
        self._modules = every == "module"
        self._every = int(every) if every.isdecimal() else 1
        self._stop = int(os.environ.get("REPROBUILD_TWICE_STOP") or -1)
        self.ordinal = 0
        self._steps = 0
        self._depth = 0
        self._pending = Pending()
        self._optimizers: dict[int, _Known] = {}
        self._optimizers_seen = 0
        self._in_threads = 0
        self._writing = threading.RLock()
        self._told: dict[str, list[str]] = {}
        self._unread: set[str] = set()
        self._schedulers: list[weakref.ref[Any]] = []
        self._scalers: list[weakref.ref[Any]] = []
        self._spent = 0.0
        self._gpus_told = False
        self._last = time.perf_counter()
        self.between: list[Callable[[int], object]] = []
        """Called with the number of the next record after each; the trace turns itself on and off there."""

    def tell_gpus(self) -> None:
        """Say once which GPUs the program uses, where other bits may be right; to ask starts none."""
        if not self._gpus_told and self._torch.cuda.is_initialized():
            self._gpus_told = True
            self._writer.write({"k": "gpus", **digests.gpus(self._torch)})

    # --- what the hooks call ---

    def captured(self, graph: Any) -> None:
        """Operations are about to go into a CUDA graph; its replays call none of the hooks."""
        held = self._pending.take()
        self._pending.add("not recorded: what a CUDA graph computes", "", "")
        self._record("call", {"of": type(graph).__name__[:200]})
        self._pending.put_back(*held)

    def batch(self, value: Any) -> None:
        """A DataLoader gave a batch."""
        self._pending.batch(self._digest(value), digests.rows(self._torch, value, MOST_ROWS))

    def before_module(self, module: Any, arguments: Any) -> None:
        """A module is called."""
        self._depth += 1
        if self._depth == 1:
            self.names.add(module)
            self._inputs("inputs", arguments)

    def after_module(self, module: Any, named: Any, result: Any, gradients: bool) -> None:  # noqa: FBT001 -- a hook
        """A module has returned, or raised; ``gradients``: whether they were turned on."""
        self._depth = max(0, self._depth - 1)
        if self._modules and self._depth:
            self._pending.add(f"output of {self.names.module(module)}"[:300], self._digest(result), "")
        elif not self._depth:
            if named:  # torch shows arguments with a name at the end of a call alone
                self._inputs("named inputs", named)
            self._pending.add("outputs", self._digest(result), "")
            if not gradients:
                self._record("call", {"of": type(module).__name__[:200]})

    def _inputs(self, name: str, value: Any) -> None:
        self._pending.add(name, self._digest(value), digests.rows(self._torch, value, MOST_ROWS))

    def loss(self, tensors: Any) -> None:
        """A backward pass starts."""
        found = digests.tensors_in(self._torch, tensors if isinstance(tensors, (list, tuple)) else [tensors])
        self._pending.add("loss", digests.of_value(self._torch, found).hex(), "")
        for tensor in found:
            if tensor.numel() == 1 and len(self._pending.losses) < 64 and not tensor.is_complex():
                self._pending.losses.append(float(tensor.detach()))

    def before_step(self, optimizer: Any) -> None:
        """An optimizer is about to step."""
        if self._known(optimizer) is None:
            self._add(optimizer)
            held = self._pending.take()
            self._state(optimizer, start=True)
            self._record("start", self._of(optimizer))
            self._pending.put_back(*held)
        if self._count(optimizer) % self._every == 0:
            parameters = _parameters(optimizer)
            gradients = [parameter.grad for parameter in parameters]
            named = self._which(optimizer) >= 0
            self._group("gradients", self._names(optimizer, parameters), gradients, is_named=named)

    def after_step(self, optimizer: Any) -> None:
        """An optimizer has stepped."""
        number = self._count(optimizer)
        if number % self._every == 0:
            self._state(optimizer)
        self._steps += 1
        known = self._known(optimizer)
        if known is not None:
            known.steps += 1
        self._record("step", {"n": number, **self._of(optimizer)})
        if self._steps == self._stop:
            os._exit(STOPPED)  # as a machine that fails: nothing of the program is told

    # --- parts and records ---

    def _digest(self, value: Any) -> str:
        return digests.of_value(self._torch, value).hex()

    def _known(self, optimizer: Any) -> _Known | None:
        known = self._optimizers.get(id(optimizer))
        # An address is given to the next object once the one that had it is gone.
        return known if known is not None and known.optimizer() is optimizer else None

    def _add(self, optimizer: Any) -> None:
        """Number an optimizer from 0; threads come to theirs in any order: those have -1 and less."""
        with self._writing:
            for address in [at for at, known in self._optimizers.items() if known.optimizer() is None]:
                del self._optimizers[address]
            which = self._optimizers_seen if is_main() else -self._in_threads - 1
            self._optimizers_seen += which >= 0
            self._in_threads += which < 0
            self._optimizers[id(optimizer)] = _Known(weakref.ref(optimizer), which)

    def _of(self, optimizer: Any) -> dict[str, Any]:
        return {"optimizer": type(optimizer).__name__[:200], "which": self._which(optimizer)}

    def _count(self, optimizer: Any) -> int:
        """Return the number of its next step: of the process, or its own where another thread made it."""
        known = self._known(optimizer)
        return self._steps if known is None or known.which >= 0 else known.steps

    def _which(self, optimizer: Any) -> int:
        known = self._known(optimizer)
        return 0 if known is None else known.which

    def _group(self, name: str, names: list[str], tensors: list[Any], *, is_named: bool = True) -> None:
        """Add a group of tensors, with their names but in threads, of which each may have others."""
        digest, each = digests.of_group(self._torch, tensors)
        if is_named and self._told.get(name) != names:
            self._told[name] = names
            self._writer.write({"k": "names", "group": name, "names": [text[:300] for text in names]})
        self._pending.add(name, digest, each)

    def _state(self, optimizer: Any, *, start: bool = False) -> None:
        parameters = _parameters(optimizer)
        names = self._names(optimizer, parameters)
        which = self._which(optimizer)
        in_main = which >= 0
        mark = f" of optimizer {which + 1}" if which > 0 else ""
        self._group("parameters" + mark, names, parameters, is_named=in_main)
        # The forward pass before a first step has changed them already.
        buffers = [] if start or not in_main else self.names.buffers()
        if buffers:
            self._group("buffers", [name for name, _ in buffers], [each for _, each in buffers])
        told, tensors, rest = [], [], []
        for name, parameter in zip(names, parameters):
            state = optimizer.state.get(parameter, {})
            for key in sorted(state, key=str) if isinstance(state, dict) else ():
                if isinstance(state[key], self._torch.Tensor):
                    told.append(f"{key} of {name}")
                    tensors.append(state[key])
                else:
                    rest.append((name, str(key), state[key]))
        self._group("optimizer state" + mark, told, tensors, is_named=in_main)
        settings = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
        self._pending.add("optimizer settings", digests.of_value(self._torch, [settings, rest]).hex(), "")
        self._beside(optimizer, in_main=in_main)
        if not start:
            self._pending.sample = self._sampled(parameters)
        for generator, digest in digests.of_generators(self._torch).items() if in_main else ():
            self._pending.add(f"random {generator}", digest, "")

    def _beside(self, optimizer: Any, *, in_main: bool) -> None:
        """What stands beside an optimizer: its schedulers, and in the main thread scalers of gradients."""
        schedulers = [each for ref in self._schedulers if (each := ref()) is not None]
        states = [
            {name: value for name, value in vars(each).items() if name != "optimizer" and not callable(value)}
            for each in schedulers
            if getattr(each, "optimizer", None) is optimizer
        ]
        if states:
            self._pending.add("scheduler", digests.of_value(self._torch, states).hex(), "")
        scalers = [each for ref in self._scalers if (each := ref()) is not None]
        if scalers and in_main:
            states = [
                {name: value for name in _SCALER if (value := getattr(each, name, None)) is not None}
                for each in scalers
            ]
            self._pending.add("gradient scaler", digests.of_value(self._torch, states).hex(), "")

    def scheduler(self, made: Any) -> None:
        """A scheduler of the learning rate is made."""
        self._schedulers.append(weakref.ref(made))

    def scaler(self, made: Any) -> None:
        """A scaler of gradients is made."""
        self._scalers.append(weakref.ref(made))

    def _sampled(self, parameters: list[Any]) -> str:
        step = max(1, len(parameters) // SAMPLED)
        sampled = [
            each.detach().flatten()[each.numel() // 2].double()
            for each in parameters[::step][:SAMPLED]
            if each.numel() and not each.is_complex() and each.layout is self._torch.strided
        ]
        # Of a device all at once: each copy waits for it.
        plain = all(type(each) is self._torch.Tensor for each in sampled)  # not those of several ranks
        alike = plain and len({each.device for each in sampled}) == 1
        values = self._torch.stack(sampled).tolist() if alike else [float(each) for each in sampled]
        return base64.b64encode(struct.pack(f"<{len(values)}d", *values)).decode()

    def _names(self, optimizer: Any, parameters: list[Any]) -> list[str]:
        ids = tuple(id(parameter) for parameter in parameters)
        known = self._known(optimizer)
        if known is not None and known.parameters == ids:
            return known.names
        by_id = self.names.parameters()
        names = [
            by_id.get(id(parameter), f"parameter {at} {tuple(parameter.shape)}")
            for at, parameter in enumerate(parameters)
        ]
        if known is not None:
            known.parameters, known.names = ids, names
        return names

    def _record(self, kind: str, facts: dict[str, Any]) -> None:
        with self._writing:
            self._write(kind, facts)

    def _write(self, kind: str, facts: dict[str, Any]) -> None:
        if self.ordinal >= MOST_RECORDS:
            if self.ordinal == MOST_RECORDS:
                self._writer.write({"k": "full"})
            self.ordinal += 1
            return
        self._writer.tell_rank()
        self.tell_gpus()
        parts, losses = self._pending.take()
        parts += [
            [f"not recorded: tensors of type {kind}", "", ""]
            for kind in sorted(digests.unread - self._unread)
        ]
        self._unread |= digests.unread
        now = time.perf_counter()
        self._writer.write(
            {
                "k": kind,
                **facts,
                "parts": parts,
                "loss": base64.b64encode(struct.pack(f"<{len(losses)}d", *losses)).decode(),
                "sample": self._pending.sample,
                "wall": round(now - self._last, 6),
                "spent": round(self._spent, 6),
            }
        )
        self._pending.sample, self._spent, self._last = "", 0.0, now
        self.ordinal += 1
        for act in self.between:
            act(self.ordinal)

    def timed(self, act: Callable[..., object]) -> Callable[..., None]:
        """Return a hook that never raises, is blind to itself, and whose time is counted."""

        @functools.wraps(act)
        def hook(*arguments: Any) -> None:
            if digests.capturing(self._torch):  # `captured` has written that nothing is seen of it
                return
            start = time.perf_counter()
            try:
                with self.unseen():
                    act(*arguments)
            except Exception as error:  # noqa: BLE001 -- the program must not fail because of the recorder
                warn(f"{act.__name__} is not recorded", error)
                self._pending.add(f"not recorded: {act.__name__}", "", "")
            self._spent += time.perf_counter() - start

        return hook

    unseen: Callable[[], Any]
    """Keeps the recorder's own operations out of a trace."""


def _parameters(optimizer: Any) -> list[Any]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def install(torch: Any) -> None:
    """Register the hooks, once torch is imported."""
    from torch.nn.modules import module as modules  # noqa: PLC0415 -- there only now
    from torch.optim import optimizer as optimizers  # noqa: PLC0415
    from torch.utils.data import dataloader  # noqa: PLC0415

    writer = shared()
    writer.write({"k": "torch", **_facts(torch)})
    recorder = Recorder(torch, writer, os.environ.get("REPROBUILD_TWICE_EVERY", "1"))
    recorder.unseen = torch.no_grad
    window = os.environ.get("REPROBUILD_TWICE_TRACE", "")
    if window:
        from .trace import install as trace  # noqa: PLC0415 -- only for a trace

        trace(torch, recorder, writer, window)
    compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
    before, after = recorder.timed(recorder.before_module), recorder.timed(recorder.after_module)

    # Calls in threads of the program's own, as DataParallel's or a pool's, come in no order that could be
    # compared. What comes of them is compared where the main thread takes it up, or an optimizer steps.
    def before_module(module: Any, arguments: Any) -> None:
        if not compiling() and is_main():
            before(module, arguments)

    def after_module(module: Any, _: Any, *rest: Any) -> None:
        if not compiling() and is_main():
            after(module, rest[0] if len(rest) > 1 else None, rest[-1], torch.is_grad_enabled())

    modules.register_module_forward_pre_hook(before_module)
    try:
        modules.register_module_forward_hook(after_module, with_kwargs=True, always_call=True)
    except TypeError:  # before torch 2.1
        modules.register_module_forward_hook(after_module, always_call=True)
    step, stepped = recorder.timed(recorder.before_step), recorder.timed(recorder.after_step)
    first = optimizers.register_optimizer_step_pre_hook(lambda optimizer, *_: step(optimizer))
    second = optimizers.register_optimizer_step_post_hook(lambda optimizer, *_: stepped(optimizer))
    _before_call(torch.autograd, "backward", recorder.timed(recorder.loss))
    _before_call(torch.cuda.CUDAGraph, "capture_begin", recorder.timed(recorder.captured))
    from torch.optim import lr_scheduler  # noqa: PLC0415 -- there only now

    base = getattr(lr_scheduler, "LRScheduler", None) or lr_scheduler._LRScheduler
    _after_init(base, recorder.timed(recorder.scheduler))
    if "__init__" in vars(lr_scheduler.ReduceLROnPlateau):  # it does not call its base's
        _after_init(lr_scheduler.ReduceLROnPlateau, recorder.timed(recorder.scheduler))
    scaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
    _after_init(scaler, recorder.timed(recorder.scaler))
    # There is no public hook for what a loader gives; this one method is what all its iterators share.
    _after_call(dataloader._BaseDataLoaderIter, "__next__", recorder.timed(recorder.batch))
    at_exit(
        writer,
        [(optimizers._global_optimizer_pre_hooks, first), (optimizers._global_optimizer_post_hooks, second)],
        recorder.timed(recorder.tell_gpus),
    )


def at_exit(writer: Writer, hooks: list[tuple[Any, Any]], tell_gpus: Callable[[], None]) -> None:
    """Write the last records: the GPUs, and whether the hooks are still in their places."""
    import atexit  # noqa: PLC0415

    def end() -> None:
        tell_gpus()
        writer.write({"k": "end", "hooks": all(handle.id in places for places, handle in hooks)})

    atexit.register(end)


def _facts(torch: Any) -> dict[str, Any]:
    """Say what kind of machine this is, where other bits may be right."""
    capability = getattr(torch.backends.cpu, "get_cpu_capability", lambda: "")()
    return {
        "torch": str(torch.__version__)[:100],
        "python": sys.version.split()[0],
        "threads": torch.get_num_threads(),
        "cpu": f"{os.uname().machine} {capability}"[:100],
        "deterministic": torch.are_deterministic_algorithms_enabled(),
    }


def _before_call(owner: Any, name: str, act: Callable[..., None]) -> None:
    inner = getattr(owner, name)

    @functools.wraps(inner)
    def wrapper(*arguments: Any, **keywords: Any) -> Any:
        act(arguments[0] if arguments else keywords.get("tensors"))
        return inner(*arguments, **keywords)

    setattr(owner, name, wrapper)


def _after_init(owner: Any, act: Callable[..., None]) -> None:
    inner = owner.__init__

    @functools.wraps(inner)
    def wrapper(self: Any, *arguments: Any, **keywords: Any) -> None:
        inner(self, *arguments, **keywords)
        act(self)

    owner.__init__ = wrapper


def _after_call(owner: Any, name: str, act: Callable[..., None]) -> None:
    inner = getattr(owner, name)

    @functools.wraps(inner)
    def wrapper(*arguments: Any, **keywords: Any) -> Any:
        result = inner(*arguments, **keywords)
        act(result)
        return result

    setattr(owner, name, wrapper)
