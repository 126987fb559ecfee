"""What determinism costs."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from .exact import indices, numbers
from .flags import fill_memory, setting
from .gradients import filled, module_with_gradients, with_gradients
from .libraries import torch
from .location import program_hash
from .machine import SCHEMA, facts, gpu_missing
from .outcomes import NotRun
from .training import train


def workloads(device: str) -> dict[str, Callable[[], object]]:
    """Return operations by name, their inputs made beforehand; the size is for some milliseconds on a CPU."""
    f, nn, grads = torch.nn.functional, torch.nn, with_gradients

    def x(*shape: int, salt: int = 0) -> torch.Tensor:
        return numbers(*shape, salt=salt, device=device)

    n = 1_000_000 if device == "cuda" else 100_000
    rows, slots, index = x(n, 8), x(1000, 8, salt=1), indices(n, 1000, salt=2, device=device)
    wide, image, a, b = index[:, None].expand(-1, 8), x(8, 16, 48, 48), x(384, 384), x(384, 384, salt=1)
    conv, transposed = (
        filled(getattr(nn, name)(16, 16, 3), device) for name in ("Conv2d", "ConvTranspose2d")
    )
    lstm, norm = filled(nn.LSTM(32, 48), device), filled(nn.LayerNorm(512), device)
    sequence, lines, heads = x(24, 8, 32), x(256, 512), [x(2, 4, 96, 32, salt=salt) for salt in range(3)]
    return {
        "conv2d": lambda: module_with_gradients(conv, image),
        "conv_transpose2d": lambda: module_with_gradients(transposed, image),
        "matmul": lambda: a @ b,
        "lstm": lambda: module_with_gradients(lstm, sequence),
        "layer_norm": lambda: module_with_gradients(norm, lines),
        "attention": lambda: grads(f.scaled_dot_product_attention, *heads),
        "index_add": lambda: slots.index_add(0, index, rows),
        "scatter_add": lambda: slots.scatter_add(0, wide, rows),
        "index_put": lambda: slots.index_put((index,), rows, accumulate=True),
        "index_copy": lambda: slots.index_copy(0, index, rows),
        "embedding backward": lambda: grads(lambda table: f.embedding(index, table), slots),
        "gather backward": lambda: grads(lambda s: s.gather(0, wide), slots),
        "interpolate backward": lambda: grads(
            lambda i: f.interpolate(i, scale_factor=2, mode="bilinear"), image
        ),
        "max_pool2d backward": lambda: grads(lambda i: f.max_pool2d(i, 3, 1), image),
        "cumsum": lambda: rows.cumsum(0),
        "sum": rows.sum,
        "sort": index.sort,
        "empty": lambda: torch.empty(n, 8, device=device),
        "training step": lambda: train(device, "SGD", {"lr": 0.1}, steps=1),
    }


def whole_step(device: str) -> Callable[[], Any]:
    """Return a training step of a transformer of 1.9 million parameters."""
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(192, 6, 768, dropout=0.0, batch_first=True, norm_first=True)
    model = filled(nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), device)
    stepper, x = torch.optim.AdamW(model.parameters()), numbers(4, 64, 192, device=device)

    def step() -> None:
        stepper.zero_grad()
        model(x).square().mean().backward()
        stepper.step()

    return step


@contextlib.contextmanager
def whole_setting(*, deterministic: bool) -> Iterator[None]:
    """Set the flag and cuDNN's for a while; TF32 and the number of threads stay as they are."""
    cudnn = torch.backends.cudnn
    before = cudnn.deterministic
    try:
        cudnn.deterministic = deterministic
        with setting(deterministic=deterministic):
            yield
    finally:
        cudnn.deterministic = before


@contextlib.contextmanager
def memory_filled(*, deterministic: bool) -> Iterator[None]:
    """Fill new memory for a while, or leave it as it is, with the deterministic flag as it stands."""
    fill_memory(on=deterministic)
    try:
        yield
    finally:
        fill_memory(on=False)


def cost_of(
    name: str,
    device: str,
    run: Callable[[], object],
    switch: Callable[..., AbstractContextManager[None]] = whole_setting,
    seconds: float = 0.8,
) -> dict[str, Any]:
    """Return an operation's time with ``switch`` on and off, in turns, and their ratio.

    The fastest round of each counts, since whatever else the machine does can only add to the others.
    """

    def timed(*, deterministic: bool) -> float:
        with switch(deterministic=deterministic), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            run()
            if device == "cuda":
                torch.cuda.synchronize()
            return time.perf_counter() - start

    line: dict[str, Any] = {
        "name": name,
        "device": device,
        "on": None,
        "off": None,
        "ratio": None,
        "rounds": 0,
    }
    times: dict[bool, list[float]] = {True: [], False: []}
    try:
        for flag in times:  # to warm up
            timed(deterministic=flag)
        end = time.perf_counter() + seconds
        while len(times[True]) < 10 or (time.perf_counter() < end and len(times[True]) < 200):
            for flag, taken in times.items():
                taken.append(timed(deterministic=flag))
    except Exception as error:  # noqa: BLE001 -- it becomes the reason
        return {**line, "reason": f"{type(error).__name__}: {error}".splitlines()[0]}
    on, off = min(times[True]), min(times[False])
    rounds = len(times[True])
    return {**line, "on": on, "off": off, "ratio": round(on / off, 3), "rounds": rounds, "reason": ""}


def cost_report(device: str) -> dict[str, Any]:
    """Return the report of ``--cost``; see the top of this file."""
    start = time.monotonic()
    missing = "asked for the CPU only" if device == "cpu" else gpu_missing()
    if device == "cuda" and missing:
        raise NotRun(missing)
    devices = ["cpu"] if missing else ["cpu", "cuda"]
    fill_memory(on=False)  # its cost is a line of its own
    costs = [cost_of(name, where, run) for where in devices for name, run in workloads(where).items()]
    for where in devices:
        step = whole_step(where)
        costs.append(cost_of("whole training step", where, step, seconds=3))
        costs.append(cost_of("whole training step, new memory filled", where, step, memory_filled, seconds=3))
    return {
        "schema": SCHEMA,
        "program": program_hash(),
        "mode": "cost",
        **facts(missing),
        "costs": costs,
        "seconds": round(time.monotonic() - start, 3),
    }
