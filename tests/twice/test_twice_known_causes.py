from __future__ import annotations

import pytest

from reprobuild.in_image.twice import hints
from reprobuild.twice import known_causes
from reprobuild.twice.known_causes import ARRIVAL, COLLECTIVE, TRITON, UNKNOWN, of_operation, of_source


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


def test_the_recorder_s_words_for_lines_of_threads_are_known() -> None:
    assert hints.FILLED == known_causes.FILLED
    told = (hints.FILLED, hints.CHANGED, hints.TAKEN, hints.SHARED_GENERATOR)
    assert [known_causes.of_hint(each) for each in told] == [
        *(known_causes.THREADS, known_causes.THREADS, known_causes.TAKEN, known_causes.SHARED_GENERATOR)
    ]


def test_a_librarys_own_generator_is_not_seeded_by_pythons() -> None:
    remedy = of_source("draw", "random.Random.choice in faker.utils.distribution:76")
    assert remedy is not None
    assert "Faker.seed(SEED)" in remedy.remedy
    assert remedy != of_source("draw", "random.choice in networkx.utils:9")
