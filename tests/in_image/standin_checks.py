"""Runs the checks for a GPU in one interpreter that has a stand-in for one, and breaks what each guards.

    python standin_checks.py SELFTEST.PY [NAME ...]    # of all checks, or of some

Output: JSON, an object {"CHECK": [status, reason]}, and "CHECK: OPERATION" with that operation out of order.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import sys
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
    "prove-index-add": "index_add",
    "control": "index_add",
}
"""An operation of each, out of order, that it must find."""
ELSEWHERE = ("ranks-nccl", "cublas-refuses", "under-load", "compiled", "cudnn-benchmark")
"""They need several processes, another torch, Triton, or cuDNN."""


def main() -> None:
    """Run the checks and print what became of them."""
    spec = importlib.util.spec_from_file_location("selftest", sys.argv[1])
    assert spec
    assert spec.loader
    selftest: Any = importlib.util.module_from_spec(spec)
    sys.modules["selftest"] = selftest
    spec.loader.exec_module(selftest)
    selftest.execute(selftest.CHECKS["imports"], "cpu")
    selftest.fill_memory()
    selftest.REPEATED.wanted = 2
    library = ctypes.CDLL(os.environ["STANDIN"])
    found = {}

    def run(name: str, label: str, broken: set[str]) -> None:
        library.standin_faults(*(" ".join(each).encode() for each in (RACING, REFUSING, broken)))
        outcome = selftest.execute(selftest.CHECKS[name], "cuda")
        found[label] = [outcome.status, outcome.reason]

    for check in selftest.in_order():
        name = check.name
        if "cuda" in check.devices and name not in ELSEWHERE and name in (sys.argv[2:] or [name]):
            run(name, name, set())
            if BROKEN.get(name):
                run(name, f"{name}: {BROKEN[name]}", {BROKEN[name]})
    sys.stdout.write(json.dumps({"found": found, "scope": selftest.gpu_scope()}))


if __name__ == "__main__":
    main()
