"""Operations whose results have to repeat."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from .exact import indices, numbers
from .gradients import filled, module_with_gradients, with_gradients
from .libraries import torch
from .outcomes import Results, note
from .power import steady
from .registry import ACROSS, BOTH, WITHIN, check


def convolution(device: str, kind: str, size: Sequence[int], **options: int) -> dict[str, torch.Tensor]:
    """Return output and gradients of torch.nn.KIND from 8 to 16 channels, a batch of 8, a kernel of 3.

    Beside it, of a small one: from 2 to 4 channels, a batch of 2, 6 values along each side.
    """
    large, small = (
        filled(getattr(torch.nn, kind)(channels, 2 * channels, 3, **options), device) for channels in (8, 2)
    )
    few = numbers(2, 2, *[6] * len(size), device=device)
    return both(large, numbers(8, 8, *size, device=device), small, few)


def both(
    large: torch.nn.Module, values: torch.Tensor, small: torch.nn.Module, few: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return output and gradients of a module, and those of a small one, which `steady` repeats."""
    return {**module_with_gradients(large, values), **steady(lambda: module_with_gradients(small, few))}


@check(WITHIN, ACROSS, devices=BOTH, order=300)
def conv1d(device: str) -> Results:
    """A convolution repeats, 1-D, forward and backward."""
    return convolution(device, "Conv1d", [512])


@check(WITHIN, ACROSS, devices=BOTH, order=305)
def conv2d(device: str) -> Results:
    """A convolution repeats, 2-D, forward and backward."""
    return convolution(device, "Conv2d", [48, 48], padding=1)


@check(WITHIN, ACROSS, devices=BOTH, order=310)
def conv3d(device: str) -> Results:
    """A convolution repeats, 3-D, forward and backward."""
    return convolution(device, "Conv3d", [10, 12, 12])


@check(WITHIN, ACROSS, devices=BOTH, order=315)
def conv_transposed(device: str) -> Results:
    """A transposed convolution repeats, forward and backward."""
    return convolution(device, "ConvTranspose2d", [24, 24], stride=2)


@check(WITHIN, ACROSS, devices=BOTH, order=320)
def depthwise_batchnorm(device: str) -> Results:
    """Depthwise convolution and batch norm repeat, forward and backward."""

    def module(channels: int) -> torch.nn.Module:
        nn = torch.nn
        layers = nn.Conv2d(channels, channels, 3, groups=channels), nn.BatchNorm2d(channels), nn.ReLU()
        return filled(nn.Sequential(*layers), device)

    large, small = numbers(8, 16, 32, 32, device=device), numbers(2, 4, 6, 6, device=device)
    return both(module(16), large, module(4), small)


@check(WITHIN, ACROSS, devices=BOTH, order=325)
def matmul(device: str) -> Results:
    """A product of matrices repeats, forward and backward, also in bfloat16 and float64."""
    results = {}
    for dtype in ("float32", "float64", "bfloat16"):
        a, b = (numbers(192, 192, salt=salt, dtype=dtype, device=device) for salt in (1, 2))
        results.update({f"{dtype} {k}": v for k, v in with_gradients(torch.matmul, a, b).items()})
    results["mv"] = torch.mv(numbers(500, 700, device=device), numbers(700, salt=1, device=device))
    a, b = (numbers(16, 16, salt=salt, device=device) for salt in (1, 2))

    def small() -> dict[str, torch.Tensor]:
        found = {"bfloat16": torch.matmul(a.bfloat16(), b.bfloat16()), "mv": torch.mv(a, b[0])}
        found["float64"] = torch.matmul(a.double(), b.double())
        return {**with_gradients(torch.matmul, a, b), **found}

    return {**results, **steady(small)}


@check(WITHIN, ACROSS, devices=BOTH, order=330)
def bmm(device: str) -> Results:
    """A batch of products repeats, forward and backward, also baddbmm."""
    a, b, c = (numbers(8, 96, 96, salt=salt, device=device) for salt in (1, 2, 3))

    def products(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
        added = with_gradients(torch.baddbmm, c, a, b)
        named = {f"baddbmm {name}": value for name, value in added.items()}
        return {**with_gradients(torch.bmm, a, b), **named}

    small = [numbers(3, 8, 8, salt=salt, device=device) for salt in (3, 1, 2)]
    return {**products(c, a, b), **steady(lambda: products(*small))}


@check(WITHIN, ACROSS, devices=BOTH, order=335)
def bmm_sparse(device: str) -> Results:
    """A product of a sparse and a dense batch repeats."""

    def factors(batch: int, size: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
        dense = numbers(batch, size, size, salt=1)
        sparse = torch.where(dense.abs() > 0.8, dense, torch.zeros(())).to_sparse().to(device)
        return sparse, numbers(batch, size, width, salt=2, device=device)

    large, small = factors(4, 128, 64), factors(2, 16, 4)
    return {"output": torch.bmm(*large), **steady(lambda: {"output": torch.bmm(*small)})}


def accumulated(
    device: str, how: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
) -> Results:
    """Return 100,000 rows of 8 added up in 1,000 slots by ``how(slots, index, rows)``, with gradients.

    Beside it, 200 rows in 10 slots.
    """

    def adding(count: int, places: int) -> Callable[[], dict[str, torch.Tensor]]:
        rows, index = numbers(count, 8, device=device), indices(count, places, salt=3, device=device)
        slots = numbers(places, 8, salt=1, device=device)
        return lambda: with_gradients(lambda slots, rows: how(slots, index, rows), slots, rows)

    return {**adding(100_000, 1000)(), **steady(adding(200, 10))}


@check(WITHIN, ACROSS, devices=BOTH, order=340)
def index_add(device: str) -> Results:
    """index_add repeats when many rows go to one place."""
    return accumulated(device, lambda slots, index, rows: slots.index_add(0, index, rows))


@check(WITHIN, ACROSS, devices=BOTH, order=345)
def scatter_add(device: str) -> Results:
    """scatter_add repeats when many values go to one place."""
    return accumulated(
        device, lambda slots, index, rows: slots.scatter_add(0, index[:, None].expand(-1, 8), rows)
    )


@check(WITHIN, ACROSS, devices=BOTH, order=350)
def index_put(device: str) -> Results:
    """index_put that accumulates repeats when many rows go to one place."""
    return accumulated(device, lambda slots, index, rows: slots.index_put((index,), rows, accumulate=True))


@check(WITHIN, ACROSS, devices=BOTH, order=355)
def embedding(device: str) -> Results:
    """The gradient of an embedding repeats when words recur."""

    def looking(count: int, rows: int) -> Callable[[], dict[str, torch.Tensor]]:
        words, table = indices(count, rows, device=device), numbers(rows, 32, device=device)
        return lambda: with_gradients(lambda table: torch.nn.functional.embedding(words, table), table)

    return {**looking(20_000, 500)(), **steady(looking(100, 10))}


@check(WITHIN, ACROSS, devices=BOTH, order=360)
def lstm(device: str) -> Results:
    """An LSTM repeats, forward and backward."""
    # Without dropout: cuDNN's is known to vary within a process (pytorch/pytorch#90168).
    small = filled(torch.nn.LSTM(4, 6), device)
    large = filled(torch.nn.LSTM(32, 48, num_layers=2), device)
    return both(large, numbers(24, 8, 32, device=device), small, numbers(2, 2, 4, device=device))


@check(WITHIN, ACROSS, devices=BOTH, order=365)
def gru(device: str) -> Results:
    """A GRU repeats, forward and backward."""
    large, small = filled(torch.nn.GRU(32, 48), device), filled(torch.nn.GRU(4, 6), device)
    return both(large, numbers(24, 8, 32, device=device), small, numbers(2, 2, 4, device=device))


@check(WITHIN, ACROSS, devices=BOTH, order=370)
def layer_norm(device: str) -> Results:
    """Layer norm repeats, forward and backward."""
    large, small = filled(torch.nn.LayerNorm(512), device), filled(torch.nn.LayerNorm(16), device)
    return both(large, numbers(256, 512, device=device), small, numbers(4, 16, device=device))


@check(WITHIN, ACROSS, devices=BOTH, order=375)
def softmax(device: str) -> Results:
    """Softmax repeats, forward and backward."""

    def softened(x: torch.Tensor) -> dict[str, torch.Tensor]:
        return with_gradients(lambda x: torch.softmax(x * 8, dim=-1), x)

    small = numbers(8, 20, device=device)
    return {**softened(numbers(256, 1000, device=device)), **steady(lambda: softened(small))}


@check(WITHIN, ACROSS, devices=BOTH, order=380)
def sums(device: str) -> Results:
    """Sums and means of a million values repeat."""

    def totals(x: torch.Tensor, wide: torch.Tensor) -> dict[str, torch.Tensor]:
        rows = x.view(1000, -1).sum(0)
        return {"sum": x.sum(), "mean": x.mean(), "norm": x.norm(), "float64 sum": wide.sum(), "rows": rows}

    x, wide = numbers(1_000_000, device=device), numbers(300_000, dtype="float64", device=device)
    few = x[:2000].clone(), wide[:2000].clone()
    return {**totals(x, wide), **steady(lambda: totals(*few))}


@check(WITHIN, ACROSS, devices=BOTH, order=385)
def attention(device: str) -> Results:
    """Scaled dot product attention repeats, each backend that there is."""
    results = {}
    for backend in ("MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"):
        only = attention_by(backend)
        if only is None:
            continue
        try:
            with only, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it warns why a backend does not do
                found = attended(device, backend)
        except RuntimeError as error:
            # torch's words for a backend that does not do; anything else, as want of memory, is a failure.
            # MATH is the only one that every device has.
            if backend == "MATH" or not any(words in str(error) for words in NO_KERNEL):
                raise
            note(f"{backend}: not available here")
            continue
        results.update({f"{backend} {name}": value for name, value in found.items()})
    note("backends: " + ", ".join(sorted({name.split()[0] for name in results})))
    return results


NO_KERNEL = ("No available kernel", "No viable backend")


def attention_by(backend: str) -> AbstractContextManager[object] | None:
    """Return a context in which attention has one backend; None where this torch lacks it."""
    try:
        module = importlib.import_module("torch.nn.attention")
        kind = getattr(module.SDPBackend, backend, None)
        found: AbstractContextManager[object] | None = None if kind is None else module.sdpa_kernel(kind)
    except (ImportError, AttributeError):  # torch before 2.3 has a switch for each
        switches = {"FLASH_ATTENTION": "flash", "MATH": "math", "EFFICIENT_ATTENTION": "mem_efficient"}
        if backend not in switches:
            return None
        chosen = {f"enable_{name}": key == backend for key, name in switches.items()}
        found = torch.backends.cuda.sdp_kernel(**chosen)
    return found


def attended(device: str, backend: str) -> dict[str, torch.Tensor]:
    """Return attention's output and gradients; RuntimeError where the backend cannot do it."""
    # On CUDA the flash and cuDNN kernels take half precision only.
    half = device == "cuda" and backend in ("FLASH_ATTENTION", "CUDNN_ATTENTION")
    dtype, function = "float16" if half else "float32", torch.nn.functional.scaled_dot_product_attention
    large, small = (
        [numbers(*shape, salt=salt, dtype=dtype, device=device) for salt in (1, 2, 3)]
        for shape in ((2, 4, 96, 32), (1, 2, 16, 16))
    )
    return {**with_gradients(function, *large), **steady(lambda: with_gradients(function, *small))}


@check(WITHIN, ACROSS, devices=BOTH, order=390)
def svd_lowrank(device: str) -> Results:
    """svd_lowrank, which draws random numbers, repeats after a seed."""

    def approximated(a: torch.Tensor, q: int) -> dict[str, torch.Tensor]:
        torch.manual_seed(7)
        return dict(zip("usv", torch.svd_lowrank(a, q=q)))

    small = numbers(12, 10, device=device)
    return {**approximated(numbers(200, 100, device=device), 6), **steady(lambda: approximated(small, 2))}


@check(WITHIN, ACROSS, devices=BOTH, order=395)
def decompositions(device: str) -> Results:
    """Decompositions of matrices repeat: eigh, svd, solve."""

    def decomposed(a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
        values, vectors = torch.linalg.eigh(a + a.T)
        u, s, v = torch.linalg.svd(a)
        solved = torch.linalg.solve(a, b)
        return {"eigenvalues": values, "eigenvectors": vectors, "u": u, "s": s, "v": v, "solve": solved}

    large, small = (
        [numbers(size, wide, salt=salt, dtype="float64", device=device) for salt, wide in ((0, size), (1, 4))]
        for size in (96, 8)
    )
    return {**decomposed(*large), **steady(lambda: decomposed(*small))}


@check(WITHIN, ACROSS, devices=BOTH, order=400)
def fft(device: str) -> Results:
    """Fourier transforms repeat."""

    def transformed(line: torch.Tensor, grid: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"rfft": torch.fft.rfft(line), "fft2": torch.view_as_real(torch.fft.fft2(grid))}

    large = numbers(4, 4099, device=device), numbers(8, 64, 60, device=device)
    small = numbers(2, 31, device=device), numbers(2, 8, 6, device=device)
    return {**transformed(*large), **steady(lambda: transformed(*small))}


@check(WITHIN, ACROSS, devices=BOTH, order=405)
def elementwise(device: str) -> Results:
    """Functions of single values repeat."""

    def applied(x: torch.Tensor) -> dict[str, torch.Tensor]:
        names = ("exp", "sin", "cos", "tanh", "erf", "sigmoid")
        return {**{name: getattr(torch, name)(x * 4) for name in names}, "log": torch.log(x.abs() + 1e-3)}

    x = numbers(20_000, device=device)
    few = x[:100].clone()
    return {**applied(x), **steady(lambda: applied(few))}
