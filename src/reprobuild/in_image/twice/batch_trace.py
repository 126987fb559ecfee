"""The first operation of torch that gives a row another value in another batch.

The model is called with two batches that have one row in common, and its operations are compared in their
order by that row's part of their outputs. Which axis of an output has the rows is seen from its shape with
one row more. An operation begins the difference if what it read was equal; of those that the answer depends
on, the first one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from . import digests
from .batch_rows import distance, pieces, scaling
from .places import here, text
from .trace import NAMELESS

MOST = 100_000
"""Operations of one call."""

Run = Callable[["list[int]"], Any]
Part = Callable[[int, int, Any], "list[Any]"]
"""Returns the relevant part of an output, from the numbers of operation and output, and the output."""


class _Seen:
    """One operation of a call."""

    def __init__(self, name: str, place: tuple[str, int, str], module: str) -> None:
        self.name, self.place, self.module = name, place, module
        self.shapes: list[tuple[int, ...]] = []
        self.digests: list[list[str]] = []
        """Of each output, or of its row in each way in which it may be laid out."""
        self.makers: list[int] = []
        """The operations that made what it read."""


class Watch(TorchDispatchMode):  # type: ignore[misc]
    """Notes the operations of one call; ``part`` gives what of an output counts."""

    def __init__(self, torch: Any, modules: Modules, part: Part) -> None:
        super().__init__()
        self._torch, self._modules, self._part = torch, modules, part
        self._made: dict[int, int] = {}
        self.seen: list[_Seen] = []
        self.kept: list[list[Any]] = []
        """What counts of each output of the operation ``keep``."""
        self.keep = -1
        self.ends: set[int] = set()
        """The operations that the answer depends on."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Do an operation, and note it."""
        kwargs = kwargs or {}
        torch, at = self._torch, len(self.seen)
        if at >= MOST or func.namespace == "profiler":
            return func(*args, **kwargs)
        given = digests.tensors_in(torch, [args, kwargs])
        makers = [self._made[memory] for each in given if (memory := digests.memory_of(each)) in self._made]
        result = func(*args, **kwargs)
        name = func._schema.name.rpartition("::")[2]
        whose = "" if func.namespace in NAMELESS else f"{func.namespace}::"
        seen = _Seen(f"{whose}{name}", here(2), self._modules.path())
        outputs = digests.tensors_in(torch, result) or (given if name.endswith("_") else [])
        for number, tensor in enumerate(outputs):
            parts = self._part(at, number, tensor)
            seen.shapes.append(() if tensor.is_nested else tuple(tensor.shape))
            # What is new and empty holds anything.
            new = "empty" in name or name in ("resize_", "set_")
            seen.digests.append(["" if new else digests.of_tensor(torch, part).hex()[:32] for part in parts])
            if at == self.keep:
                self.kept.append([part.detach().clone() for part in parts])
            self._made[digests.memory_of(tensor)] = at
        if not outputs:
            seen.digests.append([digests.of_value(torch, result).hex()[:32]])
            seen.shapes.append(())
        seen.makers = makers
        self.seen.append(seen)
        return result

    def reached(self, tensors: list[Any]) -> set[int]:
        """Return the operations that tensors depend on."""
        left = [self._made[memory] for each in tensors if (memory := digests.memory_of(each)) in self._made]
        found: set[int] = set()
        while left:
            at = left.pop()
            if at not in found:
                found.add(at)
                left += self.seen[at].makers
        return found


class Modules:
    """The modules that are being called, while it is entered."""

    def __init__(self, torch: Any, top: Any) -> None:
        self._torch = torch
        self._names = {id(each): name or type(top).__name__ for name, each in top.named_modules()}
        self._stack: list[str] = []

    def path(self) -> str:
        """Return the path of the innermost one."""
        return self._stack[-1] if self._stack else ""

    def __enter__(self) -> Modules:  # noqa: PYI034 -- Self is of Python 3.11
        """Follow the calls of modules."""
        from torch.nn.modules import module as modules  # noqa: PLC0415 -- there only now

        def called(module: Any, _: Any) -> None:
            self._stack.append(self._names.get(id(module), type(module).__name__))

        def returned(*_: Any) -> None:
            if self._stack:
                self._stack.pop()

        self._hooks = [
            modules.register_module_forward_pre_hook(called),
            modules.register_module_forward_hook(returned, always_call=True),
        ]
        return self

    def __exit__(self, *error: object) -> None:
        """Follow them no longer."""
        for hook in self._hooks:
            hook.remove()


def first_operation(
    torch: Any, top: Any, run: Run, one: tuple[list[int], int], other: tuple[list[int], int] | None
) -> dict[str, Any] | None:
    """Return the first operation that gives a row another value in another batch; None: not found.

    ``run`` calls the model with a batch of some rows and returns the tensors of its answer. ``one`` and
    ``other`` are two batches with the place of the same row in each. Without ``other``, it is the first
    operation that does not repeat for ``one``.
    """

    def call(rows: list[int], part: Part, keep: int = -1) -> Watch:
        with Modules(torch, top) as modules:
            watch = Watch(torch, modules, part)
            watch.keep = keep
            with watch:
                ends = run(rows)
            watch.ends = watch.reached(list(ends.values()))
        return watch

    def whole(_: int, __: int, tensor: Any) -> list[Any]:
        return [torch.cat([each.reshape(-1) for each in tensor.unbind()])] if tensor.is_nested else [tensor]

    limit = MOST
    part: Part = whole
    if other is None:
        parts, batches = [part, part], [one[0], one[0]]
    else:
        batches = [one[0], other[0]]
        longer = other[0] if len(other[0]) != len(one[0]) else [*one[0], one[0][-1]]
        few, more = call(one[0], whole), call(longer, whole)
        axes, limit = _axes((few.seen, len(one[0])), (more.seen, len(longer)))
        parts = [_row_of(torch, axes, len(rows), at) for rows, at in (one, other)]
    first, second = (call(rows, part) for rows, part in zip(batches, parts))
    at = _beginning(first, second, limit)
    if at is None:
        return None
    seen = second.seen[at] if at < len(second.seen) else first.seen[at]
    found = {
        "op": seen.name[:200],
        "place": [*seen.place, text(seen.place)],
        "module": seen.module[:300],
        "ulp": -1,
        "share": -1.0,
        "path": at >= len(first.seen) or first.seen[at].name != seen.name,
    }
    if not found["path"]:
        kept = [call(rows, part, at).kept for rows, part in zip(batches, parts)]
        apart = [
            min(distance(torch, a, b) for a, b in zip(ones, others)) for ones, others in zip(*kept) if ones
        ]
        ulp, share = max(apart, default=(-1, float("inf")))
        found.update(ulp=ulp, share=share if share != float("inf") else -1.0)
    return found


def _axes(one: tuple[list[_Seen], int], other: tuple[list[_Seen], int]) -> tuple[dict[Any, int], int]:
    """Return the axis of the rows, by operation and output, and how many operations were the same."""
    axes: dict[Any, int] = {}
    (few, rows), (more, many) = one, other
    for number, (a, b) in enumerate(zip(few, more)):
        if a.name != b.name:
            return axes, number
        for output, shapes in enumerate(zip(a.shapes, b.shapes)):
            grows, _ = scaling(shapes[0], rows, shapes[1], many)
            if grows:
                axes[number, output] = grows[0]
    return axes, MOST


def _row_of(torch: Any, axes: Mapping[Any, int], rows: int, at: int) -> Part:
    """Return what gives the part of a row in each operation's outputs."""

    def part(number: int, output: int, tensor: Any) -> list[Any]:
        if tensor.is_nested:
            return [tensor.unbind()[at]]
        axis = axes.get((number, output))
        if axis is None or axis >= tensor.dim() or tensor.shape[axis] % rows:
            return [tensor]
        return pieces(torch, tensor, axis, rows, at)

    return part


def _beginning(first: Watch, second: Watch, limit: int) -> int | None:
    """Return the first operation whose output differs, what it read did not, and the answer depends on.

    After ``limit`` operations nothing is known of the rows.
    """
    differs: set[int] = set()
    begins: list[int] = []
    length = min(len(first.seen), len(second.seen))
    for at, (one, other) in enumerate(zip(first.seen, second.seen)):
        if one.name != other.name:
            length = at
            break
        if at >= limit:
            return next((at for at in begins if at in second.ends), None)
        equal = len(one.digests) == len(other.digests) and all(
            any(x == y for x, y in zip(a, b)) for a, b in zip(one.digests, other.digests)
        )
        if not equal:
            differs.add(at)
            if not differs.intersection(other.makers):
                begins.append(at)
    found = next((at for at in begins if at in second.ends), None)
    if found is None and length < max(len(first.seen), len(second.seen)):
        return length  # the first that only one of them does
    return found
