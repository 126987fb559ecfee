"""Prints a digest of each of many results of NumPy, of the C library's mathematics, and of torch, as JSON.

    python portable_battery.py

Run by test_portable.py on the processor as it is and on emulated ones.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import sys
import warnings
from typing import Any

import numpy as np
import torch

FOUND: dict[str, str] = {}


def keep(name: str, value: Any) -> None:
    """Keep the digest of an array's or a tensor's bytes."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        value = (value.view(torch.int16) if value.dtype == torch.bfloat16 else value).numpy()
    FOUND[name] = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]


def numpy_results(x: Any, y: Any) -> None:
    """Elementwise functions, sums, sorting, linear algebra and random draws of NumPy."""
    names = (
        "exp log arctan log1p sin cos tan tanh sinh cosh expm1 arcsinh cbrt exp2 log2 log10 sqrt reciprocal"
    )
    for name in names.split():
        values = y if name.startswith("log") or name == "sqrt" else x
        for kind in ("float64", "float32"):
            keep(f"numpy.{name} {kind}", getattr(np, name)(values.astype(kind)))
    f, g = x.astype("float32"), y.astype("float32")
    keep("numpy.power", np.power(y, x))
    keep("numpy.arctan2", np.arctan2(x, y))
    keep("numpy.hypot", np.hypot(x, y))
    keep("numpy.abs complex", np.abs(x + 1j * y))
    keep("numpy.multiply complex", (x + 1j * y) * (y - 1j * x))
    keep("numpy.sum", x.sum())
    keep("numpy.sum float32", f.sum())
    keep("numpy.std", x.std())
    keep("numpy.var float32", f.var())
    keep("numpy.cumsum", np.cumsum(f))
    keep("numpy.sort", np.sort(f))
    keep("numpy.argsort", np.argsort(f))
    keep("numpy.argsort of equal keys", np.argsort(np.floor(f * 4)))
    keep("numpy.fft", np.fft.fft(x))
    a, b = x[: 97 * 113].reshape(97, 113), y[: 113 * 89].reshape(113, 89)
    square = a[:, :97]
    keep("numpy.dot", x @ y)
    keep("numpy.dot float32", f @ g)
    keep("numpy.matmul", a @ b)
    keep("numpy.matmul float32", a.astype("float32") @ b.astype("float32"))
    keep("numpy.matvec", a @ b[:, 0])
    keep("numpy.einsum", np.einsum("ij,jk->ik", a, b))
    keep("numpy.inner", np.inner(a, a))
    keep("numpy.svd", np.linalg.svd(a)[1])
    keep("numpy.solve", np.linalg.solve(square, a[:, 0]))
    keep("numpy.inv", np.linalg.inv(square))
    keep("numpy.det", np.linalg.det(square))
    keep("numpy.qr", np.linalg.qr(a)[1])
    keep("numpy.eigh", np.linalg.eigh(a @ a.T)[0])
    keep("numpy.eig", np.linalg.eig(square)[0])
    keep("numpy.cholesky", np.linalg.cholesky(a @ a.T + 100 * np.eye(97)))
    keep("numpy.lstsq", np.linalg.lstsq(a, a[:, 0], rcond=None)[0])
    old, new = np.random.RandomState(0), np.random.default_rng(0)
    keep("numpy.random normal", old.normal(size=1000))
    keep("numpy.random gamma", old.gamma(2.0, size=1000))
    keep("numpy.random permutation", old.permutation(1000))
    keep("numpy.Generator normal", new.normal(size=1000))
    keep("numpy.Generator beta", new.beta(2, 3, size=500))
    keep("numpy.Generator exponential", new.exponential(size=999))


def python_results(y: Any) -> None:
    """The C library's mathematics, by Python's math and random."""
    for name in (
        "exp",
        "sin",
        "cos",
        "tan",
        "log",
        "atan",
        "tanh",
        "lgamma",
        "gamma",
        "erf",
        "expm1",
        "log2",
    ):
        keep(f"math.{name}", np.array([getattr(math, name)(v) for v in y[:3000]]))
    keep("math.pow", np.array([math.pow(v, 1.7) for v in y[:3000]]))
    random.seed(0)
    keep("random.gauss", np.array([random.gauss(0, 1) for _ in range(1000)]))


def torch_results(x: Any, y: Any) -> None:
    """Elementwise functions, reductions, products, layers, draws and training of torch."""
    f, nn = torch.nn.functional, torch.nn
    p, q = torch.from_numpy(x.astype("float32")), torch.from_numpy(y.astype("float32"))
    names = (
        "exp sin cos tan tanh erf sigmoid abs expm1 atan log log1p log2 sqrt rsqrt lgamma digamma sinh cosh"
    )
    for name in names.split():
        values = q if name.startswith("log") or name in ("sqrt", "rsqrt", "lgamma", "digamma") else p
        keep(f"torch.{name}", getattr(torch, name)(values))
        keep(f"torch.{name} float64", getattr(torch, name)(values.double()))
    for name in ("acos", "asin", "erfinv"):
        keep(f"torch.{name}", getattr(torch, name)(p.tanh()))
    keep("torch.pow", torch.pow(q, p))
    for name in ("gelu", "silu", "softplus", "elu", "dropout"):
        torch.manual_seed(0)
        keep(f"torch.{name}", getattr(f, name)(p))
    rows = p[:20000].view(200, 100)
    for name in ("sum", "mean", "var", "norm", "median", "sort", "topk"):
        found = torch.topk(p, 50) if name == "topk" else getattr(torch, name)(p)
        keep(f"torch.{name}", found if isinstance(found, torch.Tensor) else found[0])
    keep("torch.cumsum", p.cumsum(0))
    for name in ("logsumexp", "softmax", "log_softmax"):
        keep(f"torch.{name}", getattr(torch, name)(rows, 1))
    a, b = p[: 97 * 113].view(97, 113), q[: 113 * 89].view(113, 89)
    for kind in ("float32", "float64", "bfloat16", "float16"):
        keep(f"torch.matmul {kind}", a.to(getattr(torch, kind)) @ b.to(getattr(torch, kind)))
    keep("torch.mv", a @ b[:, 0])
    keep("torch.dot", p @ q)
    keep("torch.bmm", torch.bmm(a.expand(4, 97, 113), b.expand(4, 113, 89)))
    keep("torch.addmm", torch.addmm(torch.ones(97, 89), a, b))
    keep("torch.svdvals", torch.linalg.svdvals(a))
    keep("torch.solve", torch.linalg.solve(a[:, :97].double(), a[:, :1].double()))
    keep("torch.eigvalsh", torch.linalg.eigvalsh(a @ a.T))
    keep("torch.qr", torch.linalg.qr(a)[1])
    keep("torch.inv", torch.linalg.inv(a[:, :97]))
    keep("torch.cholesky", torch.linalg.cholesky(a @ a.T + 100 * torch.eye(97)))
    keep("torch.cdist", torch.cdist(a, a))
    keep("torch.sparse", torch.sparse.mm(a.to_sparse(), b))
    keep("torch.fft", torch.view_as_real(torch.fft.fft(p)))
    keep("torch.scatter_add", torch.zeros(50).scatter_add(0, torch.arange(20000) % 50, p[:20000]))
    slots = (torch.arange(2000) % 100,)
    keep("torch.index_put", torch.zeros(100, 8).index_put(slots, p[:16000].view(2000, 8), accumulate=True))
    image = p[: 3 * 3 * 32 * 32].view(3, 3, 32, 32).clone().requires_grad_()
    weight = q[: 8 * 3 * 3 * 3].view(8, 3, 3, 3).clone().requires_grad_()
    output = f.conv2d(image, weight, padding=1)
    output.pow(2).sum().backward()
    keep("torch.conv2d", output)
    keep("torch.conv2d's gradients", torch.cat([image.grad.flatten(), weight.grad.flatten()]))
    plain, kernel = image.detach(), weight.detach()
    keep("torch.conv2d bfloat16", f.conv2d(plain.bfloat16(), kernel.bfloat16()))
    keep("torch.conv_transpose2d", f.conv_transpose2d(output.detach(), kernel))
    keep("torch.conv1d", f.conv1d(plain[:, :, 0], kernel[:, :, 0]))
    keep("torch.layer_norm", nn.LayerNorm(64)(p[:6400].view(100, 64)))
    keep("torch.batch_norm", nn.BatchNorm2d(3)(plain))
    keep("torch.group_norm", nn.GroupNorm(1, 3)(plain))
    keep("torch.max_pool2d", f.max_pool2d(plain, 2))
    keep("torch.avg_pool2d", f.avg_pool2d(plain, 3))
    keep("torch.interpolate", f.interpolate(plain, scale_factor=1.7, mode="bilinear"))
    heads = p[: 2 * 4 * 16 * 32].view(2, 4, 16, 32)
    keep("torch.attention", f.scaled_dot_product_attention(heads, heads, heads))
    keep("torch.attention causal", f.scaled_dot_product_attention(heads, heads, heads, is_causal=True))
    torch.manual_seed(0)
    for name in ("rand", "randn"):
        for size in (15, 1000):
            keep(f"torch.{name} of {size}", getattr(torch, name)(size))
    keep("torch.randn float64", torch.randn(1000, dtype=torch.float64))
    keep("torch.randperm", torch.randperm(1000))
    keep("torch.multinomial", torch.multinomial(torch.rand(50), 20))
    keep("torch.exponential", torch.empty(1000).exponential_())
    keep("torch.bernoulli", torch.bernoulli(torch.full((500,), 0.3)))
    for name in ("SGD", "AdamW", "RMSprop"):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 10))
        stepper = getattr(torch.optim, name)(model.parameters(), lr=0.01)
        for _ in range(10):
            stepper.zero_grad()
            f.cross_entropy(model(p[:3200].view(100, 32)), torch.arange(100) % 10).backward()
            stepper.step()
        keep(f"training with {name}", torch.cat([value.flatten() for value in model.parameters()]))
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    keep("transformer layer", layer(p[:6400].view(10, 20, 32)))


def main() -> None:
    """Print all digests."""
    warnings.simplefilter("ignore")
    torch.use_deterministic_algorithms(True)
    x = np.random.RandomState(1).standard_normal(20011)
    y = np.abs(x) + 0.1
    numpy_results(x, y)
    python_results(y)
    torch_results(x, y)
    sys.stdout.write(json.dumps(FOUND))


main()
