"""Waits for the calls of a program's outermost models, and tries what becomes of a row of each.

The first call of each counts; one with a single row gives way to the first with more. The program goes on
afterwards, with its generators and the models' buffers as they were.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from typing import Any

from .batch import nothing, told
from .batch_rows import Call, Unknown
from .digests import capturing
from .places import here, text
from .watching import warn
from .writing import Writer, shared

MOST_MODELS = 8


class Observer:
    """Waits for calls of outermost modules."""

    def __init__(self, torch: Any, writer: Writer, dim: int | None) -> None:
        self._torch, self._writer, self._dim = torch, writer, dim
        self._seen: dict[int, tuple[Any, int]] = {}
        self._inner = torch.nn.Module.__call__

    def install(self) -> None:
        """Be called instead of each module; while one is called, its own are not touched."""
        observer = self

        def called(module: Any, *args: Any, **kwargs: Any) -> Any:
            if not observer._wanted(module):
                return observer._inner(module, *args, **kwargs)
            observer._torch.nn.Module.__call__ = observer._inner
            try:
                try:
                    call: Any = Call(observer._torch, module, args, kwargs)
                except Unknown as unknown:
                    call = str(unknown)
                except Exception as error:  # noqa: BLE001 -- the program must not fail because of the recorder
                    call = _failed("its arguments cannot be kept", error)
                result = observer._inner(module, *args, **kwargs)
                try:
                    observer._try(module, call)
                except Exception as error:  # noqa: BLE001 -- the program must not fail because of the recorder
                    warn("a model is not tried", error)
                return result
            finally:
                observer._torch.nn.Module.__call__ = called

        self._torch.nn.Module.__call__ = called

    def _wanted(self, module: Any) -> bool:
        torch = self._torch
        if threading.current_thread() is not threading.main_thread() or capturing(torch):
            return False
        compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
        if compiling() or torch.jit.is_tracing() or next(iter(module.parameters()), None) is None:
            return False
        known = self._seen.get(id(module))
        # One that has been called with one row is tried again, with more.
        return len(self._seen) < MOST_MODELS if known is None else known[1] == 1

    def _try(self, module: Any, call: Any) -> None:
        before = self._seen.get(id(module))
        place = here(3)
        facts = {"model": type(module).__name__[:200], "called": [*place, text(place)]}
        if isinstance(call, str):
            found = nothing(call)
        elif _ranks(self._torch) > 1:
            found = nothing("several ranks: a rank that calls its model more often waits for the others")
        else:
            if before is not None:
                sizes = [
                    t.shape[self._dim or 0] for t in call.tensors().values() if t.dim() > (self._dim or 0)
                ]
                if not sizes or sizes[0] < 2:
                    return
            try:
                with _as_before(self._torch, module):
                    found = told(self._torch, module, call, self._dim)
            except Exception as error:  # noqa: BLE001 -- the others' verdict must not seem to be its own
                found = nothing(_failed("its buffers or a generator cannot be kept", error))
        # The module is kept, so that no other one gets its address.
        number = len(self._seen) if before is None else list(self._seen).index(id(module))
        self._seen[id(module)] = (module, found["rows"] if before is None else 2)
        self._writer.write({"k": "batch", "n": number, **facts, **found})


def _failed(what: str, error: Exception) -> str:
    return f"{what}: {type(error).__name__}: {error}".splitlines()[0]


def _ranks(torch: Any) -> int:
    distributed = torch.distributed
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


class _as_before:  # noqa: N801 -- used as a function
    """Leaves random generators and a model's buffers as they were."""

    def __init__(self, torch: Any, module: Any) -> None:
        self._torch, self._module = torch, module

    def __enter__(self) -> None:
        torch = self._torch
        self._states = [(torch.set_rng_state, torch.get_rng_state()), (random.setstate, random.getstate())]
        if torch.cuda.is_initialized():
            self._states.append((torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all()))
        numpy = sys.modules.get("numpy.random")
        if numpy is not None:
            self._states.append((numpy.set_state, numpy.get_state()))
        self._buffers = [(each, each.detach().clone()) for each in self._module.buffers()]

    def __exit__(self, *error: object) -> None:
        for put, state in self._states:
            put(state)
        with self._torch.no_grad():
            for buffer, value in self._buffers:
                buffer.copy_(value)


def install(torch: Any) -> None:
    """Try each model that the program calls, once torch is imported."""
    dim = os.environ.get("REPROBUILD_TWICE_BATCH", "")
    Observer(torch, shared(), int(dim) if dim.isdecimal() else None).install()
