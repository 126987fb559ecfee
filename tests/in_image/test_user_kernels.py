"""What a user brings of kernels: FlexAttention, plain and compiled, and a Triton kernel where there is a GPU.

Each program runs in two fresh interpreters with an image's variables and hook, and must print the same bits.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from torch_python import image_environment, make_venv, run

from conftest import needs

pytestmark = [pytest.mark.slow, pytest.mark.torch]

_DIGEST = """
import hashlib, sys, torch
def show(*tensors):
    for each in tensors:
        print(hashlib.sha256(each.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()).hexdigest())
torch.manual_seed(7)
device = sys.argv[1]
"""

FLEX = (
    _DIGEST
    + """
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
shape = (2, 4, 256, 64)
query, key, value = (torch.randn(shape, device=device, requires_grad=device != "cpu") for _ in range(3))
mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256, device=device)
slopes = torch.linspace(0.1, 1.0, 4, device=device)
def score(score, b, h, q, k):
    return score + slopes[h] * (k - q)
call = torch.compile(flex_attention) if "compiled" in sys.argv else flex_attention
for _ in range(3):
    out = call(query, key, value, score_mod=score, block_mask=mask)
    show(out)
    if out.requires_grad:
        show(*torch.autograd.grad(out.square().sum(), (query, key, value)))
"""
)

# Sums of rows, in blocks whose size autotuning chooses by timing: each choice has an order of its own.
TRITON = (
    _DIGEST
    + """
import triton, triton.language as tl
@triton.autotune(configs=[triton.Config({"BLOCK": size}) for size in (64, 256, 1024)], key=["count"])
@triton.jit
def row_sums(source, target, count, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(source + row * count + at, mask=at < count, other=0.0)
    tl.store(target + row, tl.sum(total))
source = torch.randn(512, 5000, device=device)
target = torch.empty(512, device=device)
for _ in range(20):
    row_sums[(512,)](source, target, 5000)
    show(target)
"""
)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_venv(tmp_path_factory.mktemp("kernels") / "venv", torch=True)


def lines(python: Path, cache: Path, code: str, *argv: str) -> list[str]:
    """Run a program with caches of its compilers; return what it prints."""
    cache.mkdir(exist_ok=True)
    (cache / "program.py").write_text(code)  # Triton reads the source of a kernel
    folders = {"TRITON_CACHE_DIR": str(cache / "triton"), "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor")}
    done = run(python, cache / "program.py", *argv, env=image_environment(HOME=str(cache), **folders))
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split()


def need_gpu(python: Path) -> None:
    if run(python, "-c", "import torch; print(torch.cuda.is_available())").stdout.strip() != "True":
        pytest.skip("no NVIDIA GPU on this machine, or this torch cannot use it")


def test_flex_attention_repeats(python: Path, tmp_path: Path) -> None:
    first, second = (lines(python, tmp_path / each, FLEX, "cpu") for each in "ab")
    assert first == second
    assert len(first) == 3
    assert len({*first}) == 1


def test_flex_attention_compiled_repeats(python: Path, tmp_path: Path) -> None:
    """Each process compiles anew: the same request gives the same code, and so the same bits."""
    needs("g++")
    first, second = (lines(python, tmp_path / each, FLEX, "cpu", "compiled") for each in "ab")
    assert first == second
    assert len({*first}) == 1


def test_flex_attention_compiled_repeats_on_a_gpu(python: Path, tmp_path: Path) -> None:
    need_gpu(python)
    first, second = (lines(python, tmp_path / each, FLEX, "cuda", "compiled") for each in "ab")
    assert first == second
    assert len(first) == 12


def test_a_triton_kernel_repeats_within_what_its_cache_keeps(python: Path, tmp_path: Path) -> None:
    """Autotuning chooses by timing: with the cache of the first run the second makes the same choice."""
    need_gpu(python)
    first, second = (lines(python, tmp_path, TRITON, "cuda") for _ in "ab")
    assert first == second
    assert len({*first}) == 1
