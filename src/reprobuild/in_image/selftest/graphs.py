"""Work that is captured in a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .libraries import torch


def graph_of(run: Callable[[], object], calls: int = 1) -> Any:
    """Return a CUDA graph of what a function does, after some calls outside of it, as PyTorch asks for.

    See https://docs.pytorch.org/docs/stable/notes/cuda.html#whole-network-capture.
    """
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(calls):
            run()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph
