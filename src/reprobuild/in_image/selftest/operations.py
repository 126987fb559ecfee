"""Operations whose results have to repeat."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .exact import indices, numbers
from .gradients import filled, module_with_gradients, with_gradients
from .libraries import torch
from .outcomes import Results, note
from .registry import ACROSS, BOTH, WITHIN, check


def convolution(device: str, kind: str, size: Sequence[int], **options: Any) -> dict[str, Any]:
    """Return output and gradients of torch.nn.KIND from 8 to 16 channels, a batch of 8, a kernel of 3."""
    module = filled(getattr(torch.nn, kind)(8, 16, 3, **options), device)
    return module_with_gradients(module, numbers(8, 8, *size, device=device))


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
    layers = torch.nn.Conv2d(16, 16, 3, groups=16), torch.nn.BatchNorm2d(16), torch.nn.ReLU()
    return module_with_gradients(
        filled(torch.nn.Sequential(*layers), device), numbers(8, 16, 32, 32, device=device)
    )


@check(WITHIN, ACROSS, devices=BOTH, order=325)
def matmul(device: str) -> Results:
    """A product of matrices repeats, forward and backward, also in bfloat16 and float64."""
    results = {}
    for dtype in ("float32", "float64", "bfloat16"):
        a, b = (numbers(192, 192, salt=salt, dtype=dtype, device=device) for salt in (1, 2))
        results.update({f"{dtype} {k}": v for k, v in with_gradients(torch.matmul, a, b).items()})
    results["mv"] = torch.mv(numbers(500, 700, device=device), numbers(700, salt=1, device=device))
    return results


@check(WITHIN, ACROSS, devices=BOTH, order=330)
def bmm(device: str) -> Results:
    """A batch of products repeats, forward and backward, also baddbmm."""
    a, b, c = (numbers(8, 96, 96, salt=salt, device=device) for salt in (1, 2, 3))
    added = with_gradients(torch.baddbmm, c, a, b)
    return {**with_gradients(torch.bmm, a, b), **{f"baddbmm {name}": value for name, value in added.items()}}


@check(WITHIN, ACROSS, devices=BOTH, order=335)
def bmm_sparse(device: str) -> Results:
    """A product of a sparse and a dense batch repeats."""
    dense = numbers(4, 128, 128, salt=1)
    sparse = torch.where(dense.abs() > 0.8, dense, torch.zeros(())).to_sparse().to(device)
    return {"output": torch.bmm(sparse, numbers(4, 128, 64, salt=2, device=device))}


def accumulated(device: str, how: Callable[[Any, Any, Any], Any]) -> Results:
    """Return 100,000 rows of 8 added up in 1,000 slots by ``how(slots, index, rows)``, with gradients."""
    rows, index = numbers(100_000, 8, device=device), indices(100_000, 1000, salt=3, device=device)
    return with_gradients(
        lambda slots, rows: how(slots, index, rows), numbers(1000, 8, salt=1, device=device), rows
    )


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
    words = indices(20_000, 500, device=device)
    return with_gradients(
        lambda table: torch.nn.functional.embedding(words, table), numbers(500, 32, device=device)
    )


@check(WITHIN, ACROSS, devices=BOTH, order=360)
def lstm(device: str) -> Results:
    """An LSTM repeats, forward and backward."""
    # Without dropout: cuDNN's is known to vary within a process (pytorch/pytorch#90168).
    return module_with_gradients(
        filled(torch.nn.LSTM(32, 48, num_layers=2), device), numbers(24, 8, 32, device=device)
    )


@check(WITHIN, ACROSS, devices=BOTH, order=365)
def gru(device: str) -> Results:
    """A GRU repeats, forward and backward."""
    return module_with_gradients(filled(torch.nn.GRU(32, 48), device), numbers(24, 8, 32, device=device))


@check(WITHIN, ACROSS, devices=BOTH, order=370)
def layer_norm(device: str) -> Results:
    """Layer norm repeats, forward and backward."""
    return module_with_gradients(filled(torch.nn.LayerNorm(512), device), numbers(256, 512, device=device))


@check(WITHIN, ACROSS, devices=BOTH, order=375)
def softmax(device: str) -> Results:
    """Softmax repeats, forward and backward."""
    return with_gradients(lambda x: torch.softmax(x * 8, dim=-1), numbers(256, 1000, device=device))


@check(WITHIN, ACROSS, devices=BOTH, order=380)
def sums(device: str) -> Results:
    """Sums and means of a million values repeat."""
    x, wide = numbers(1_000_000, device=device), numbers(300_000, dtype="float64", device=device)
    return {
        "sum": x.sum(),
        "mean": x.mean(),
        "norm": x.norm(),
        "float64 sum": wide.sum(),
        "rows": x.view(1000, -1).sum(0),
    }


@check(WITHIN, ACROSS, devices=BOTH, order=385)
def attention(device: str) -> Results:
    """Scaled dot product attention repeats, each backend that there is."""
    module, function = (
        importlib.import_module("torch.nn.attention"),
        torch.nn.functional.scaled_dot_product_attention,
    )
    results = {}
    for backend in ("MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"):
        # On CUDA the flash and cuDNN kernels take half precision only.
        half = device == "cuda" and backend in ("FLASH_ATTENTION", "CUDNN_ATTENTION")
        dtype = "float16" if half else "float32"
        inputs = [numbers(2, 4, 96, 32, salt=salt, dtype=dtype, device=device) for salt in (1, 2, 3)]
        kind = getattr(module.SDPBackend, backend, None)
        if kind is None:
            continue
        try:
            with module.sdpa_kernel(kind), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it warns why a backend does not do
                found = with_gradients(function, *inputs)
        except RuntimeError:
            if backend == "MATH":  # the only one that every device has
                raise
            continue
        results.update({f"{backend} {name}": value for name, value in found.items()})
    note("backends: " + ", ".join(sorted({name.split()[0] for name in results})))
    return results


@check(WITHIN, ACROSS, devices=BOTH, order=390)
def svd_lowrank(device: str) -> Results:
    """svd_lowrank, which draws random numbers, repeats after a seed."""
    torch.manual_seed(7)
    u, s, v = torch.svd_lowrank(numbers(200, 100, device=device), q=6)
    return {"u": u, "s": s, "v": v}


@check(WITHIN, ACROSS, devices=BOTH, order=395)
def decompositions(device: str) -> Results:
    """Decompositions of matrices repeat: eigh, svd, solve."""
    a = numbers(96, 96, dtype="float64", device=device)
    values, vectors = torch.linalg.eigh(a + a.T)
    u, s, v = torch.linalg.svd(a)
    solved = torch.linalg.solve(a, numbers(96, 4, salt=1, dtype="float64", device=device))
    return {"eigenvalues": values, "eigenvectors": vectors, "u": u, "s": s, "v": v, "solve": solved}


@check(WITHIN, ACROSS, devices=BOTH, order=400)
def fft(device: str) -> Results:
    """Fourier transforms repeat."""
    grid = numbers(8, 64, 60, device=device)
    return {
        "rfft": torch.fft.rfft(numbers(4, 4099, device=device)),
        "fft2": torch.view_as_real(torch.fft.fft2(grid)),
    }


@check(WITHIN, ACROSS, devices=BOTH, order=405)
def elementwise(device: str) -> Results:
    """Functions of single values repeat."""
    x = numbers(20_000, device=device)
    names = ("exp", "sin", "cos", "tanh", "erf", "sigmoid")
    return {**{name: getattr(torch, name)(x * 4) for name in names}, "log": torch.log(x.abs() + 1e-3)}
