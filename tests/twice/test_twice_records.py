"""What a run recorded is a stranger's: only records that are as they should be are read."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprobuild.errors import RepeatError
from reprobuild.in_image.twice import digests
from reprobuild.twice import records
from reprobuild.twice.first_difference import machine_of
from reprobuild.twice.records import read_records

PROCESS = {
    "k": "process",
    "format": 1,
    "rank": "0",
    "worker": "",
    "name": "MainProcess",
    "argv": ["train.py"],
}
TIMES = {"loss": "", "sample": "", "wall": 0.5, "spent": 0.1}
STEP = {"k": "step", "n": 0, "optimizer": "SGD", "which": 0, "parts": [["loss", "ab" * 16, ""]], **TIMES}
CALL = {"k": "call", "of": "Net", "parts": [["outputs", "cd" * 16, ""]], **TIMES}


def written(folder: Path, *records: Any) -> Path:
    (folder / "1-2.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


def test_steps_and_calls_are_read_in_their_order(tmp_path: Path) -> None:
    (stream,) = read_records(written(tmp_path, PROCESS, STEP, CALL, CALL, {"k": "end", "hooks": True}))
    assert (stream.label, stream.hooks, stream.cut) == ("rank 0", True, False)
    assert [moment.label for moment in stream.moments] == ["step 0 (SGD)", "call 0 of Net", "call 1 of Net"]


def test_optimizers_that_step_in_threads_are_apart_from_the_process(tmp_path: Path) -> None:
    one, other = ({**STEP, "which": which} for which in (-1, -2))
    process, first, second = read_records(written(tmp_path, PROCESS, STEP, one, other, STEP, one))
    assert [moment.number for moment in process.moments] == [0, 3]
    assert [moment.number for moment in first.moments] == [1, 4]
    assert [moment.label for moment in second.moments] == ["step 0 (SGD)"]
    assert (process.recorded, process.label, first.label) == (5, "rank 0", "rank 0, a thread")
    assert records.processes([process, first, second]) == 1


def test_the_gpus_that_a_process_used_are_facts_of_its_machine(tmp_path: Path) -> None:
    torch = {
        "k": "torch",
        "torch": "2.13.0",
        "python": "3.11.2",
        "threads": 1,
        "cpu": "x",
        "deterministic": True,
    }
    gpus = {"k": "gpus", "GPU": "NVIDIA H100 (132 multiprocessors)", "driver": "", "cuDNN": "91900"}
    streams = read_records(written(tmp_path, PROCESS, torch, STEP, gpus))
    assert machine_of(streams)["GPU"] == "NVIDIA H100 (132 multiprocessors)"
    assert "driver" not in machine_of(streams), "a driver that is not known is none"
    launcher = replace(streams[0], torch={"torch": "2.13.0"})
    assert machine_of([launcher, *streams])["GPU"] == "NVIDIA H100 (132 multiprocessors)"


def test_a_last_line_that_was_cut_short_is_left_out(tmp_path: Path) -> None:
    path = written(tmp_path, PROCESS, STEP) / "1-2.jsonl"
    path.write_bytes(path.read_bytes() + b'{"k":"step","n":1')
    assert len(read_records(tmp_path)[0].moments) == 1


@pytest.mark.parametrize(
    "records",
    [
        (STEP,),
        ({**PROCESS, "format": 2},),
        (PROCESS, PROCESS),
        (PROCESS, {**STEP, "more": 1}),
        (PROCESS, {**STEP, "parts": [["loss", "no digest", ""]]}),
        (PROCESS, {**STEP, "parts": [["loss", "ab"]]}),
        (PROCESS, {**STEP, "loss": "AAAA"}),
        (PROCESS, {**STEP, "wall": float("inf")}),
        (PROCESS, {**STEP, "wall": 10**400}),
        (PROCESS, {**STEP, "spent": -1e12}),
        (PROCESS, {**STEP, "n": True}),
        (PROCESS, {**STEP, "optimizer": "x" * 1000}),
        (PROCESS, {"k": "unknown"}),
        (PROCESS, {"k": []}),
        (PROCESS, [1]),
        (PROCESS, {"k": "place", "n": 0, "at": ["a", "b", "c", "d"], "for": ["", 0, "", ""]}),
        (PROCESS, {"k": "place", "n": 0, "at": ["a", 1, "c", "d"], "for": ["a", 1]}),
    ],
)
def test_what_is_no_record_is_refused(records: tuple[Any, ...], tmp_path: Path) -> None:
    with pytest.raises(RepeatError, match=rf"cannot be read: 1-2\.jsonl: line {len(records)}: "):
        read_records(written(tmp_path, *records))


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("{}\n")
    (tmp_path / "1-2.jsonl").symlink_to(tmp_path / "secret")
    with pytest.raises(RepeatError, match=r"1-2\.jsonl: it is a link"):
        read_records(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(key=st.sampled_from(sorted(STEP.keys() - {"k"})), value=JSON, kind=st.sampled_from([STEP, CALL]))
def test_no_value_gives_another_error(
    key: str, value: Any, kind: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("records")
    written(folder, PROCESS, {**kind, key: value})
    with suppress(RepeatError):
        read_records(folder)


def test_a_run_has_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST_RECORDS", 3)
    written(tmp_path, PROCESS, CALL, CALL)
    assert len(read_records(tmp_path)[0].moments) == 2
    with pytest.raises(RepeatError, match="more than 3 records"):
        read_records(written(tmp_path, PROCESS, CALL, CALL, CALL))
    monkeypatch.setattr(records, "MOST_RECORDS", 10_000)
    monkeypatch.setattr(records, "MOST_SECONDS", -1.0)
    with pytest.raises(RepeatError, match="not read within"):
        read_records(written(tmp_path, PROCESS, *[CALL] * 2000))


def test_names_of_groups_take_no_quadratic_time(tmp_path: Path) -> None:
    groups = [{"k": "names", "group": f"g{n}", "names": []} for n in range(5000)]
    with pytest.raises(RepeatError, match="more than 4,096 groups"):
        read_records(written(tmp_path, PROCESS, *groups))


def test_no_more_files_are_listed_than_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST_FILES", 1)
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.jsonl").touch()
    with pytest.raises(RepeatError, match="in more than 1 processes, the most that can be compared"):
        read_records(tmp_path)


def test_every_gpu_that_a_program_sees_is_told() -> None:
    cards = [SimpleNamespace(name=name, multi_processor_count=132) for name in ("H100", "H200")]
    cuda = SimpleNamespace(device_count=lambda: 2, get_device_properties=cards.__getitem__)
    cudnn = SimpleNamespace(version=lambda: 91_900)
    torch = SimpleNamespace(cuda=cuda, backends=SimpleNamespace(cudnn=cudnn))
    found = digests.gpus(torch)
    assert found["GPU"] == "H100 (132 multiprocessors), H200 (132 multiprocessors)"
    assert found["cuDNN"] == "91900"
