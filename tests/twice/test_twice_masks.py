from __future__ import annotations

import pytest

from reprobuild.twice.masks import masked, masked_table


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
        ("2026-11-22 15:03:07,123 17 INFO x", "2026-11-23 01:00:00,000 1800 INFO x"),
        ("[2026-11-22 15:03:07][17][WARNING] x", "[2026-11-23 01:00:00][18][WARNING] x"),
        ("runs/20261122-193847/last.pt", "runs/20261123-000000/last.pt"),
        ("runs/Nov22_19-38-47_host/x", "runs/Nov23_00-00-00_host/x"),
        ("outputs/2026-11-22/19-38-47/x", "outputs/2026-11-23/00-00-00/x"),
        ("out_2026-11-22_19-38-47.log", "out_2026-11-23_00-00-00.log"),
        ("{'train_runtime': 1.2345, 'epoch': 1.0}", "{'train_runtime': 2.5, 'epoch': 1.0}"),
        ('"train_samples_per_second": 12.5,', '"train_samples_per_second": 1e+02,'),
        ("elapsed=3.25", "elapsed=3.5"),
        ("cache-tmpab12cd34/x", "cache-tmp_z99yy88/x"),
    ],
)
def test_times_and_paths_do_not_count(one: str, other: str) -> None:
    assert masked(one) == masked(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("loss 0.51234", "loss 0.51235"),
        ("step 12", "step 13"),
        ("2026-11-22 15:03:07 12 steps", "2026-11-22 15:03:07 13 steps"),
        ("accuracy 91.5 %", "accuracy 91.6 %"),
        ("12 samples", "13 samples"),
        ("timesteps=12", "timesteps=13"),
        ("{'epoch': 1.0}", "{'epoch': 2.0}"),
        ("seed 20240131", "seed 20240132"),
        ("train_time=1.5", "eval_time=1.5"),
    ],
)
def test_results_do(one: str, other: str) -> None:
    assert masked(one) != masked(other)


def test_columns_of_times_in_a_table_do_not_count() -> None:
    one, other = (masked_table(text.encode(), ",") for text in ("a,Time\n1,2.5\n", "a,Time\n1,3.5\n"))
    assert one == other
    assert one != masked_table(b"a,Time\n2,2.5\n", ",")
    assert masked_table(b"a,b\n1,2.5\n", ",") != masked_table(b"a,b\n1,3.5\n", ",")
