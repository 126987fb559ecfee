"""An operation on a GPU is called again with the same inputs, to see whether it repeats by itself.

Threads add to one number in an order of their own, on several streams at once all the more. One that gives
other bits then is found even where the two runs with a trace are equal by chance.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from . import digests

TIMES = 4
"""On an H100 each of 24 calls of those that race differed, so few do."""
MOST_BYTES = 64 << 20
"""Of an operation's inputs and outputs: as many times as it is called are taken on the device."""
IN_PLACE = frozenset(
    (
        *("index_add_", "index_copy_", "index_put_", "_index_put_impl_", "index_reduce_", "put_"),
        *("scatter_", "scatter_add_", "scatter_reduce_"),
    )
)
"""Those that are called again of those that write into their inputs, into copies of these."""

OF_ONE_STREAM = frozenset(
    (
        *("mm", "addmm", "bmm", "baddbmm", "addmv", "mv", "dot", "vdot", "_scaled_mm", "_addmm_activation"),
        "linear",
    )
)
"""cuBLAS gives the same bits while one stream is active only
(https://docs.nvidia.com/cuda/cublas/#results-reproducibility)."""


def prepared(torch: Any, func: Any, args: Any, kwargs: Any) -> Callable[[Any], list[int]] | None:
    """Return what calls an operation again, and says which of its outputs were others then, by their numbers.

    To be called before the operation; what it returns is called with the operation's result. None: it draws
    numbers, is no GPU's or no single one's, gives memory as it is, or writes into its inputs in a way that is
    not known.
    """
    try:
        return _prepared(torch, func, args, kwargs)
    except Exception:  # noqa: BLE001 -- the program must not fail because of the recorder; so out of memory
        return None


def _prepared(torch: Any, func: Any, args: Any, kwargs: Any) -> Callable[[Any], list[int]] | None:
    schema = func._schema
    name = schema.name.rpartition("::")[2]
    given = digests.tensors_in(torch, [args, kwargs])
    devices = {tensor.device for tensor in given if tensor.device.type == "cuda"}
    if func.namespace != "aten" or len(devices) != 1 or _bytes(given) > MOST_BYTES:
        return None
    if (
        name in OF_ONE_STREAM
        or name.startswith(("empty", "new_empty"))
        or torch.Tag.nondeterministic_seeded in func.tags
    ):
        return None
    in_place = name in IN_PLACE
    if not in_place and (schema.is_mutable or any(each.alias_info is not None for each in schema.returns)):
        return None
    targets = [args[0].clone() for _ in range(TIMES)] if in_place else [args[0]] * TIMES
    device = devices.pop()

    def again(result: Any) -> list[int]:
        try:
            with torch.no_grad():
                calls = [functools.partial(func, target, *args[1:], **kwargs) for target in targets]
                return _others(torch, device, calls, result)
        except Exception:  # noqa: BLE001 -- as above
            return []

    return again


def _others(torch: Any, device: Any, calls: Sequence[Callable[[], Any]], result: Any) -> list[int]:
    """Return the outputs with other bits. Whole numbers beside them are states and workspaces."""
    outputs = digests.tensors_in(torch, result)
    if _bytes(outputs) > MOST_BYTES:
        return []
    here = torch.cuda.current_stream(device)
    streams = [torch.cuda.Stream(device) for _ in calls]
    for stream in streams:
        stream.wait_stream(here)
    found = []
    for stream, call in zip(streams, calls):
        with torch.cuda.stream(stream):
            found.append(digests.tensors_in(torch, call()))
    for stream in streams:
        stream.synchronize()  # what is freed from here on is free for any stream
    return [
        at
        for at, tensor in enumerate(outputs)
        if tensor.is_floating_point() or tensor.is_complex()
        if any(digests.of_tensor(torch, each[at]) != digests.of_tensor(torch, tensor) for each in found)
    ]


def _bytes(tensors: list[Any]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
