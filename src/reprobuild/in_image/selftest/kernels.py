"""What a GPU does in ways of its own: kernels chosen by shape and type, streams, graphs, mixed precision."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from .exact import difference, indices, must_be, numbers
from .gradients import filled, module_with_gradients, with_gradients
from .graphs import graph_of
from .libraries import torch
from .operations import NO_KERNEL, attention_by
from .outcomes import Failed, Inconclusive, NotRun, Results, note
from .power import steady
from .registry import ACROSS, BOTH, CONTROL, SETTING, WITHIN, check
from .training import train

CUDA = ("cuda",)


def same(reason: str, first: Mapping[str, object], second: Mapping[str, object]) -> None:
    """Raise `Failed` where results by name differ."""
    lines = [difference(name, value, second[name]) for name, value in first.items()]
    if any(lines):
        raise Failed(reason, [line for line in lines if line])


@check(WITHIN, ACROSS, devices=CUDA, order=326)
def split_k(device: str) -> Results:
    """Products with a long inner side, which cuBLAS splits up, repeat in each precision."""
    matmul = torch.backends.cuda.matmul
    names = ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")
    results: dict[str, Any] = {name: repr(getattr(matmul, name)) for name in names}
    note(", ".join(f"{name}: {value}" for name, value in results.items()))

    def products(inner: int) -> dict[str, torch.Tensor]:
        a, b = wide[:, :inner], tall[:inner]
        found = {}
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            found[f"{dtype} product"] = a.to(dtype) @ b.to(dtype)
            found[f"{dtype} added"] = torch.addmm(b[:1].to(dtype), a.to(dtype), b.to(dtype))
        return found

    wide, tall = numbers(64, 65_536, device=device), numbers(65_536, 64, salt=1, device=device)
    return {**results, **products(65_536), **steady(lambda: products(4096))}


@check(WITHIN, ACROSS, devices=CUDA, order=327)
def fp8(device: str) -> Results:
    """A product of float8 matrices repeats."""
    if not hasattr(torch, "_scaled_mm") or not hasattr(torch, "float8_e4m3fn"):
        raise NotRun("this torch has no product of float8 matrices")
    if torch.cuda.get_device_capability() < (8, 9):
        raise NotRun("this GPU has no float8: it came with compute capability 8.9")
    a, b = (numbers(256, 256, salt=salt, device=device).to(torch.float8_e4m3fn) for salt in (1, 2))
    one = torch.ones((), device=device)
    return steady(lambda: {"product": torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16)})


@check(WITHIN, ACROSS, devices=CUDA, order=386)
def attention_long(device: str) -> Results:
    """Causal attention over 2,048 places repeats, forward and backward, each backend that there is."""
    heads = [numbers(1, 2, 2048, 64, salt=salt, dtype="bfloat16", device=device) for salt in (1, 2, 3)]

    def attended(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)

    results: dict[str, Any] = {
        "chosen": torch._fused_sdp_choice(heads[0], heads[1], heads[2], is_causal=True)
    }
    names = {0: "MATH", 1: "FLASH_ATTENTION", 2: "EFFICIENT_ATTENTION", 3: "CUDNN_ATTENTION"}
    note(f"torch chooses {names.get(results['chosen'], results['chosen'])}")
    for backend in ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"):
        only = attention_by(backend)
        if only is None:
            continue
        try:
            with only, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = with_gradients(attended, *heads)
        except RuntimeError as error:
            if not any(words in str(error) for words in NO_KERNEL):
                raise
            note(f"{backend}: not available here")
            continue
        results.update({f"{backend} {name}": value for name, value in found.items()})
    return results


@check(WITHIN, ACROSS, devices=CUDA, order=410)
def two_streams(device: str) -> Results:
    """Work on two streams repeats, also in memory that the other stream has used before."""
    a = numbers(512, 512, device=device)
    streams = [torch.cuda.Stream() for _ in range(2)]

    def work() -> dict[str, torch.Tensor]:
        found = {}
        # What a stream allocates itself, only that stream gets again once it is freed
        # (https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-streams).
        exchanged = [torch.empty_like(a) for _ in streams]
        for turn in range(4):
            start = a * (turn + 1)
            for number, stream in enumerate(streams):
                stream.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(stream):
                    product = torch.mm(start, a, out=exchanged[(number + turn) % 2])
                    found[f"turn {turn} stream {number}"] = (product @ a).relu()
            for stream in streams:
                torch.cuda.current_stream().wait_stream(stream)
        return found

    return steady(work)


@check(WITHIN, ACROSS, devices=CUDA, order=715)
def captured_training(device: str) -> Results:
    """A training step that is captured in a CUDA graph repeats when it is replayed."""
    layers = torch.nn.Linear(64, 96), torch.nn.GELU(), torch.nn.LayerNorm(96), torch.nn.Linear(96, 10)
    model = filled(torch.nn.Sequential(*layers), device)
    start = {name: value.detach().clone() for name, value in model.named_parameters()}
    stepper = torch.optim.SGD(model.parameters(), lr=0.1)
    x, loss = numbers(32, 64, device=device), torch.zeros((), device=device)

    def step() -> None:
        stepper.zero_grad(set_to_none=False)
        value = model(x).square().mean()
        value.backward()
        stepper.step()
        loss.copy_(value.detach())

    graph = graph_of(step, calls=3)

    def replayed() -> dict[str, torch.Tensor]:
        with torch.no_grad():
            for name, value in model.named_parameters():
                value.copy_(start[name])
        for _ in range(5):
            graph.replay()
        torch.cuda.synchronize()
        return {
            "loss": loss.clone(),
            **{name: value.detach().clone() for name, value in model.named_parameters()},
        }

    return steady(replayed)


@check(WITHIN, ACROSS, devices=CUDA, order=720)
def mixed_precision(device: str) -> Results:
    """Training in float16 with a gradient scaler repeats, with AdamW in its fused and foreach forms."""
    scaler_of = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
    results: dict[str, torch.Tensor] = {}
    for form in ("fused", "foreach"):
        layers = torch.nn.Linear(64, 96), torch.nn.GELU(), torch.nn.LayerNorm(96), torch.nn.Linear(96, 10)
        model = filled(torch.nn.Sequential(*layers), device)
        options: dict[str, Any] = {form: True}
        stepper, scaler = torch.optim.AdamW(model.parameters(), lr=0.01, **options), scaler_of()
        x, labels, losses = numbers(32, 64, device=device), indices(32, 10, device=device), []
        for _ in range(10):
            stepper.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = torch.nn.functional.cross_entropy(model(x), labels)
            scaler.scale(loss).backward()
            scaler.step(stepper)
            scaler.update()
            losses.append(loss.detach())
        results[f"{form} losses"], results[f"{form} scale"] = (
            torch.stack(losses),
            torch.tensor(scaler.get_scale()),
        )
        results.update({f"{form} {name}": value.detach() for name, value in model.named_parameters()})
    return results


@check(WITHIN, ACROSS, devices=BOTH, order=203)
def generator_state(device: str) -> Results:
    """A generator whose state is saved and set again goes on with the same numbers, on each device."""
    places = [f"cuda:{i}" for i in range(torch.cuda.device_count())] if device == "cuda" else [device]
    results: dict[str, torch.Tensor] = {}
    for place in places:
        own = torch.Generator(place).manual_seed(3)

        def draw(place: str = place, own: torch.Generator = own) -> torch.Tensor:
            return torch.randn(1000, device=place, generator=own)

        draw()
        state = own.get_state()
        results[f"{place} next"], results[f"{place} then"] = draw(), draw()
        other = torch.Generator(place)
        other.set_state(state)
        same(
            f"a generator on {place} goes on with other numbers after its state was set again",
            {"next": results[f"{place} next"], "then": results[f"{place} then"]},
            {"next": draw(own=other), "then": draw(own=other)},
        )
        if place != "cpu" and hasattr(own, "get_offset"):
            must_be(f"the offset on {place}", got=other.get_offset(), expected=own.get_offset())
    return results


@check(ACROSS, devices=CUDA, order=362)
def lstm_dropout(device: str) -> Results:
    """An LSTM with dropout repeats in two processes; notes say whether it does within one, a known trap."""
    # cuDNN keeps the state of its dropout from call to call (pytorch/pytorch#90168).
    model, x = (
        filled(torch.nn.LSTM(32, 48, num_layers=2, dropout=0.3), device),
        numbers(24, 8, 32, device=device),
    )

    def run() -> dict[str, torch.Tensor]:
        torch.manual_seed(3)
        return module_with_gradients(model, x)

    first = run()
    again = run()
    lines = [difference(name, value, again[name]) for name, value in first.items()]
    note("a second call after the same seed " + ("differs" if any(lines) else "repeats"))
    return first


@check(SETTING, devices=CUDA, order=905)
def subnormals_cuda(device: str) -> Results:
    """Kernels keep subnormal numbers."""
    for dtype, smallest in ((torch.float32, 2.0**-126), (torch.float64, 2.0**-1022)):
        value = torch.tensor([smallest], dtype=dtype, device=device)
        small = value / 2
        for name, got in (("/ 2", small), ("* 1", small * 1), ("+ 0", small + 0), ("sqrt", small.sqrt())):
            if got.item() == 0:
                line = {"what": f"{dtype} {smallest} / 2, {name}", "expected": "not zero", "got": "0.0"}
                raise Failed(f"a kernel turns subnormal numbers of {dtype} into zero", [line])
    return None


@check(CONTROL, devices=CUDA, part="full", order=801)
def cudnn_benchmark(device: str) -> Results:
    """This test can see the bits change when cuDNN chooses its algorithms by a race of clocks."""
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, cudnn.deterministic
    for channels in (8, 24, 64):
        for side in (24, 57, 96):
            model = filled(torch.nn.Conv2d(channels, 2 * channels, 3, padding=1), device)
            x = numbers(8, channels, side, side, device=device)
            plain = module_with_gradients(model, x)
            try:
                cudnn.benchmark, cudnn.deterministic = True, False
                raced = module_with_gradients(model, x)
            finally:
                cudnn.benchmark, cudnn.deterministic = before
            if any(difference(name, value, raced[name]) for name, value in plain.items()):
                note(f"with cudnn.benchmark, {channels} channels of {side} x {side} have other bits")
                return None
    raise Inconclusive("no convolution had other bits with cudnn.benchmark")


BUSY = """
import sys, torch
a = torch.ones(2048, 2048, device="cuda")
for turn in range(10 ** 9):
    a = (a @ a).clamp_(-1, 1)
    if turn == 3:
        torch.cuda.synchronize()
        print("busy", flush=True)
"""


BUSY_SECONDS = 120  # for the process to start


@contextlib.contextmanager
def busy_gpu() -> Iterator[None]:
    """Let another process load the GPU meanwhile."""
    command = [sys.executable, "-c", BUSY]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        limit = threading.Timer(BUSY_SECONDS, process.kill)
        limit.start()
        try:
            line = process.stdout.readline() if process.stdout else ""
            limit.cancel()
            if line != "busy\n":
                raise RuntimeError(
                    f"the process that loads the GPU ended, or did not start in {BUSY_SECONDS} s"
                )
            yield
        finally:
            limit.cancel()
            process.kill()


@check(ACROSS, devices=CUDA, part="full", order=725)
def under_load(device: str) -> Results:
    """A training and products give the same bits while another process loads the GPU."""
    a, b = (numbers(512, 2048, salt=salt, device=device) for salt in (1, 2))

    def work() -> dict[str, torch.Tensor]:
        found = train(device, "SGD", {"lr": 0.1}, steps=5)
        return {"product": a @ b.T, **{name: value.detach() for name, value in found.items()}}

    alone = work()
    with busy_gpu():
        for _ in range(5):
            same("results change while another process loads the GPU", alone, work())
    return alone
