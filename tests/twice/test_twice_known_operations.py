from __future__ import annotations

import pytest

from reprobuild.twice.known_operations import ARRIVAL, COLLECTIVE, TRITON, UNKNOWN, of_operation


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("index_put_.default", "use_deterministic_algorithms"),
        ("scatter_add.out", "use_deterministic_algorithms"),
        ("cumsum.default", "another operation"),
        ("put_.default", "another operation"),
        ("nll_loss2d_forward.default", "another operation"),
        ("convolution_backward.default", "cudnn.benchmark = False"),
        ("cudnn_convolution.default", "cudnn.benchmark = False"),
        ("allreduce_.default", COLLECTIVE.remedy),
        ("_reduce_scatter_base_.default", COLLECTIVE.remedy),
        ("recv_any_source_.default", ARRIVAL.remedy),
        ("mm.default", UNKNOWN.remedy),
        ("triton::total", TRITON.remedy),
        ("triton::reduce_scatter", TRITON.remedy),
        ("compiled::triton_per_fused_mean_0", "without torch.compile"),
    ],
)
def test_what_is_known_of_an_operation_is_what_pytorch_says_of_it(name: str, remedy: str) -> None:
    assert remedy in of_operation(name).remedy
