"""Runs the checks for a GPU in one interpreter that has a stand-in for one, and breaks what each guards.

    python standin_checks.py SELFTEST.PY [NAME ...]    # of all checks, or of some

Output: JSON, an object {"CHECK": [status, reason, notes]}; "CHECK: OPERATION" with that operation out of
order; "CHECK: misspelt" with a name in its lines for a GPU misspelt; "CHECK: without LINE" with a line left
out that lets one stream wait for another.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

RACING = {
    *("index_add_", "index_add", "scatter_add_", "scatter_add", "cumsum", "grid_sampler_2d_backward"),
    *("reflection_pad2d_backward", "upsample_bilinear2d_backward"),
}
"""Those that race without the flag, as on an H100 with torch 2.11.

The gradients of index_select and gather are made by index_add_ and scatter_add."""
REFUSING = {
    *("put_", "max_pool3d_with_indices_backward", "avg_pool3d_backward", "_adaptive_avg_pool2d_backward"),
    *("_adaptive_avg_pool3d_backward", "adaptive_max_pool2d_backward", "fractional_max_pool2d_backward"),
    *("nll_loss2d_forward", "_ctc_loss_backward", "grid_sampler_2d_backward", "histc", "median"),
}
"""Those that raise with the flag there."""
BROKEN = {
    "precision": "mm",
    "torch-seed": "uniform_",
    "cuda-graph-seed": "uniform_",
    "generator-state": "normal_",
    "split-k": "mm",
    "fp8": "_scaled_mm",
    "attention": "bmm",
    "attention-long": "bmm",
    "two-streams": "mm",
    "captured-training": "addmm",
    "mixed-precision": "addmm",
    "train-adamw": "convolution",
    "index-add": "index_add",
    "subnormals-cuda": "",
    "lstm-dropout": "copy_",
    "prove-index-add": "index_add",
    "prove-scatter-add": "scatter_add",
    "prove-index-select": "index_add",
    "prove-gather": "scatter_add",
    "prove-cumsum": "cumsum",
    "raises": "cumsum",
    "control": "index_add",
    "ranks-nccl": "addmm",
    "sums-nccl": "copy_",
    "under-load": "mm",
}
"""An operation of each, out of order, that it must find. prove-grid-sample's is refused with the flag."""


def elsewhere() -> set[str]:
    """Return the checks for a GPU that need another torch, Triton, or cuDNN."""
    torch = sys.modules["torch"]
    found = {"compiled", "flex-attention", "cudnn-benchmark"}
    if torch.torch_version.TorchVersion(torch.__version__) >= (2, 10):
        found.add("cublas-refuses")
    if not torch._C._dispatch_has_kernel_for_dispatch_key("aten::_scaled_mm", "CPU"):
        found.add("fp8")  # torch 2.6
    return found


MUTATED = {
    "split-k": "torch.backends.cuda.matmul",
    "attention-long": "torch._fused_sdp_choice",
    "captured-training": "torch.cuda.CUDAGraph",
    "two-streams": "torch.cuda.current_stream",
    "mixed-precision": "torch.optim.AdamW",
    "generator-state": "other.get_offset",
    "lstm-dropout": "torch.nn.LSTM",
    "torch-seed": "torch.cuda.device_count",
    "cuda-graph-seed": "torch.cuda.synchronize",
    "prove-scatter-add": ".scatter_add_",
    "cublas-refuses": "a = torch.ones",
}
"""A name in the lines of each for a GPU, to be misspelt: the check must then fail."""


REFUSED = {"attention-long": "bmm"}
"""An operation that raises on the GPU, which is not to be taken for one that is missing."""
WAITS = {
    "two-streams": (
        "stream.wait_stream(torch.cuda.current_stream())",
        "torch.cuda.current_stream().wait_stream(stream)",
    ),
}
"""Lines by which a stream waits for another, to be left out: the check must then fail."""


COMPUTED = {
    "split-k": ("mm Float", "mm Half", "mm BFloat16", "addmm Float", "addmm Half", "addmm BFloat16"),
    "torch-seed": ("uniform_ Float cuda:0", "uniform_ Float cuda:1", "normal_ Float cuda:1"),
    "generator-state": ("normal_ Float cuda:0", "normal_ Float cuda:1"),
    "mixed-precision": (
        *("addmm Half", "_amp_foreach_non_finite_check_and_unscale_ Float", "_amp_update_scale_ Float"),
        "_fused_adamw_ Float",
    ),
    "subnormals-cuda": ("div Float", "mul Float", "sqrt Float", "div Double", "sqrt Double"),
    "attention-long": ("_fused_sdp_choice BFloat16 cuda:0 is_causal", "tril "),
    "two-streams": ("mm Float", "relu Float"),
}
"""What each must have computed on a GPU, of which type: one that leaves it out passes, and proves nothing."""
REPLAYS = {"captured-training": 5, "cuda-graph-seed": 4}
"""How often each replays a graph at least, in one run."""


FLAG = "allow_bf16_reduced_precision_reduction"
LARGE = ("split-k", "attention-long", "two-streams")
"""Smaller where they only have to fail."""
PROCESSES = ("ranks-nccl", "sums-nccl")
"""They start their own."""


def load(name: str, text: str) -> Any:
    """Return the program as a module."""
    module = types.ModuleType(name)
    module.__file__ = sys.argv[1]
    sys.modules[name] = module
    exec(compile(text, sys.argv[1], "exec"), module.__dict__)
    module.execute(module.CHECKS["imports"], "cpu")
    module.REPEATED.wanted = 2
    return module


def misspelt(text: str, check: str, name: str) -> str:
    """Return the program with a name misspelt in the function of a check, or in one that it alone is for."""
    start = text.index(f"def {check.replace('-', '_')}(")
    place = text.find(name, start)
    place = place if place >= 0 else text.index(name)
    if "@check" in text[start:place]:  # in a helper of the module
        place = text.index(name)
    return f"{text[:place]}{name}_misspelt{text[place + len(name) :]}"


def without(text: str, line: str) -> str:
    """Return the program with a line left out."""
    if text.count(line) != 1:
        raise ValueError(f"{line} is there {text.count(line)} times")
    return text.replace(line, "pass")


def left_out(name: str, computed: list[str], replays: int) -> dict[str, list[Any]]:
    """Return what a check has not done on the GPU, of `COMPUTED` and `REPLAYS`."""
    done = {what: any(line.startswith(what) for line in computed) for what in COMPUTED.get(name, ())}
    done["its graph's replays"] = replays >= REPLAYS.get(name, 0)
    done["a wait of one stream for another"] = not any("not waited for" in line for line in computed)
    return {f"{name} lacks {what}": ["missing", "", computed] for what, there in done.items() if not there}


def main() -> None:
    """Run the checks and print what became of them."""
    sys.path.insert(0, str(Path(sys.argv[1]).parent))  # ranks that are spawned import it
    text = Path(sys.argv[1]).read_text()
    selftest = load("selftest", text)
    selftest.fill_memory()
    library = ctypes.CDLL(os.environ["STANDIN"])
    library.standin_called.restype = ctypes.c_char_p
    standin: Any = sys.modules["standin"]
    found = {}

    def faults(broken: set[str], refused: str = "") -> None:
        every = (RACING, {*REFUSING, refused}, broken)
        library.standin_faults(*(" ".join(each).encode() for each in every))
        os.environ["STANDIN_BROKEN"] = " ".join(broken)  # for the processes that a check starts

    @contextlib.contextmanager
    def breaking_under_load(busy_gpu: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
        with busy_gpu():
            faults({BROKEN["under-load"]})
            yield

    def run(program: Any, name: str, label: str, broken: set[str], refused: str = "") -> None:
        faults(broken if name != "under-load" else set(), refused)
        busy = program.busy_gpu
        if broken and name == "under-load":
            program.busy_gpu = functools.partial(breaking_under_load, busy)
        check = program.CHECKS[name]
        # With another process alone: as two interpreters do.
        twice = check.compares == (program.ACROSS,) and name not in PROCESSES
        numbers = program.numbers
        if broken and name in LARGE:
            program.numbers = functools.partial(smaller, numbers)
        outcome = judged_twice(program, name) if twice else program.execute(check, "cuda")
        program.numbers, program.busy_gpu = numbers, busy
        found[label] = [outcome.status, outcome.reason, outcome.notes]

    wanted = [
        check.name
        for check in selftest.in_order()
        if "cuda" in check.devices
        and check.name not in elsewhere()
        and check.name in (sys.argv[2:] or [check.name])
    ]
    for name in wanted:
        library.standin_called()
        replays = standin.STATE.replays
        run(selftest, name, name, set())
        computed = library.standin_called().decode().splitlines()
        found.update(left_out(name, computed, standin.STATE.replays - replays))
        if BROKEN.get(name):
            run(selftest, name, f"{name}: {BROKEN[name]}", {BROKEN[name]})
        if name in MUTATED:
            run(load("mutated", misspelt(text, name, MUTATED[name])), name, f"{name}: misspelt", set())
        if name in REFUSED:
            run(selftest, name, f"{name}: {REFUSED[name]} raises", set(), REFUSED[name])
        for line in WAITS.get(name, ()):
            run(load("mutated", without(text, line)), name, f"{name}: without {line}", set())
    library.standin_faults(b"", b"", b"")
    if "split-k" in wanted:  # as where another library of the second process sets a flag
        matmul = sys.modules["torch"].backends.cuda.matmul
        selftest.numbers = functools.partial(smaller, selftest.numbers)
        outcome = judged_twice(selftest, "split-k", lambda: setattr(matmul, FLAG, not getattr(matmul, FLAG)))
        found["split-k: a flag differs"] = [outcome.status, outcome.reason, outcome.notes]
    found.update(cudnn_that_benchmarks(selftest))
    sys.stdout.write(json.dumps({"found": found, "scope": selftest.gpu_scope()}))


def smaller(numbers: Callable[..., Any], *shape: int, **options: Any) -> Any:
    """Return a tensor whose sides are cut off, so that a check takes less time."""
    return numbers(*(min(side, 256) for side in shape), **options)


def judged_twice(selftest: Any, name: str, between: Callable[[], object] = bool) -> Any:
    """Return what two interpreters would say, with something between that makes the second differ."""
    check = selftest.CHECKS[name]
    first = selftest.execute(check, "cuda")
    between()
    return selftest.judge(check, first, selftest.execute(check, "cuda"), processors=2)


def cudnn_that_benchmarks(selftest: Any) -> dict[str, list[Any]]:
    """Return what the control says where a convolution has other bits with cudnn.benchmark, and where not."""
    torch = sys.modules["torch"]
    inner = torch.nn.functional.conv2d

    def raced(*arguments: Any, **options: Any) -> Any:
        value = inner(*arguments, **options)
        return value * (1 + 2**-20) if torch.backends.cudnn.benchmark else value

    found = {}
    for label, function in (("sees it", raced), ("sees nothing", inner)):
        torch.nn.functional.conv2d = function
        outcome = selftest.execute(selftest.CHECKS["cudnn-benchmark"], "cuda")
        found[f"cudnn-benchmark: {label}"] = [outcome.status, outcome.reason, outcome.notes]
    return found


if __name__ == "__main__":
    main()
