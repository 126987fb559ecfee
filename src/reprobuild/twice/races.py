"""Whether an operation reads what another thread may be writing. Pure."""

from __future__ import annotations

from .records import Operation, Stream

Input = tuple[str, int]
"""The digest of what an operation read, and the number of the one that made it."""


def is_handed(read: Input, reader: Operation) -> bool:
    """Return whether another thread had made an input and then handed it over."""
    return any(reader.inputs[at] == read for at in reader.handed if 0 <= at < len(reader.inputs))


def races(read: Input, number: int, stream: Stream) -> bool:
    """Return whether an operation reads what another thread may be writing.

    What was handed over, what the main thread wrote before the other began, or a thread that has ended, is
    there for all to read, unless what was read is not what was written.
    """
    digest, made = read
    if not 0 <= made < len(stream.operations):
        return False
    maker, reader = stream.operations[made], stream.operations[number]
    if maker.thread == reader.thread:
        return False
    if digest not in maker.outputs:
        return True
    if is_handed(read, reader):
        return False
    if not maker.thread:
        return made > next(at for at, each in enumerate(stream.operations) if each.thread == reader.thread)
    return bool(reader.thread) or any(each.thread == maker.thread for each in stream.operations[number:])


def is_torn(read: Input, number: int, stream: Stream) -> bool:
    """Return whether an operation read a tensor while another wrote into it.

    Otherwise it may have been handed over in a way that is not followed, as by a list. Memory that torch did
    not write itself may be NumPy's, which writes unseen.
    """
    maker = stream.operations[read[1]]
    in_place = maker.name.partition(".")[0].endswith("_")
    return in_place and read[0] not in maker.outputs and not is_handed(read, stream.operations[number])
