"""Data loaders and samplers: the same order, the same random numbers."""

from __future__ import annotations

import random
from typing import Any

from .exact import must_be, must_differ
from .libraries import np, torch
from .outcomes import Failed, Results, note
from .registry import ACROSS, WITHIN, check


class Draws:
    """A data set of 16 items: the index, a number from torch, NumPy and random, and whether the flag is on.

    With ``held``, a numpy Generator of its own draws in NumPy's place.
    """

    def __init__(self, *, held: bool = False) -> None:
        self.rng = np.random.default_rng(11) if held else None

    def __len__(self) -> int:  # noqa: D105 -- the class says what it is
        return 16

    def __getitem__(self, index: int) -> tuple[int, float, float, float, bool]:  # noqa: D105 -- likewise
        own = np.random.rand() if self.rng is None else self.rng.random()
        on = bool(torch.are_deterministic_algorithms_enabled())
        return index, torch.rand((), dtype=torch.float64).item(), own, random.random(), on  # noqa: S311


def reseed_held(_: int) -> None:
    """Give a worker's copy of the data set's Generator a seed of its own; a worker_init_fn."""
    info: Any = torch.utils.data.get_worker_info()
    info.dataset.rng = np.random.default_rng(info.seed)


def loaded(workers: int, start: str | None = None, data: Any = None, **options: Any) -> dict[str, Any]:
    """Return an epoch of `Draws`, shuffled, after one seed; ``start``: "fork" or "spawn"."""
    torch.manual_seed(11)
    np.random.seed(11)
    random.seed(11)
    dataset: Any = data or Draws()
    loader = torch.utils.data.DataLoader(
        dataset,
        batch_size=4,
        shuffle=True,
        num_workers=workers,
        multiprocessing_context=start if workers else None,
        **options,
    )
    columns = [torch.cat(column) for column in zip(*loader)]
    if len(columns[1].unique()) != len(columns[1]):
        raise Failed("two items got the same random number from torch")
    must_be(
        "torch.are_deterministic_algorithms_enabled() in workers", got=bool(columns[4].all()), expected=True
    )
    return dict(zip(("order", "torch", "numpy", "random"), columns))


def loaded_both(workers: int, start: str | None = None) -> Results:
    """Return an epoch without and one with a Generator of its own; another seed gives another order."""
    own = loaded(workers, start, generator=torch.Generator().manual_seed(5))
    other = loaded(workers, start, generator=torch.Generator().manual_seed(6)) if start != "spawn" else None
    if other:
        must_differ("a DataLoader's order with another Generator", own["order"], other["order"])
    plain = loaded(workers, start)
    return {**plain, **{f"generator {name}": value for name, value in own.items()}}


@check(WITHIN, ACROSS, anywhere=True, order=600, hooked=True)
def dataloader(_: str) -> Results:
    """A DataLoader repeats: order and transforms, in the process itself, with and without a generator."""
    return loaded_both(0)


@check(WITHIN, ACROSS, anywhere=True, order=605, hooked=True)
def dataloader_workers(_: str) -> Results:
    """A DataLoader repeats: order and transforms, in two forked workers, with and without a generator."""
    return loaded_both(2, "fork")


@check(ACROSS, part="full", anywhere=True, order=610, hooked=True)
def dataloader_spawn(_: str) -> Results:
    """A DataLoader repeats: order and transforms, in two spawned workers, with and without a generator."""
    return loaded_both(2, "spawn")


@check(WITHIN, ACROSS, anywhere=True, order=615, hooked=True)
def dataloader_held(_: str) -> Results:
    """A numpy Generator that a data set holds is copied into each worker, and a worker_init_fn mends that."""
    copied = loaded(2, "fork", Draws(held=True))["numpy"]
    distinct = len(copied.unique())
    if distinct == len(copied):
        raise Failed("the workers' copies of a Generator draw different numbers: the known trap was not seen")
    note(
        f"a numpy Generator held by a data set gives {distinct} distinct numbers to {len(copied)} items,"
        " since each worker has the same copy; seed it in a worker_init_fn"
    )
    mended = loaded(2, "fork", Draws(held=True), worker_init_fn=reseed_held)["numpy"]
    if len(mended.unique()) != len(mended):
        raise Failed("two items got the same random number, though each worker's Generator has its own seed")
    return {"copied": copied, "mended": mended}


def sampler_of(count: int, rank: int) -> torch.utils.data.DistributedSampler[int]:
    """Return the DistributedSampler of one of two ranks, of as many items."""
    items: Any = range(count)
    return torch.utils.data.DistributedSampler(items, num_replicas=2, rank=rank, seed=3)


@check(WITHIN, ACROSS, anywhere=True, order=620)
def distributed_sampler(_: str) -> Results:
    """DistributedSampler's order follows from seed and epoch; without set_epoch it never changes."""
    results: dict[str, Any] = {}
    for rank in range(2):
        sampler = sampler_of(64, rank)
        first, again = list(sampler), list(sampler)
        must_be("an epoch without set_epoch", got=again, expected=first)
        sampler.set_epoch(1)
        second = list(sampler)
        must_differ("DistributedSampler's order in the next epoch, after set_epoch", first, second)
        results.update({f"rank {rank} epoch 0": first, f"rank {rank} epoch 1": second})
    must_be(
        "samples of the two ranks",
        got=sorted(results["rank 0 epoch 1"] + results["rank 1 epoch 1"]),
        expected=list(range(64)),
    )
    return results
