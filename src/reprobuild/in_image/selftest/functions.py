"""Public functions of torch, NumPy and random that need arguments of their own."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Mapping
from typing import Any

from .exact import indices, numbers
from .gradients import filled, module_with_gradients, with_gradients
from .libraries import np, torch

ACTIVATIONS = (
    *("celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu"),
    *("log_softmax", "logsigmoid", "mish", "normalize", "relu", "relu6", "rrelu", "selu", "sigmoid", "silu"),
    *("softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink"),
)
"""Of torch.nn.functional, of one tensor and some of them of its last axis."""
DROPOUTS = ("alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout")
PAIRS = (
    *("binary_cross_entropy_with_logits", "cosine_similarity", "huber_loss", "kl_div", "l1_loss", "mse_loss"),
    *("pairwise_distance", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss"),
    "multilabel_soft_margin_loss",
)
"""Of two tensors of one shape."""
INITIALIZERS = {
    "constant_": (0.3,),
    **dict.fromkeys(("dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_"), ()),
    **dict.fromkeys(
        ("orthogonal_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_"), ()
    ),
    "sparse_": (0.4,),
}
"""Of torch.nn.init, with what follows the tensor."""
NUMPY_DRAWS = (
    *(
        "beta",
        "binomial",
        "choice",
        "exponential",
        "gamma",
        "lognormal",
        "multinomial",
        "normal",
        "permutation",
    ),
    *("poisson", "randint", "random_sample", "standard_normal", "uniform"),
)
ALONE = ("softmax", "log_softmax", "softmin")


def functional() -> dict[str, Callable[[], object]]:
    """Return calls of torch.nn.functional by the function's name."""
    f = torch.nn.functional

    def x(*shape: int, salt: int = 0) -> torch.Tensor:
        return numbers(*shape, salt=salt)

    def grads(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        return with_gradients(function, *inputs)

    a, b, line, image, cube = x(16, 12), x(16, 12, salt=1), x(2, 4, 32), x(2, 4, 12, 12), x(2, 4, 8, 8, 8)
    ones, classes, sign = x(16, 12, salt=2).abs(), indices(16, 12, salt=4), x(16, salt=5).sign()
    table: dict[str, Callable[[], object]] = {}

    def one(name: str) -> Callable[[], object]:
        more: dict[str, Any] = {"dim": -1} if name in ALONE else {"training": True} if name == "rrelu" else {}
        return lambda: grads(lambda t: getattr(f, name)(t, **more), a)

    def dropped(name: str) -> Callable[[], object]:
        shape = {"1": line, "2": image, "3": cube}.get(name[7:8], image)
        return lambda: getattr(f, name)(shape, training=True)

    def paired(name: str) -> Callable[[], object]:
        more, target = ({"reduction": "batchmean"}, ones) if name == "kl_div" else ({}, b)
        return lambda: grads(lambda t: getattr(f, name)(t, target, **more), a)

    def pooled(name: str, values: torch.Tensor, options: Mapping[str, Any]) -> Callable[[], object]:
        return lambda: grads(lambda t: getattr(f, name)(t, **options), values)

    table.update({name: one(name) for name in ACTIVATIONS})
    table.update({name: dropped(name) for name in DROPOUTS})
    table.update({name: paired(name) for name in PAIRS})
    for size, values in ((1, line), (2, image), (3, cube)):
        for name, options in (
            ("avg_pool", {"kernel_size": 2}),
            ("max_pool", {"kernel_size": 2}),
            ("lp_pool", {"norm_type": 2, "kernel_size": 2}),
            ("adaptive_avg_pool", {"output_size": 3}),
            ("adaptive_max_pool", {"output_size": 3}),
        ):
            table[f"{name}{size}d"] = pooled(f"{name}{size}d", values, options)
    table.update(
        affine_grid=lambda: f.affine_grid(x(2, 2, 3), [2, 3, 8, 8], align_corners=False),
        batch_norm=lambda: grads(lambda t: f.batch_norm(t, None, None, training=True), image),
        bilinear=lambda: grads(f.bilinear, x(5, 6), x(5, 7, salt=1), x(4, 6, 7, salt=2)),
        binary_cross_entropy=lambda: f.binary_cross_entropy(ones, b.abs()),
        channel_shuffle=lambda: f.channel_shuffle(image, 2),
        conv_tbc=lambda: f.conv_tbc(x(9, 2, 4), x(3, 4, 5), x(5)),
        conv_transpose1d=lambda: grads(f.conv_transpose1d, line, x(4, 3, 3)),
        conv_transpose3d=lambda: grads(f.conv_transpose3d, cube, x(4, 3, 3, 3, 3)),
        cosine_embedding_loss=lambda: f.cosine_embedding_loss(a, b, sign),
        cross_entropy=lambda: grads(lambda t: f.cross_entropy(t, classes, label_smoothing=0.1), a),
        ctc_loss=lambda: f.ctc_loss(
            x(20, 2, 5).log_softmax(2),
            1 + indices(12, 4).view(2, 6),
            torch.tensor((20, 20)),
            torch.tensor((6, 6)),
        ),
        embedding_bag=lambda: grads(lambda w: f.embedding_bag(indices(40, 30).view(8, 5), w), x(30, 6)),
        fold=lambda: grads(lambda t: f.fold(t, (6, 6), (3, 3)), x(2, 18, 16)),
        fractional_max_pool2d=lambda: f.fractional_max_pool2d(image, 3, output_size=5),
        fractional_max_pool3d=lambda: f.fractional_max_pool3d(cube, 2, output_size=5),
        gaussian_nll_loss=lambda: f.gaussian_nll_loss(a, b, ones + 0.1),
        grid_sample=lambda: grads(
            lambda t, g: f.grid_sample(t, g, align_corners=False), image, x(2, 5, 5, 2)
        ),
        group_norm=lambda: grads(lambda t: f.group_norm(t, 2), image),
        gumbel_softmax=lambda: f.gumbel_softmax(a, tau=0.7),
        hinge_embedding_loss=lambda: f.hinge_embedding_loss(a, b.sign()),
        instance_norm=lambda: grads(f.instance_norm, image),
        interpolate=lambda: [
            grads(lambda t, m=mode: f.interpolate(t, scale_factor=1.7, mode=m), image)
            for mode in ("nearest", "bilinear", "bicubic", "area", "nearest-exact")
        ],
        linear=lambda: grads(f.linear, a, x(9, 12), x(9)),
        local_response_norm=lambda: grads(lambda t: f.local_response_norm(t, 2), image),
        margin_ranking_loss=lambda: f.margin_ranking_loss(a[:, 0], b[:, 0], sign),
        multi_margin_loss=lambda: f.multi_margin_loss(a, classes),
        multilabel_margin_loss=lambda: f.multilabel_margin_loss(a, indices(192, 12, salt=6).view(16, 12)),
        multi_head_attention_forward=lambda: module_with_gradients(
            filled(torch.nn.MultiheadAttention(12, 3), "cpu"), *(x(5, 2, 12, salt=salt) for salt in range(3))
        ),
        native_channel_shuffle=lambda: f.native_channel_shuffle(image, 2),
        nll_loss=lambda: grads(lambda t: f.nll_loss(t, classes), a),
        one_hot=lambda: f.one_hot(classes, 12),
        pad=lambda: [
            grads(lambda t, m=mode: f.pad(t, (1, 2, 2, 1), mode=m), image)
            for mode in ("constant", "reflect", "replicate", "circular")
        ],
        pdist=lambda: grads(f.pdist, a),
        pixel_shuffle=lambda: f.pixel_shuffle(image, 2),
        pixel_unshuffle=lambda: f.pixel_unshuffle(image, 2),
        prelu=lambda: grads(f.prelu, a, x(1)),
        rms_norm=lambda: grads(lambda t: f.rms_norm(t, [12]), a),
        threshold=lambda: f.threshold(a, 0.1, 0.2),
        triplet_margin_loss=lambda: f.triplet_margin_loss(a, b, ones),
        triplet_margin_with_distance_loss=lambda: f.triplet_margin_with_distance_loss(a, b, ones),
        unfold=lambda: grads(lambda t: f.unfold(t, 3), image),
    )
    return {f"torch.nn.functional.{name}": call for name, call in table.items() if hasattr(f, name)}


def others() -> dict[str, Callable[[], object]]:
    """Return calls of other public functions by their name."""
    a, b = numbers(40, 30), numbers(40, 30, salt=1)
    array, other = (numbers(64, 64, salt=salt, dtype="float64").numpy() for salt in (1, 2))

    def initialized(name: str) -> Callable[[], object]:
        shape = (6, 4, 3) if name == "dirac_" else (24, 20)
        return lambda: getattr(torch.nn.init, name)(torch.empty(*shape), *INITIALIZERS[name])

    def drawn(name: str) -> Callable[[], object]:
        given: Mapping[str, Any] = {
            "beta": (0.5, 2, 50),
            "binomial": (9, 0.3, 50),
            "choice": (90, 30),
            "gamma": (2.0, 1.0, 50),
            "multinomial": (20, [0.2, 0.8]),
            "permutation": (50,),
            "poisson": (3.0, 50),
            "randint": (0, 99, 50),
        }
        return lambda: getattr(np.random, name)(
            *given.get(name, ()), **({} if name in given else {"size": 50})
        )

    def reloaded() -> object:
        file = io.BytesIO()
        torch.save({"a": a, "b": [b]}, file)
        file.seek(0)
        return torch.load(file, weights_only=True)["b"]

    def shuffled() -> object:
        order = [*range(50)]
        random.shuffle(order)
        return order

    def mixed() -> object:
        order = np.arange(50)
        np.random.shuffle(order)
        return order

    def gone_on(draw: Callable[[], object], get: Callable[[], Any], put: Callable[[Any], object]) -> object:
        state = get()
        first = draw()
        put(state)
        return first, draw()

    def forked() -> object:
        with torch.random.fork_rng(devices=[]):
            first = torch.rand(9)
        return first, torch.rand(9)

    def from_archive() -> object:
        file = io.BytesIO()
        np.savez_compressed(file, array=array)
        file.seek(0)
        plain = io.BytesIO()
        np.save(plain, np.load(file)["array"])
        return plain.getvalue()

    def from_text() -> object:
        file = io.StringIO()
        np.savetxt(file, array)
        file.seek(0)
        return np.loadtxt(file)

    return {
        **{f"torch.nn.init.{name}": initialized(name) for name in INITIALIZERS},
        **{f"numpy.random.{name}": drawn(name) for name in NUMPY_DRAWS},
        "numpy.random.shuffle": mixed,
        "numpy.load": from_archive,
        "numpy.loadtxt": from_text,
        "numpy.random.get_state": lambda: gone_on(
            lambda: np.random.random_sample(9), np.random.get_state, np.random.set_state
        ),
        "torch.random.fork_rng": forked,
        "torch.random.initial_seed": lambda: (torch.random.initial_seed(),),
        "torch.vmap": lambda: torch.vmap(torch.sum)(a),
        "torch.random.get_rng_state": lambda: gone_on(
            lambda: torch.rand(9), torch.random.get_rng_state, torch.random.set_rng_state
        ),
        "random.getstate": lambda: gone_on(random.random, random.getstate, random.setstate),
        "random.choice": lambda: [random.choice("abcdef") for _ in range(50)],  # noqa: S311 -- no secret
        "random.choices": lambda: random.choices(range(99), k=50),  # noqa: S311 -- likewise
        "random.randint": lambda: [random.randint(0, 10**9) for _ in range(50)],  # noqa: S311 -- likewise
        "random.shuffle": shuffled,
        "random.uniform": lambda: [random.uniform(0, 1) for _ in range(50)],  # noqa: S311 -- likewise
        "torch.cdist": lambda: with_gradients(torch.cdist, a, b),
        "torch.corrcoef": lambda: torch.corrcoef(a),
        "torch.cumprod": lambda: torch.cumprod(a, 0),
        "torch.cumsum": lambda: torch.cumsum(a, 0),
        "torch.einsum": lambda: torch.einsum("ij,kj->ik", a, b),
        "torch.histc": lambda: torch.histc(a, 20),
        "torch.linalg.cholesky": lambda: torch.linalg.cholesky(a.T @ a + 40 * torch.eye(30)),
        "torch.linalg.inv": lambda: torch.linalg.inv(a[:30] + 9 * torch.eye(30)),
        "torch.linalg.norm": lambda: torch.linalg.norm(a),
        "torch.linalg.qr": lambda: tuple(torch.linalg.qr(a)),
        "torch.load": reloaded,
        "torch.logsumexp": lambda: torch.logsumexp(a, 1),
        "torch.median": lambda: torch.median(a),
        "torch.multinomial": lambda: torch.multinomial(a.abs(), 5),
        "torch.normal": lambda: torch.normal(a, b.abs()),
        "torch.poisson": lambda: torch.poisson(a.abs() * 9),
        "torch.quantile": lambda: torch.quantile(a, 0.3, dim=1),
        "torch.sort": lambda: tuple(torch.sort(a, dim=1)),
        "torch.std": lambda: torch.std(a, 1),
        "torch.tensordot": lambda: torch.tensordot(a, b, dims=2),
        "torch.topk": lambda: tuple(torch.topk(a, 5)),
        "torch.unique": lambda: torch.unique(indices(500, 90)),
        "torch.var": lambda: torch.var(a, 0),
        "numpy.convolve": lambda: np.convolve(array[0], other[0]),
        "numpy.cumsum": lambda: np.cumsum(array),
        "numpy.dot": lambda: np.dot(array, other),
        "numpy.einsum": lambda: np.einsum("ij,kj->ik", array, other, optimize=True),
        "numpy.exp": lambda: np.exp(array),
        "numpy.fft.fft": lambda: np.fft.fft(array),
        "numpy.linalg.eigh": lambda: tuple(np.linalg.eigh(array + array.T)),
        "numpy.linalg.inv": lambda: np.linalg.inv(array + 20 * np.eye(64)),
        "numpy.linalg.solve": lambda: np.linalg.solve(array + 20 * np.eye(64), other),
        "numpy.linalg.svd": lambda: tuple(np.linalg.svd(array)),
        "numpy.log": lambda: np.log(np.abs(array) + 0.1),
        "numpy.matmul": lambda: np.matmul(array, other),
        "numpy.mean": lambda: np.mean(array),
        "numpy.percentile": lambda: np.percentile(array, 30),
        "numpy.std": lambda: np.std(array),
        "numpy.sum": lambda: np.sum(array, axis=0),
    }
