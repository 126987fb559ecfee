"""Notes which of the processes write to the output, so that the order of its lines is known to count.

The first write of a process to a stream is enough: after it, the stream is as it was. One that starts others
or has another stream in its place may write unseen, and counts as one that does.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from typing import Any

wrote: set[str] = set()
"""The streams that this process wrote to."""
passed_on: set[str] = set()
"""The streams to which this process writes what others log, so that the order is not its own."""
_NAMES = ("stdout", "stderr")
_COMMANDS = ("subprocess.Popen", "os.system", "os.posix_spawn", "os.exec")
_streams: dict[str, object] = {}
_forks: list[int] = [0]
_child: list[bool] = [False]


def _watch(name: str) -> None:
    stream = getattr(sys, name)
    if stream is None:
        return
    _streams[name] = stream
    inner = stream.write

    def write(text: Any) -> Any:
        wrote.add(name)
        if stream.__dict__.get("write") is write:
            del stream.write
        return inner(text)

    try:
        stream.write = write
    except AttributeError:  # one that takes no attributes: who writes is not known
        wrote.add(name)


def _in_child() -> None:
    _forks[0], _child[0] = 0, True
    for name in wrote:
        if getattr(sys, name) is _streams.get(name):
            _watch(name)
    wrote.clear()
    passed_on.clear()


def _in_parent() -> None:
    _forks[0] += 1


def _audit(event: str, _: Any) -> None:
    if event in _COMMANDS:
        wrote.update(_NAMES)


def install() -> None:
    """Watch both streams, in the processes that are forked from this one, too."""
    for name in _NAMES:
        _watch(name)
    sys.addaudithook(_audit)
    os.register_at_fork(after_in_child=_in_child, after_in_parent=_in_parent)


def pass_on(handlers: Any) -> None:
    """Note the streams to which handlers of logging write; one of unknown kind may write to both."""
    for handler in handlers:
        stream = getattr(handler, "stream", None)
        for name in _NAMES:
            if stream is None or stream is getattr(sys, name) or stream is _streams.get(name):
                passed_on.add(name)


def table() -> dict[str, Any]:
    """Return what is known of this process."""
    wrote.update(name for name, stream in _streams.items() if getattr(sys, name) is not stream)
    return {"wrote": [*sorted(wrote), *sorted(wrote & passed_on)], "forks": _forks[0], "child": _child[0]}
