"""Operations that have had no deterministic algorithm in some version of torch."""

from __future__ import annotations

from collections.abc import Callable

from .exact import indices, numbers
from .gradients import with_gradients
from .libraries import torch


def cases() -> dict[str, tuple[str, str, Callable[[str], object]]]:  # noqa: C901 -- a table
    """Return operations that have had no deterministic algorithm in some version of torch.

    Label → (name in the documentation, a word of its condition there, what to run on a device).
    """
    f, grads, n = torch.nn.functional, with_gradients, 20_000

    def x(*shape: int, salt: int = 0) -> Callable[[str], torch.Tensor]:
        return lambda device: numbers(*shape, salt=salt, device=device)

    def into(device: str, below: int = 100, salt: int = 5) -> torch.Tensor:
        return indices(n, below, salt=salt, device=device)

    many, few, image, cube = x(n), x(100, salt=1), x(2, 3, 16, 16), x(2, 3, 8, 8, 8)

    def fractional(device: str) -> dict[str, torch.Tensor]:
        samples = numbers(2, 3, 2, salt=9, device=device).abs()
        return grads(
            lambda a: f.fractional_max_pool2d(a, 3, output_size=8, _random_samples=samples), image(device)
        )

    def unpool(device: str) -> torch.Tensor:
        return f.max_unpool2d(*f.max_pool2d(image(device), 2, return_indices=True), [2, 2])

    def grid(device: str) -> dict[str, torch.Tensor]:
        return grads(
            lambda a, g: f.grid_sample(a, g, align_corners=False), image(device), x(2, 40, 40, 2)(device)
        )

    def ctc(device: str) -> dict[str, torch.Tensor]:
        lengths = torch.full((4,), 50), torch.full((4,), 10)
        words = 1 + indices(40, 9, device=device).view(4, 10)
        return grads(lambda a: f.ctc_loss(a.log_softmax(2), words, *lengths), x(50, 4, 10)(device))

    def bag(device: str) -> dict[str, torch.Tensor]:
        return grads(lambda w: f.embedding_bag(into(device).view(-1, 10), w, mode="max"), x(100, 8)(device))

    def nll(device: str) -> dict[str, torch.Tensor]:
        return grads(lambda a: f.nll_loss(a, indices(512, 3, device=device).view(2, 16, 16)), image(device))

    def reduced(device: str, how: str) -> torch.Tensor:
        return few(device).scatter_reduce(0, into(device), many(device), how)

    def reflected(device: str) -> dict[str, torch.Tensor]:
        return grads(lambda a: f.pad(a, (3, 3, 3, 3), mode="reflect"), image(device))

    def replicated(device: str) -> dict[str, torch.Tensor]:
        return grads(lambda a: f.pad(a, (3, 3, 3, 3), mode="replicate"), image(device))

    def placed(device: str, *, accumulate: bool) -> torch.Tensor:
        return few(device).put_(into(device), many(device), accumulate=accumulate)

    def indexed(device: str, *, accumulate: bool) -> torch.Tensor:
        return few(device).index_put((into(device),), many(device), accumulate=accumulate)

    return {
        "put_": ("torch.Tensor.put_", "accumulate=False", lambda d: placed(d, accumulate=False)),
        "put_ accumulate": ("torch.Tensor.put_", "accumulate=True", lambda d: placed(d, accumulate=True)),
        "max_unpool2d": ("torch.nn.MaxUnpool2d", "", unpool),
        "index_put": ("torch.Tensor.index_put", "accumulate=False", lambda d: indexed(d, accumulate=False)),
        "index_put accumulate": (
            "torch.Tensor.index_put", "accumulate=True", lambda d: indexed(d, accumulate=True)
        ),
        "index_copy": (
            "torch.Tensor.index_copy", "", lambda d: few(d).index_copy(0, into(d), many(d))
        ),
        "index_add": ("torch.index_add", "", lambda d: few(d).index_add(0, into(d), many(d))),
        "scatter": ("torch.Tensor.scatter", "src", lambda d: few(d).scatter(0, into(d), many(d))),
        "scatter_add_": (
            "torch.Tensor.scatter_add_", "", lambda d: few(d).scatter_add_(0, into(d), many(d))
        ),
        "scatter_reduce sum": ("torch.Tensor.scatter_reduce", "sum", lambda d: reduced(d, "sum")),
        "scatter_reduce prod": ("torch.Tensor.scatter_reduce", "prod", lambda d: reduced(d, "prod")),
        "gather backward": (
            "torch.gather", "", lambda d: grads(lambda a: a.gather(0, into(d)), few(d))
        ),
        "index_select backward": (
            "torch.index_select", "", lambda d: grads(lambda a: a.index_select(0, into(d)), few(d))
        ),
        "indexing backward": (
            "torch.Tensor.__getitem__", "", lambda d: grads(lambda a: a[into(d)], x(100, 4)(d))
        ),
        "repeat_interleave backward": (
            "torch.repeat_interleave", "", lambda d: grads(lambda a: a.repeat_interleave(50), few(d))
        ),
        "replication_pad2d backward": ("torch.nn.ReplicationPad2d", "", replicated),
        "reflection_pad2d backward": ("torch.nn.ReflectionPad2d", "", reflected),
        "max_pool3d backward": (
            "torch.nn.MaxPool3d", "", lambda d: grads(lambda a: f.max_pool3d(a, 3, 1), cube(d))
        ),
        "avg_pool3d backward": (
            "torch.nn.AvgPool3d", "", lambda d: grads(lambda a: f.avg_pool3d(a, 3, 1), cube(d))
        ),
        "adaptive_avg_pool2d backward": (
            "torch.nn.AdaptiveAvgPool2d", "", lambda d: grads(lambda a: f.adaptive_avg_pool2d(a, 5), image(d))
        ),
        "adaptive_avg_pool3d backward": (
            "torch.nn.AdaptiveAvgPool3d", "", lambda d: grads(lambda a: f.adaptive_avg_pool3d(a, 3), cube(d))
        ),
        "adaptive_max_pool2d backward": (
            "torch.nn.AdaptiveMaxPool2d", "", lambda d: grads(lambda a: f.adaptive_max_pool2d(a, 5), image(d))
        ),
        "fractional_max_pool2d backward": ("torch.nn.FractionalMaxPool2d", "", fractional),
        "interpolate backward": (
            "torch.nn.functional.interpolate", "bilinear",
            lambda d: grads(lambda a: f.interpolate(a, scale_factor=2.5, mode="bilinear"), image(d)),
        ),
        "nll_loss": ("torch.nn.NLLLoss", "", nll),
        "ctc_loss backward": ("torch.nn.CTCLoss", "", ctc),
        "embedding_bag max backward": ("torch.nn.EmbeddingBag", "max", bag),
        "grid_sample backward": ("torch.nn.functional.grid_sample", "", grid),
        "histc": ("torch.histc", "", lambda d: torch.histc(many(d), 50)),
        "bincount weights": ("torch.bincount", "weights", lambda d: torch.bincount(into(d), many(d))),
        "median indices": ("torch.median", "", lambda d: tuple(many(d).median(0))),
        "kthvalue": ("torch.kthvalue", "", lambda d: tuple(many(d).kthvalue(70))),
        "cumsum": ("torch.cumsum", "", lambda d: many(d).cumsum(0)),
    }  # fmt: skip
