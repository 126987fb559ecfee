"""Results that are the same on every machine."""

from __future__ import annotations

import json
import platform
import random
from collections.abc import Mapping

from .data import sampler_of
from .exact import indices, numbers
from .gradients import with_gradients
from .libraries import np, torch
from .location import image_file
from .outcomes import Failed, NotRun, Results
from .registry import ACROSS, GOLDEN, WITHIN, check


@check(WITHIN, ACROSS, GOLDEN, order=500)
def golden_streams(_: str) -> Results:
    """Random numbers after a seed are those that this torch gives on the CPU of every machine."""
    torch.manual_seed(20240915)
    weights = numbers(1000).abs()
    results: dict[str, object] = {
        "rand": torch.rand(1000),
        "rand float64": torch.rand(1000, dtype=torch.float64),
        "randint": torch.randint(0, 1 << 40, (1000,)),
        "randperm": torch.randperm(1000),
        "bernoulli": torch.bernoulli(weights),
        # Fewer than 16, since more take vector instructions; float32, so that a last bit of the C library's
        # logarithm is rounded away.
        "randn": torch.randn(15),
        "Generator": torch.rand(1000, generator=torch.Generator().manual_seed(7)),
    }
    # From a vector library's logarithm: its last bits are rounded away likewise.
    results["exponential"] = torch.empty(100).exponential_().bfloat16()
    results["multinomial"] = torch.multinomial(weights, 100)
    state = np.random.RandomState(20240915)  # its streams are frozen (NEP 19), those of Generator are not
    results["numpy rand"] = state.rand(100)
    results["numpy standard_normal"] = state.standard_normal(100).astype(np.float32)
    results["numpy permutation"] = state.permutation(100)
    plain = random.Random(20240915)  # noqa: S311 -- no secret
    results["random"] = [plain.random() for _ in range(100)]
    results["random sample"] = plain.sample(range(1000), 100)
    results["DistributedSampler"] = torch.tensor(list(sampler_of(100, 1)))
    return results


@check(WITHIN, ACROSS, GOLDEN, order=505)
def golden_arithmetic(_: str) -> Results:
    """Integer and exactly rounded operations, and sums of a fixed order, give the same everywhere."""
    a, b = numbers(1000, 8), numbers(1000, 8, salt=1)
    whole = indices(10_000, 1 << 30, salt=2)
    rows, index = numbers(20_000, 8), indices(20_000, 1000, salt=3)
    words = indices(20_000, 500)
    results = {
        "inputs": numbers(1000, dtype="float64"),
        "add": a + b,
        "multiply": a * b,
        "divide": a / b,
        "bfloat16": a.bfloat16(),
        "sort": torch.sort(whole).values,
        "argsort": torch.argsort(whole % 100, stable=True),
        "unique": torch.unique(whole % 100, return_counts=True)[1],
        "bincount": torch.bincount(whole % 100),
        "integer matmul": whole[:4096].view(64, 64) @ whole[4096:8192].view(64, 64),
        "integer cumsum": whole.cumsum(0),
        "cumsum": a.cumsum(0),
        "index_add": a.index_add(0, index, rows),
        "scatter_add": a.scatter_add(0, index[:, None].expand(-1, 8), rows),
        "index_put": a.index_put((index,), rows, accumulate=True),
    }
    found = with_gradients(lambda table: torch.nn.functional.embedding(words, table), numbers(500, 32))
    return {**results, "embedding backward": found["gradient0"]}


def compare_golden(name: str, results: Mapping[str, str]) -> None:
    """Compare a check's results with the values kept for this version of torch.

    Raises `Failed` where they differ, `NotRun` where there are none.
    """
    path, release = image_file("golden.json"), torch.__version__.partition("+")[0]
    if not path.exists():
        raise NotRun(f"no golden values: {path} does not exist")
    place = f"torch {release} on {platform.machine()}"
    golden = json.loads(path.read_text("utf-8")).get(place, {}).get(name)
    if golden is None:
        raise NotRun(f"no golden values are kept for {place}")
    lines = [
        {"what": what, "expected": golden.get(what, "none"), "got": results.get(what, "none")}
        for what in {**golden, **results}
        if golden.get(what) != results.get(what)
    ]
    if lines:
        raise Failed(f"not the numbers of {place}, which are the same on every machine", lines)
