"""Controls: nondeterminism that must be seen."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

from .data import Draws
from .documented import REPEATS
from .exact import flattened, indices, must_repeat, numbers
from .flags import setting
from .gradients import with_gradients
from .libraries import np, torch
from .outcomes import Inconclusive, Results, note
from .registry import BOTH, CONTROL, check

TRIES = 50  # of a control, before it says that it saw nothing


def prove(on: Callable[[], object], off: Callable[[], object], repeats: int = REPEATS) -> None:
    """See results differ with determinism off, and repeat (or be refused) with it on.

    ``on`` and ``off`` each give one result. Raises `Failed` when those of ``on`` differ, and `Inconclusive`
    when `TRIES` of ``off`` do not.
    """
    try:
        must_repeat(on, repeats)
    except RuntimeError as error:
        if "determinis" not in str(error):
            raise
        note("with determinism on, torch refuses it")
    first = flattened(off())
    for attempt in range(2, TRIES + 1):
        if flattened(off()) != first:
            note(f"with determinism off, run {attempt} differed from the first")
            return
    cores = len(os.sched_getaffinity(0))
    raise Inconclusive(f"{TRIES} runs with determinism off did not differ ({cores} cores)")


def prove_flag(run: Callable[[], object]) -> None:
    """`prove` for an operation that torch's flag makes deterministic.

    Two threads, whatever the image's number, since one thread has nothing to race with.
    """

    def under(*, deterministic: bool) -> object:
        with setting(deterministic=deterministic, threads=2), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return run()

    prove(lambda: under(deterministic=True), lambda: under(deterministic=False))


def prove_seed(seed: Callable[..., object], draw: Callable[[], object], repeats: int = REPEATS) -> None:
    """`prove` for a generator: ``seed`` takes a number, or nothing for a seed from the system."""
    prove(lambda: (seed(7), draw())[1:], lambda: (seed(), draw())[1:], repeats)


@check(CONTROL, devices=BOTH, order=800)
def control(device: str) -> Results:
    """This test can see nondeterminism here: there with the flag off, gone with it on."""
    # The 1-D form, index_add and scatter_add are stable on the CPU even with the flag off.
    rows, index = numbers(200_000, 8, device=device), indices(200_000, 1000, device=device)

    def add() -> torch.Tensor:
        if device == "cuda":
            return torch.zeros(1000, 8, device=device).index_add_(0, index, rows)
        return torch.zeros(1000, 8).index_put_((index,), rows, accumulate=True)

    prove_flag(add)
    return None


@check(CONTROL, part="prove", order=805)
def prove_index_put(device: str) -> Results:
    """index_put_ that accumulates 200,000 rows of 8 in 1,000 slots races without the flag."""
    return control(device)


# On the CPU alone: CUDA sorts what index_put accumulates, and so the gradients of w[idx] and of an embedding,
# whatever the flag says (pytorch/pytorch#55827); they repeat without it.
@check(CONTROL, part="prove", order=810)
def prove_indexing(device: str) -> Results:
    """The gradient of w[idx], a million rows from a thousand, races without the flag."""
    weights, index = numbers(1000, 4, device=device), indices(1_000_000, 1000, device=device)
    prove_flag(lambda: with_gradients(lambda w: w[index], weights)["gradient0"])
    return None


@check(CONTROL, part="prove", devices=("cuda",), order=815)
def prove_index_add(device: str) -> Results:
    """index_add_ of a million values in a hundred slots races without the flag."""
    values, index = numbers(1_000_000, device=device), indices(1_000_000, 100, device=device)
    prove_flag(lambda: torch.zeros(100, device=device).index_add_(0, index, values))
    return None


@check(CONTROL, part="prove", devices=("cuda",), order=820)
def prove_scatter_add(device: str) -> Results:
    """scatter_add_ of a million values in a thousand slots races without the flag."""
    values, index = numbers(1_000_000, device=device), indices(1_000_000, 1000, device=device)
    prove_flag(lambda: torch.zeros(1000, device=device).scatter_add_(0, index, values))
    return None


@check(CONTROL, part="prove", devices=("cuda",), order=825)
def prove_index_select(device: str) -> Results:
    """The gradient of index_select, a million rows from a thousand, races without the flag."""
    rows, index = numbers(1000, 4, device=device), indices(1_000_000, 1000, device=device)
    prove_flag(lambda: with_gradients(lambda w: w.index_select(0, index), rows)["gradient0"])
    return None


@check(CONTROL, part="prove", devices=("cuda",), order=827)
def prove_gather(device: str) -> Results:
    """The gradient of gather, four million values from four thousand, races without the flag."""
    rows, index = numbers(1000, 4, device=device), indices(1_000_000, 1000, device=device)
    wide = index[:, None].expand(-1, 4)
    prove_flag(lambda: with_gradients(lambda w: w.gather(0, wide), rows)["gradient0"])
    return None


@check(CONTROL, part="prove", devices=("cuda",), order=830)
def prove_grid_sample(device: str) -> Results:
    """The gradient of grid_sample races without the flag, and is refused with it."""
    image, grid = numbers(4, 3, 32, 32, device=device), numbers(4, 256, 256, 2, salt=1, device=device)
    sample = torch.nn.functional.grid_sample
    prove_flag(lambda: with_gradients(lambda x: sample(x, grid, align_corners=False), image)["gradient0"])
    return None


@check(CONTROL, part="prove", devices=("cuda",), order=835)
def prove_cumsum(device: str) -> Results:
    """A cumulative sum of four million values races without the flag."""
    values = numbers(4_000_000, device=device)
    prove_flag(lambda: values.cumsum(0))
    return None


@check(CONTROL, part="prove", devices=BOTH, order=840)
def prove_torch_seed(device: str) -> Results:
    """torch's numbers change without a seed and repeat with one."""

    def seed(*number: int) -> None:
        torch.manual_seed(*number) if number else torch.seed()

    prove_seed(seed, lambda: torch.rand(100, device=device))
    return None


@check(CONTROL, part="prove", order=845)
def prove_python_seed(_: str) -> Results:
    """The numbers of random change without a seed and repeat with one."""
    prove_seed(random.seed, lambda: [random.random() for _ in range(100)])  # noqa: S311 -- no secret
    return None


@check(CONTROL, part="prove", order=850)
def prove_numpy_seed(_: str) -> Results:
    """NumPy's numbers change without a seed and repeat with one."""
    prove_seed(np.random.seed, lambda: np.random.rand(100))
    return None


@check(CONTROL, part="prove", order=855)
def prove_hash_seed(_: str) -> Results:
    """The order of a set of 50 words changes with the process without PYTHONHASHSEED and repeats with it."""

    def order(seed: str) -> bytes:
        code = "print(list({str(i) for i in range(50)}))"
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.check_output([sys.executable, "-S", "-c", code], env=environment, timeout=60)

    baked = os.environ.get("PYTHONHASHSEED", "random")
    prove(lambda: order(baked), lambda: order("random"))
    return None


@check(CONTROL, part="prove", order=860)
def prove_workers(_: str) -> Results:
    """The numbers of a DataLoader's two workers change without a seed and repeat with one."""

    def seed(*number: int) -> None:
        torch.manual_seed(*number) if number else torch.seed()

    def epoch() -> list[torch.Tensor]:
        items: Any = Draws()
        loader = torch.utils.data.DataLoader(
            items, batch_size=4, num_workers=2, multiprocessing_context="fork"
        )
        return [torch.cat(column) for column in zip(*loader)]

    prove_seed(seed, epoch, repeats=3)
    return None
