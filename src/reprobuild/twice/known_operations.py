"""Operations of PyTorch that may give other values: why, and the remedy, each with its source. Pure."""

from __future__ import annotations

from dataclasses import replace

from .known_causes import Remedy

_DOCUMENTED = "PyTorch's documentation of torch.use_deterministic_algorithms"

_FLAG = Remedy(
    "it adds up in the order in which threads come to it, unless deterministic algorithms are on",
    "keep torch.use_deterministic_algorithms(True), which the image turns on",
    _DOCUMENTED,
)
_ATTENTION = replace(_FLAG, source="PyTorch's source, attention_backward.cu")
_CONVOLUTION = Remedy(
    (
        "cuDNN chose another algorithm by timing them (torch.backends.cudnn.benchmark), or one that adds up"
        " in another order each time"
    ),
    "keep torch.use_deterministic_algorithms(True) and torch.backends.cudnn.benchmark = False, as here",
    "PyTorch's notes on reproducibility",
)
_NONE = Remedy(
    "PyTorch has no deterministic algorithm for it on a GPU",
    "use another operation, or compute this one on the CPU",
    _DOCUMENTED,
)

# By their names below autograd: what a class or function of the documentation (that of PyTorch 2.13) calls.
_CONVOLUTIONS = (
    *("convolution", "convolution_backward", "_convolution", "convolution_overrideable"),
    *("cudnn_convolution", "cudnn_convolution_transpose", "cudnn_convolution_relu"),
)
_WITH_FLAG = (
    "slow_conv_transpose2d",
    *("replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d_backward"),
    *("index_put", "_index_put_impl", "index_add", "index_copy", "index_select_backward"),
    *("scatter", "scatter_add", "scatter_reduce", "gather_backward"),
    *("bmm", "repeat_interleave", "max_pool3d_with_indices_backward"),
)
_WITHOUT = (
    *("avg_pool3d_backward", "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward"),
    *("adaptive_max_pool2d_backward", "fractional_max_pool2d_backward", "fractional_max_pool3d_backward"),
    *("max_unpool2d", "max_unpool3d", "nll_loss2d_forward", "_ctc_loss_backward"),
    *("upsample_linear1d_backward", "upsample_bilinear2d_backward", "upsample_bicubic2d_backward"),
    *("upsample_trilinear3d_backward", "_embedding_bag_dense_backward"),
    *("reflection_pad1d_backward", "reflection_pad2d_backward", "reflection_pad3d_backward"),
    *("put", "histc", "bincount", "median", "cumsum", "grid_sampler_2d_backward", "grid_sampler_3d_backward"),
)

_ATTENTIONS = (
    *("_scaled_dot_product_flash_attention_backward", "_scaled_dot_product_efficient_attention_backward"),
    *("_scaled_dot_product_cudnn_attention_backward", "_flash_attention_backward"),
    "_efficient_attention_backward",
)

OPERATIONS: dict[str, Remedy] = {
    **dict.fromkeys(_ATTENTIONS, _ATTENTION),
    **dict.fromkeys(_CONVOLUTIONS, _CONVOLUTION),
    **dict.fromkeys(_WITH_FLAG, _FLAG),
    **dict.fromkeys(_WITHOUT, _NONE),
}

COLLECTIVE = Remedy(
    "a collective adds the ranks' values in an order that depends on its algorithm and on who comes first",
    "fix the algorithm (for NCCL: NCCL_ALGO=Ring and NCCL_PROTO=Simple), and the number of ranks",
    "NCCL's documentation of its environment variables",
)
TRITON = Remedy(
    (
        "a kernel written in Triton, which torch's settings do not reach: its atomic additions come in any"
        " order, and autotuning chooses its configuration by timing"
    ),
    "add in a fixed order in place of tl.atomic_add, give it one configuration, and write all that it reads",
    "Triton's documentation of atomic_add and autotune",
)
COMPILED = Remedy(
    "a kernel that torch.compile made of the program's operations at this line",
    "try the same line without torch.compile: then the trace names the operation",
    "PyTorch's documentation of torch.compile",
)
UNKNOWN = Remedy(
    "it is not in PyTorch's list of nondeterministic operations",
    ("look for another thread that writes into its tensors, a kernel of your own, or another library"),
    _DOCUMENTED,
)
ARRIVAL = Remedy(
    "it takes the message that comes first, from whichever rank",
    "name the rank to receive from, in a fixed order, or use a collective",
    "PyTorch's documentation of torch.distributed.recv",
)
MOVED = Remedy(
    "it only moves what another rank computed or drew",
    "seed each rank with a constant, or with one and the rank; look at what the sending rank did before",
    "PyTorch's documentation of torch.distributed",
)

MOVES = frozenset(
    (
        *("broadcast_", "allgather_", "_allgather_base_", "allgather_into_tensor_coalesced_"),
        *("allgather_coalesced_", "gather_", "alltoall_", "alltoall_base_", "recv_"),
    )
)
"""Collectives that compute nothing, by names that no other operation has."""


KERNELS = ("triton::", "compiled::")
"""How the names of kernels begin that torch does not know: the program's, and those that Inductor makes."""


def of_operation(name: str) -> Remedy:
    """Return what is known about an operation of torch whose inputs were equal and whose output was not."""
    if name.startswith(KERNELS):
        return TRITON if name.startswith(KERNELS[0]) else COMPILED
    base = name.partition(".")[0].rpartition("::")[2]
    if base == "recv_any_source_":
        return ARRIVAL
    if base in MOVES:
        return MOVED
    if base.startswith(("allreduce", "all_reduce", "reduce_scatter", "_allreduce", "reduce_", "_reduce")):
        return COLLECTIVE
    return OPERATIONS.get(base) or OPERATIONS.get(base.rstrip("_")) or UNKNOWN
