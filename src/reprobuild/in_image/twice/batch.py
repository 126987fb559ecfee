"""Tries whether a row of a model's answer depends on its batch, with the program's own model and arguments.

A call of an outermost module is done again: a row alone, among 2 to 64 rows, in another order, among copies
of itself, with padding. Everything in one process, bit for bit. Before that the same call has to repeat.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

from .batch_rows import Call, Unknown, answers, chosen, distance, mask_of, pieces, same, scaling

SIZES = (2, 64, 8, 3, 16, 4, 32, 5, 7, 17, 33, 63, 6, 9, 12, 15, 24, 31, 48)
"""Rows in a batch, the most telling first: kernels change at powers of two, and have tails."""
ROWS = 6
"""Rows of the program's batch that are looked at, and make up the others."""
SECONDS = 60.0
"""For one model; what is left out then is named."""
PADDED = (1, 7)
"""Places that are added to a sequence."""


class _Way:
    """What came of one way to make a batch."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.equal = self.differ = 0
        self.ulp, self.share = 0, 0.0
        self.first: tuple[list[int], int] | None = None
        """The first batch that differed, and the place in it."""

    def told(self) -> dict[str, Any]:
        """Return it for the record."""
        share = self.share if self.share != float("inf") else -1.0
        return {"way": self.name, "equal": self.equal, "differ": self.differ, "ulp": self.ulp, "share": share}


class Trial:
    """One model and one call of it."""

    def __init__(self, torch: Any, module: Any, call: Call, dim: int | None) -> None:
        self._torch, self._module, self._call = torch, module, call
        self._dim, self._given = dim or 0, dim is not None
        self._end = time.monotonic() + SECONDS
        self.ways: dict[str, _Way] = {}
        self.notes: list[str] = []
        self.rows = 0
        self.plan: dict[str, tuple[int, int]] = {}
        """The axis of the rows in each answer that has them, and in which way they are laid out."""
        self._mask: tuple[str, Any, bool] | None = None

    # --- calls ---

    def _do(self, change: Callable[[str, Any], Any]) -> dict[str, Any]:
        args, kwargs = self._call.made(change)
        found, unread = answers(self._torch, self._module(*args, **kwargs))
        for name in unread:
            self.note(f"not compared: {name}")
        return found

    def run(self, rows: list[int], zeros: int = 0) -> dict[str, Any]:
        """Return the answer to a batch of some of the program's rows, and of rows of zeros."""
        axes = self._call.axes

        def change(path: str, tensor: Any) -> Any:
            axis = axes.get(path)
            if axis is None:
                copied = tensor.detach().clone()
                return copied.requires_grad_() if tensor.requires_grad else copied
            return chosen(self._torch, tensor, axis, rows, zeros)

        return self._do(change)

    def note(self, what: str) -> None:
        """Keep what was not tried or not compared."""
        if what not in self.notes and len(self.notes) < 20:
            self.notes.append(what[:300])

    # --- rows ---

    def _row(self, found: dict[str, Any], rows: int, at: int, row: int) -> dict[str, Any]:
        """Return what an answer says of one row, without the places where its sequence has no value."""
        parts = {}
        for name, (axis, way) in self.plan.items():
            if name not in found or found[name].dim() <= axis or found[name].shape[axis] % rows:
                raise Unknown(f"answer {name or 'of the model'} has no rows in a batch of {rows}")
            part = pieces(self._torch, found[name], axis, rows, at)
            parts[name] = self._real(part[min(way, len(part) - 1)], row)
        return parts

    def _real(self, part: Any, row: int) -> Any:
        if self._mask is None or part.dim() < 2:
            return part
        real = self._mask[1][row]
        length, count = len(real), int(real.sum())
        if part.shape[1] >= length:
            extra = part.shape[1] - length
            places = real.nonzero().flatten() + (0 if bool(real[0]) else extra)
            return part.index_select(1, places.to(part.device)) if extra in (0, *PADDED) else part
        # Some layers leave out what no row of the batch has a value for.
        return part[:, :count] if bool(real[0]) and part.shape[1] >= count else part

    def _compare(
        self, way: str, one: dict[str, Any], other: dict[str, Any], batch: tuple[list[int], int]
    ) -> None:
        found = self.ways.setdefault(way, _Way(way))
        for name, expected in one.items():
            if same(self._torch, expected, other[name]):
                continue
            found.differ += 1
            found.first = found.first or batch
            ulp, share = distance(self._torch, expected, other[name])
            found.ulp = -1 if -1 in (ulp, found.ulp) else max(found.ulp, ulp)
            found.share = max(found.share, share)
            return
        found.equal += 1

    # --- the trial ---

    def begin(self) -> dict[str, Any] | None:
        """Find the rows of the arguments; return the first operation where the call does not repeat."""
        tensors = self._call.tensors()
        self.rows = next((t.shape[self._dim] for t in tensors.values() if t.dim() > self._dim), 0)
        if not self.rows:
            raise Unknown(f"no argument is a tensor with rows along dimension {self._dim}")
        # Among copies of itself a row has the same answer, whatever it depends on.
        if self.rows < 2:
            raise Unknown("its batch has a single row: call the model with two rows or more")
        having = [t for t in tensors.values() if t.dim() > self._dim and t.shape[self._dim] == self.rows]
        if all(same(self._torch, t.roll(1, self._dim), t) for t in having):
            raise Unknown("all rows of its batch are the same: call the model with rows that differ")
        everything = list(range(self.rows))
        self._call.axes = {}
        first, second = self.run(everything), self.run(everything)
        if not first:
            raise Unknown("its answer holds no tensors")
        if all(same(self._torch, value, second[name]) for name, value in first.items()):
            return None
        return self._operation((everything, 0), None) or {}

    def _assign(self) -> dict[int, dict[str, Any]]:
        """Find which arguments have rows, and return the answers of the rows alone; none: there are none.

        An argument of the length of the batch has rows. Only where a row alone cannot be computed so, other
        axes are tried, and whether it is the same for all rows. Raises `Unknown` where both is possible.
        """
        tensors = self._call.tensors()
        first = next(name for name, tensor in tensors.items() if tensor.dim() > self._dim)
        names = [name for name, tensor in tensors.items() if self.rows in tensor.shape]
        options: list[list[int | None]] = []
        for name in names:
            axes = [axis for axis, size in enumerate(tensors[name].shape) if size == self.rows]
            axes.sort(key=lambda axis: axis != self._dim)
            again = self._call.same_as[name] != name  # it follows the one that it is
            options.append([self._dim] if name == first else [None] if again else [*axes, None])
        begun: tuple[dict[str, int], bool] | None = None
        error = ""
        for chosen_axes in itertools.islice(itertools.product(*options), 32):
            found = {name: axis for name, axis in zip(names, chosen_axes) if axis is not None}
            found.update({n: found[of] for n, of in self._call.same_as.items() if of in found})
            self._call.axes, self._mask, self.notes = found, None, []
            self._mask = mask_of(self._call)
            try:
                near, ran = self._near(), True
            except Exception as problem:  # noqa: BLE001 -- of the model, with arguments that may be wrong
                near = ran = False
                error = error or f"{type(problem).__name__}: {problem}".splitlines()[0][:200]
            if near and begun is not None and begun[1]:
                other = ", ".join(n for n in begun[0] if found.get(n) != begun[0][n])
                raise Unknown(
                    f"{other} has the batch's length, and may have its rows or not: call the model with a"
                    " batch of another size"
                )
            if near:
                return self._alone()
            begun = begun or (found, ran)
        assert begun is not None
        self._call.axes, self.notes = begun[0], []
        self._mask = mask_of(self._call)
        if begun[1]:
            self._plan(1)
            return self._alone()
        self.note(f"a row alone fails: {error}")
        if not self._plan(self.rows):
            raise Unknown(f"a row alone fails: {error}")
        return {}

    def _plan(self, rows: int) -> bool:
        """Find the rows in the answers, by their shapes for so many rows and for one more."""
        torch = self._torch
        few, more = self.run(self._cycle(rows)), self.run(self._cycle(rows + 1))
        self.plan = {}
        for name, tensor in few.items():
            if name not in more:
                continue
            grows, odd = scaling(tensor.shape, rows, more[name].shape, rows + 1)
            if len(grows) == 1 and not [axis for axis in odd if axis != 1 or self._mask is None]:
                self.plan[name] = grows[0], 0
                if tensor.shape[grows[0]] > rows and rows == 1:
                    apart = [
                        distance(torch, tensor, part)[1] if tensor.shape == part.shape else float("inf")
                        for part in pieces(torch, more[name], grows[0], 2, 0)
                    ]
                    self.plan[name] = grows[0], apart.index(min(apart))
            else:
                self.note(f"not compared: {name or 'answer'} {tuple(tensor.shape)}, which has no rows")
        return bool(self.plan)

    def _cycle(self, size: int) -> list[int]:
        """Return the rows of a batch of a size: those that are looked at, again and again."""
        return [self.chosen[at % len(self.chosen)] for at in range(size)]

    @property
    def chosen(self) -> list[int]:
        """The rows of the program's batch that are looked at, spread evenly."""
        last = self.rows - 1
        count = min(ROWS, self.rows)
        return sorted({round(at * last / max(count - 1, 1)) for at in range(count)})

    def _near(self) -> bool:
        """Whether a row alone has about the answer that it has in the program's batch."""
        if not self._plan(1):
            raise Unknown("its answer has no rows")
        row = self.chosen[-1]
        alone = self._row(self.run([row]), 1, 0, row)
        whole = self._row(self.run(list(range(self.rows))), self.rows, row, row)
        for name, expected in alone.items():
            if same(self._torch, expected, whole[name]):
                continue
            if not distance(self._torch, expected, whole[name])[1] <= 1e-2:
                return False
        return True

    def _alone(self) -> dict[int, dict[str, Any]]:
        return {row: self._row(self.run([row]), 1, 0, row) for row in self.chosen}

    def others(self, *, alone: bool) -> None:
        """Compare a row among copies of itself with the same row among others, at the same place."""
        whole = self.run(list(range(self.rows)))
        for row in self.chosen[:3]:
            copies = self._row(self.run([row] * self.rows), self.rows, row, row)
            batch = list(range(self.rows)), row
            self._compare("among others", copies, self._row(whole, self.rows, row, row), batch)
        if not alone:
            return
        order = list(reversed(range(self.rows)))
        turned = self.run(order)
        for at, row in enumerate(order):
            self._compare(
                "permuted",
                self._row(whole, self.rows, row, row),
                self._row(turned, self.rows, at, row),
                (order, at),
            )

    def sizes(self, alone: dict[int, dict[str, Any]]) -> None:
        """Compare rows alone with the same rows in batches of other sizes."""
        for row, expected in alone.items():
            self._compare("alone, again", expected, self._row(self.run([row]), 1, 0, row), ([row], 0))
        late: list[int] = []
        for size in dict.fromkeys((self.rows, *SIZES)):
            if size < 2:
                continue
            if time.monotonic() > self._end:
                late.append(size)
                continue
            rows = list(range(size)) if size == self.rows else self._cycle(size)
            self._tried(f"{size} rows", rows, alone)
        if late:
            self.note(f"not tried, for {SECONDS:g} s were over: {', '.join(map(str, sorted(late)))} rows")
        self._tried("padded with rows of zeros", self._cycle(min(self.rows, 3)), alone, zeros=5)

    def _tried(self, way: str, rows: list[int], alone: dict[int, dict[str, Any]], zeros: int = 0) -> None:
        size = len(rows) + zeros
        try:
            found = self.run(rows, zeros)
            for at, row in enumerate(rows):
                if row in alone:
                    self._compare(way, alone[row], self._row(found, size, at, row), (rows, at))
        except Exception as error:  # noqa: BLE001 -- a model may refuse a size, or a machine lack memory
            self.note(f"not tried: {way}: {type(error).__name__}: {error}".splitlines()[0])

    def padded(self, alone: dict[int, dict[str, Any]]) -> None:
        """Compare rows alone with the same rows, their sequences longer by places that a mask leaves out."""
        if self._mask is None:
            self.note("padding of sequences not tried: no argument is known as its mask")
            return
        path, real, inverted = self._mask
        length = real.shape[1]
        tensors = self._call.tensors()
        axes = {
            n: 1 for n, t in tensors.items() if n in self._call.axes and t.dim() > 1 and t.shape[1] == length
        }
        if any(length in t.shape for n, t in tensors.items() if n not in axes):
            self.note(
                "padding of sequences not tried: an argument that is the same for all rows has its length"
            )
            return
        for row, expected in alone.items():
            front = not bool(real[row][0])
            for extra in PADDED:
                self._stretched(row, expected, extra, axes, front=front, mask=(path, inverted))

    def _stretched(
        self, row: int, expected: dict[str, Any], extra: int, axes: dict[str, int], *, front: bool, mask: Any
    ) -> None:
        torch = self._torch

        def change(path: str, tensor: Any) -> Any:
            axis = self._call.axes.get(path)
            found = tensor.detach().clone() if axis is None else chosen(torch, tensor, axis, [row])
            if path in axes:
                shape = list(found.shape)
                shape[1] = extra
                more = found.new_zeros(shape)
                if path == mask[0] and mask[1]:
                    more = torch.ones_like(more)
                found = torch.cat([more, found] if front else [found, more], 1)
            return found

        way = "padded sequences"
        try:
            found = self._row(self._do(change), 1, 0, row)
        except Exception as error:  # noqa: BLE001 -- as a length that a model does not have
            self.note(f"not tried: {way}: {type(error).__name__}: {error}".splitlines()[0])
            return
        self._compare(way, expected, found, ([row], 0))

    def _operation(
        self, one: tuple[list[int], int], other: tuple[list[int], int] | None
    ) -> dict[str, Any] | None:
        from .batch_trace import first_operation  # noqa: PLC0415 -- only where something differs

        compiled = any(
            type(each).__name__ == "OptimizedModule" or getattr(each, "_compiled_call_impl", None) is not None
            for each in self._module.modules()
        )
        if compiled:
            self.note("the operation is inside of what torch.compile made")
            return None
        try:
            return first_operation(self._torch, self._module, self.run, one, other)
        except Exception as error:  # noqa: BLE001 -- the verdict stands without it
            self.note(f"the operation is not known: {type(error).__name__}: {error}".splitlines()[0])
            return None

    def _elsewhere(self) -> bool:
        """Whether along another dimension a row alone has about the answer that it has in the batch."""
        kept = self._call.axes, self._dim, self.rows, self.plan, self._mask, self.notes
        try:
            self._dim, self._call.axes, self._mask, self.notes = 1, {}, None, []
            tensors = self._call.tensors()
            self.rows = next((t.shape[1] for t in tensors.values() if t.dim() > 1), 0)
            if self.rows < 2:
                return False
            self._call.axes = {n: 1 for n, t in tensors.items() if t.dim() > 1 and t.shape[1] == self.rows}
            return self._near()
        except Exception:  # noqa: BLE001 -- of the model: these are no rows
            return False
        finally:
            self._call.axes, self._dim, self.rows, self.plan, self._mask, self.notes = kept

    def verdict(self) -> tuple[str, dict[str, Any] | None]:
        """Return the verdict and the first operation. Raises `Unknown`."""
        found = self.begin()
        if found is not None:
            return "unrepeatable", found or None
        alone = self._assign()
        self.others(alone=bool(alone))
        if alone:
            self.sizes(alone)
            self.padded(alone)
        again = self.ways.pop("alone, again", None)
        if again is not None and again.first is not None:
            return "unrepeatable", self._operation(again.first, None)
        others = self.ways.get("among others")
        if others is not None and others.first is not None:
            if not self._given and self._elsewhere():
                raise Unknown(
                    "rows along dimension 0 depend on one another, along dimension 1 they do not: --batch-dim"
                    " says which of them is the batch"
                )
            rows, at = others.first
            return "content", self._operation(([rows[at]] * len(rows), at), others.first)
        if not alone:
            raise Unknown(next(iter(self.notes)))
        way = next((way for way in self.ways.values() if way.first is not None), None)
        if way is None or way.first is None:
            return "independent", None
        if way.name.startswith("padded"):  # its batch has other places, which cannot be laid beside these
            return "size", None
        rows, at = way.first
        return "size", self._operation(([rows[at]], 0), way.first)


def told(torch: Any, module: Any, call: Call, dim: int | None) -> dict[str, Any]:
    """Return what came of a trial with a model, for the record."""
    trial = Trial(torch, module, call, dim)
    operation, reason = None, ""
    try:
        verdict, operation = trial.verdict()
    except Unknown as unknown:
        verdict, reason = "unknown", str(unknown)
    except Exception as error:  # noqa: BLE001 -- of the model, which was not made to be called like this
        verdict, reason = "unknown", f"{type(error).__name__}: {error}".splitlines()[0]
    if module.training and verdict in ("content", "unrepeatable"):
        trial.note("in training mode: model.eval() turns off dropout and a batch's own statistics")
    return {
        "verdict": verdict,
        "rows": trial.rows,
        "arguments": [f"{name}: dimension {axis}" for name, axis in call.axes.items()],
        "ways": [way.told() for way in trial.ways.values()],
        "operation": operation,
        "notes": trial.notes,
        "reason": reason[:400],
    }


def nothing(reason: str) -> dict[str, Any]:
    """Return the record of a model of which nothing can be said."""
    return {
        "verdict": "unknown", "rows": 0, "arguments": [], "ways": [], "operation": None, "notes": [],
        "reason": reason[:400],
    }  # fmt: skip
