"""A recording of a run: written, read, and compared with runs of the same and of another kind of machine."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reprobuild.errors import RepeatError
from reprobuild.twice.baseline import against, read_baseline, write_baseline
from reprobuild.twice.derived_items import Item
from reprobuild.twice.evidence import Evidence
from reprobuild.twice.ignored import Ignored
from reprobuild.twice.recorded_run import ProgramRun
from reprobuild.twice.records import Moment, MomentPart, Stream
from reprobuild.twice.written import WrittenFile


def moment(number: int, loss: float) -> Moment:
    digest = hashlib.sha256(loss.hex().encode()).hexdigest()[:32]
    parts = (MomentPart("loss", digest, b""), MomentPart("random python", "ab" * 16, b""))
    return Moment(
        kind="step",
        label=f"step {number} (SGD)",
        number=number,
        parts=parts,
        names={},
        losses=(loss,),
        sample=(),
        wall=1,
        spent=0,
    )


def run(*losses: float, torch: str = "2.13.0", stdout: tuple[str, ...] = ("done",)) -> ProgramRun:
    stream = Stream(rank="", worker="", process="MainProcess", argv=("train.py", "x"), values=Path())
    stream.torch = {"torch": torch, "cpu": "x86_64 AVX512"}
    stream.moments = [moment(number, loss) for number, loss in enumerate(losses)]
    return ProgramRun(status=0, stdout=stdout, stderr=(), files=(), streams=[stream], seconds=1.0, last="")


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / "golden.repeat"
    write_baseline(path, run(1.0, 0.5), Ignored())
    return path


def test_the_same_run_gives_the_same_bytes_and_agrees(kept: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    write_baseline(again, run(1.0, 0.5), Ignored())
    assert again.read_bytes() == kept.read_bytes()
    found = against(read_baseline(kept), run(1.0, 0.5))
    assert (found.holds, found.kinds, found.steps) == (True, (), 2)


def test_on_one_kind_every_bit_has_to_agree(kept: Path) -> None:
    found = against(read_baseline(kept), run(1.0, 0.5000001))
    assert not found.holds
    assert found.parting is not None
    assert (found.parting.label, found.parting.part) == ("step 1 (SGD)", "loss")


def test_on_another_kind_distances_are_told(kept: Path) -> None:
    found = against(read_baseline(kept), run(1.0, 0.5 + 2**-24, torch="2.14.0"))
    assert found.holds
    assert found.kinds == ("torch 2.13.0, here 2.14.0",)
    assert [(row.label, row.ulp) for row in found.distances] == [("step 1 (SGD)", 1)]
    assert not against(read_baseline(kept), run(1.0, torch="2.14.0")).holds


def test_another_gpu_is_another_kind(tmp_path: Path) -> None:
    """What a program computed on an H100 need not have the bits of an A100; only where it used one."""

    def on(gpu: str, *losses: float, driver: str = "580.1") -> ProgramRun:
        found = run(*losses)
        (stream,) = found.streams
        stream.torch = {**stream.torch, **({"GPU": gpu, "driver": driver, "cuDNN": "91900"} if gpu else {})}
        return found

    write_baseline(tmp_path / "golden.repeat", on("H100", 1.0, 0.5), Ignored())
    kept = read_baseline(tmp_path / "golden.repeat")
    assert against(kept, on("H100", 1.0, 0.5)).holds
    assert not against(kept, on("H100", 1.0, 0.51)).holds
    found = against(kept, on("A100", 1.0, 0.5 + 2**-24))
    assert found.kinds == ("GPU H100, here A100",)
    assert found.holds
    # As in WSL: it may be another one each time.
    write_baseline(tmp_path / "wsl.repeat", on("H100", 1.0, 0.5, driver=""), Ignored())
    found = against(read_baseline(tmp_path / "wsl.repeat"), on("H100", 1.0, 0.5, driver=""))
    assert found.kinds == ("driver unknown",)


def test_another_output_is_told(kept: Path) -> None:
    found = against(read_baseline(kept), run(1.0, 0.5, stdout=("other",)))
    assert (found.holds, found.output) == (False, ("standard output",))


@pytest.mark.parametrize(("loss", "torch"), [(0.5, "2.13.0"), (0.51, "2.14.0")], ids=["one kind", "another"])
def test_another_exit_status_never_agrees(kept: Path, loss: float, torch: str) -> None:
    ended = run(1.0, loss, torch=torch)
    assert against(read_baseline(kept), ended).holds
    found = against(read_baseline(kept), replace(ended, status=1))
    assert (found.holds, found.output) == (False, ("exit status",))


@pytest.mark.parametrize(
    "content",
    [b"", b"no", zlib.compress(b"{}"), zlib.compress(b"[" * 100_000), zlib.compress(b'{"format":4}')],
)
def test_what_is_no_recording_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(RepeatError, match="not a recording of a run"):
        read_baseline(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RepeatError, match="No such file"):
        read_baseline(tmp_path / "none")


def test_a_folder_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(RepeatError, match="directory"):
        read_baseline(tmp_path)


def test_streams_of_another_program_do_not_agree(kept: Path) -> None:
    other = run(1.0, 0.5)
    stream = replace(other.streams[0], argv=("other.py",))
    assert not against(read_baseline(kept), replace(other, streams=[stream])).holds


NOON = 1795694400.0
run_of = run


def test_files_agree_by_what_is_compared_of_them(tmp_path: Path) -> None:
    def wrote(*lines: str) -> WrittenFile:
        digest = hashlib.sha256(repr(lines).encode()).hexdigest()
        return WrittenFile(path="/code/log", size=9, digest=digest, lines=lines, tensors={})

    def run(loss: float) -> ProgramRun:
        return replace(run_of(loss), evidence=Evidence(began=NOON, ended=NOON + 300))

    first = replace(run(1.0), files=[wrote("12:01"), wrote("12:02")])
    write_baseline(tmp_path / "golden.repeat", first, Ignored())
    kept = read_baseline(tmp_path / "golden.repeat")
    assert against(kept, replace(run(1.0), files=[wrote("12:03"), wrote("12:04")])).holds
    assert against(kept, replace(run(1.0), files=[wrote("12:03")])).output == ("/code/log",)
    assert against(kept, replace(run(1.0), files=[wrote("12:03", "x"), wrote("12:04")])).output == (
        "/code/log",
    )


def test_of_several_processes_the_order_of_lines_does_not_count(tmp_path: Path) -> None:
    def two(*lines: str) -> ProgramRun:
        one = run(1.0, stdout=lines)
        return replace(one, streams=[replace(one.streams[0], rank=str(rank)) for rank in (0, 1)])

    write_baseline(tmp_path / "golden.repeat", two("a", "b"), Ignored())
    kept = read_baseline(tmp_path / "golden.repeat")
    assert against(kept, two("b", "a")).holds
    assert not against(kept, two("b", "b")).holds


def test_times_are_told_from_results_and_what_is_ignored_is_kept(tmp_path: Path) -> None:
    def timed(took: str, loss: str) -> ProgramRun:
        item = Item(("text", "train.py", 3, 0), took, 0, 0)
        one = run(1.0, stdout=(f"took {took} s, loss {loss}",))
        return replace(one, evidence=Evidence(items=[item], names={"uuids": ("ab" * 16,)}))

    write_baseline(tmp_path / "golden.repeat", timed("0.25", "0.5"), Ignored(("x",), ("*.log",)))
    kept = read_baseline(tmp_path / "golden.repeat")
    assert kept.ignored == Ignored(("x",), ("*.log",))
    assert against(kept, timed("0.31", "0.5")).holds
    assert against(kept, timed("0.31", "0.6")).output == ("standard output",)


def changed(path: Path, change: Callable[[Any], object]) -> Path:
    table = json.loads(zlib.decompress(path.read_bytes()))
    change(table)
    path.write_bytes(zlib.compress(json.dumps(table).encode()))
    return path


@pytest.mark.parametrize(
    "evidence",
    [
        {"zones": [10**12]},
        {"times": [1e300, 1e308]},
        {"times": [0, float("nan")]},
        {"memory": [[0, 10**400]]},
        {"sites": [["value", "f", 1, 2]], "items": [[0, 1.0, 10**300, 0, 0]]},
        {"sites": [["value", "f", 1, 2]], "items": [[0, 1.0, -5, 0, 0]]},
    ],
)
def test_evidence_that_cannot_be_is_refused(kept: Path, evidence: dict[str, Any]) -> None:
    changed(kept, lambda table: table["evidence"].update(evidence))
    with pytest.raises(RepeatError, match="is not a recording of a run"):
        read_baseline(kept)


def test_a_recording_does_not_take_all_memory(kept: Path) -> None:
    kept.write_bytes(zlib.compress(b'{"format":4,"x":[' + b"[]," * 20_000_000 + b"[]]}"))
    with pytest.raises(RepeatError, match="is not a recording of a run"):
        read_baseline(kept)
