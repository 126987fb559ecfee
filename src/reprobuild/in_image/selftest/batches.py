"""Whether a row of an operation's output depends on its batch: nothing to pass, but to know."""

from __future__ import annotations

from collections.abc import Callable

from .exact import numbers, raw
from .gradients import filled
from .libraries import torch
from .outcomes import Results, note
from .registry import ACROSS, BOTH, WITHIN, check

BATCH_SIZES = (2, 3, 4, 5, 8, 16, 17, 32, 33, 64)


def of_rows(device: str) -> dict[str, tuple[tuple[int, ...], str, Callable[[torch.Tensor], torch.Tensor]]]:
    """Return operations by name: the shape of a row, its type, and what is done with a batch."""
    nn, f = torch.nn, torch.nn.functional
    narrow = filled(nn.Linear(64, 256), device).to(torch.bfloat16)
    conv, lstm = filled(nn.Conv2d(3, 16, 3), device), filled(nn.LSTM(32, 48, batch_first=True), device)
    heads = filled(nn.MultiheadAttention(32, 4, batch_first=True), device)
    norm = filled(nn.BatchNorm2d(3), device).eval()
    return {
        "linear": ((64,), "float32", filled(nn.Linear(64, 256), device)),
        "linear bfloat16": ((64,), "bfloat16", narrow),
        "conv2d": ((3, 12, 12), "float32", conv),
        "lstm": ((12, 32), "float32", lambda x: lstm(x)[0]),
        "attention": ((16, 32), "float32", lambda x: heads(x, x, x, need_weights=False)[0]),
        "layer_norm": ((64,), "float32", filled(nn.LayerNorm(64), device)),
        "batch_norm in evaluation": ((3, 12, 12), "float32", norm),
        "softmax": ((64,), "float32", lambda x: f.softmax(x, -1)),
        "mean": ((64,), "float32", lambda x: x.mean(-1)),
    }


def ulp_apart(one: torch.Tensor, other: torch.Tensor) -> int:
    """Return the largest distance of two tensors of floats in units in the last place."""
    kind = {8: torch.int64, 4: torch.int32, 2: torch.int16}[one.element_size()]
    low = torch.iinfo(kind).min
    bits = [each.detach().cpu().contiguous().view(kind).to(torch.int64) for each in (one, other)]
    a, b = (torch.where(each < 0, low - each, each) for each in bits)
    return int((a - b).abs().max())


def batches_of(device: str, name: str) -> str:
    """Say from how many rows on, or in which way, a row differs from itself alone, and by how much."""
    shape, dtype, run = of_rows(device)[name]
    with torch.no_grad():
        x = numbers(max(BATCH_SIZES), *shape, dtype=dtype, device=device)
        whole, alone = run(x), run(x[:1])
        pairs = [(f"from {size} rows on", alone, run(x[:size])[:1]) for size in BATCH_SIZES[:-1]]
        pairs.append((f"from {len(x)} rows on", alone, whole[:1]))
        pairs.append(("at the end", run(x[-1:]), whole[-1:]))
        pairs.append(("permuted", whole, run(x.flip(0)).flip(0)))
        padded = torch.cat([x[:3], torch.zeros_like(x[:5])])
        pairs.append(("padded with zeros", alone, run(padded)[:1]))
    ways = [(way, ulp_apart(a, b)) for way, a, b in pairs if raw(a) != raw(b)]
    return f"{max(ulp for _, ulp in ways)} ULP {ways[0][0]}" if ways else ""


@check(WITHIN, ACROSS, devices=BOTH, order=712)
def batches(device: str) -> Results:
    """Whether a row depends on its batch is the same each time; a note says where it does."""
    found = {name: batches_of(device, name) for name in of_rows(device)}
    depends = ", ".join(f"{name} ({how})" for name, how in found.items() if how)
    equal = ", ".join(name for name, how in found.items() if not how)
    note(f"a row depends on its batch in: {depends or 'none'}; not in: {equal or 'none'}")
    return found
