from __future__ import annotations

import pytest

from reprobuild.twice.masks import masked


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[2026-11-22 15:03:07,123] step 3", "[2026-11-23 01:00:00,000] step 3"),
        ("epoch 1 took 12.5 s", "epoch 1 took 0.7 s"),
        ("100%|###| 8/8 [00:03<00:00, 2.51it/s]", "100%|###| 8/8 [00:09<00:00, 0.9it/s]"),
        ("<object at 0x7f00deadbeef>", "<object at 0x7f11deadbeef>"),
        ("saved /tmp/tmpab12cd34/last.pt", "saved /tmp/other/last.pt"),
        ("  1%\r 50%\rdone", "  3%\rdone"),
        ("pid 17", "pid 18"),
    ],
)
def test_times_and_paths_do_not_count(one: str, other: str) -> None:
    assert masked(one) == masked(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("loss 0.51234", "loss 0.51235"),
        ("step 12", "step 13"),
        ("accuracy 91.5 %", "accuracy 91.6 %"),
        ("12 samples", "13 samples"),
    ],
)
def test_results_do(one: str, other: str) -> None:
    assert masked(one) != masked(other)
