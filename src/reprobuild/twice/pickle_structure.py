"""What a pickle's opcodes put together, as far as plain values go. Untrusted: nothing is imported or called.

joblib writes the bytes of each array into the middle of a pickle, behind the object that describes it
(``NumpyArrayWrapper`` in joblib's numpy_pickle.py); where they end follows from its shape and type. An array
of objects is a pickle of its own there.
"""

from __future__ import annotations

import pickletools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

_MARK = object()
_DATE = 10
_WRAPPER = ("joblib.numpy_pickle", "NumpyArrayWrapper")
OBJECTS = "O"
_DTYPE = re.compile(r"([fiucbVSUMm])(\d{1,9})")
"""Numbers, rows of several values (V), texts and dates, with the bytes of each; of a text its characters."""
_BYTES_OF_CHARACTER = 4


@dataclass(slots=True)
class PickledObject:
    """An object of any class: what it is made from, and its state."""

    made_by: object
    arguments: object
    state: object = None


@dataclass(slots=True)
class Pickle:
    """The stack and the memo of a pickle, opcode by opcode."""

    stack: list[object] = field(default_factory=list)
    memo: dict[int, object] = field(default_factory=dict)

    def take(self, opcode: pickletools.OpcodeInfo, argument: object) -> PickledObject | None:
        """Take the next opcode; return the object whose state it sets. Raises IndexError and ValueError."""
        name = opcode.name
        if name == "MEMOIZE":
            self.memo[len(self.memo)] = self.stack[-1]
        elif name.endswith("PUT") and isinstance(argument, int):
            self.memo[argument] = self.stack[-1]
        elif name.endswith("GET") and isinstance(argument, int):
            self.stack.append(self.memo[argument])
        elif name == "BUILD":
            return self._built()
        else:
            taken = self._taken(opcode)
            made = _MAKES.get(name)
            if made is not None:
                self.stack.append(made(taken))
            elif name == "GLOBAL":
                self.stack.append(tuple(str(argument).split(" ", 1)))
            elif opcode.stack_after:
                kept = name in ("APPEND", "APPENDS", "ADDITEMS", "READONLY_BUFFER")
                value = _MARK if name == "MARK" else taken[0] if kept else _plain(name, argument)
                self.stack += [value] * len(opcode.stack_after)
        return None

    def _built(self) -> PickledObject | None:
        state, built = self.stack.pop(), self.stack[-1]
        if not isinstance(built, PickledObject):
            return None
        built.state = state
        return built

    def _taken(self, opcode: pickletools.OpcodeInfo) -> list[object]:
        """Return what an opcode takes from the stack, without the mark."""
        wanted = [each.name for each in opcode.stack_before]
        if "mark" not in wanted:
            taken = self.stack[len(self.stack) - len(wanted) :] if wanted else []
            if len(taken) < len(wanted):
                raise IndexError("nothing is on the stack")
        else:
            marks = [at for at, each in enumerate(self.stack) if each is _MARK]
            first = marks[-1] - wanted.index("mark")
            if first < 0:
                raise IndexError("nothing is before the mark")
            taken = [each for each in self.stack[first:] if each is not _MARK]
        del self.stack[len(self.stack) - len(taken) - ("mark" in wanted) :]
        return taken


def array_behind(built: PickledObject) -> tuple[int, str, bool] | None:
    """Return the size of the array that follows, its type as NumPy's, and whether a byte with the length of
    its padding comes before; of an array of objects, which is another pickle, its type is `OBJECTS`. None:
    nothing follows. Raises ValueError.
    """
    if built.made_by != _WRAPPER or not isinstance(built.state, dict):
        return None
    shape, dtype = built.state.get("shape"), built.state.get("dtype")
    if not isinstance(shape, tuple) or not isinstance(dtype, PickledObject):
        raise ValueError("an array without a shape or a type")  # noqa: TRY004 -- as above
    told = dtype.arguments[0] if isinstance(dtype.arguments, tuple) and dtype.arguments else None
    order = dtype.state[1] if isinstance(dtype.state, tuple) and len(dtype.state) > 1 else None
    sizes = [each for each in shape if isinstance(each, int) and 0 <= each < 1 << 40]
    if isinstance(told, str) and told.startswith(OBJECTS):
        return 0, OBJECTS, False
    read = _DTYPE.fullmatch(told) if isinstance(told, str) else None
    if read is None or order not in ("<", "|") or len(sizes) != len(shape):
        raise ValueError("an array of a type that is not read")
    size = prod(sizes) * int(read[2]) * (_BYTES_OF_CHARACTER if read[1] == "U" else 1)
    return size, f"{order}{told}", built.state.get("numpy_array_alignment_bytes") is not None


def date_of(argument: object) -> str:
    """Return the date in the ten bytes that `datetime` pickles; empty for all else.

    Protocol 2 has no bytes, and writes them as text of Latin-1.
    """
    if isinstance(argument, str) and len(argument) == _DATE:
        argument = argument.encode("latin-1", "ignore")
    if not isinstance(argument, bytes | bytearray) or len(argument) != _DATE:
        return ""
    state = bytes(argument)
    year, (month, day, hour, minute, second) = int.from_bytes(state[:2], "big"), state[2:7]
    micro = int.from_bytes(state[7:], "big")
    if not (1970 <= year < 2200 and 0 < month < 13 and 0 < day < 32 and micro < 10**6):
        return ""
    if hour > 23 or minute > 59 or second > 59:
        return ""
    return f"{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micro:06}"


def _plain(name: str, argument: object) -> object:
    """Return the value that an opcode pushes, if it is plain."""
    if name in ("NEWTRUE", "NEWFALSE"):
        return name == "NEWTRUE"
    return argument


def _dict(taken: list[object]) -> object:
    return _filled([{}, *taken])


def _filled(taken: list[object]) -> object:
    into, *rest = taken
    if isinstance(into, PickledObject):  # of another class, as torch's state_dict is an OrderedDict
        return into
    if not isinstance(into, dict):
        raise ValueError("no dictionary to fill")  # noqa: TRY004 -- all that is wrong with it is a ValueError
    for key, value in zip(rest[::2], rest[1::2], strict=True):
        if isinstance(key, str | int | float | tuple | bytes):
            into[key if isinstance(key, str) else repr(key)] = value
    return into


def _object(taken: list[object]) -> PickledObject:
    return PickledObject(taken[0], taken[1])


_MAKES: dict[str, Callable[[list[object]], object]] = {
    **dict.fromkeys(("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "STACK_GLOBAL"), tuple),
    "EMPTY_DICT": _dict,
    "DICT": _dict,
    "SETITEM": _filled,
    "SETITEMS": _filled,
    "REDUCE": _object,
    "NEWOBJ": _object,
    "NEWOBJ_EX": _object,
}
