"""The core, for real: PyTorch for the CPU, locked from the user's index, built, self-tested and run."""

from __future__ import annotations

import pytest

from support.bench import NAME, TORCH, Bench

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.core


def test_the_cpu_image_is_named_and_runs(bench: Bench, digest: str) -> None:
    (image,) = bench.images()
    assert (image["names"], image["digest"]) == ([NAME], digest)
    assert "cuda" not in {label.rpartition(".")[2] for label in image["labels"]}
    code = "import torch; print(torch.__version__, torch.are_deterministic_algorithms_enabled())"
    assert bench.run("run", NAME, "--", "python3", "-c", code)[0] == f"{TORCH}+cpu True\n"
