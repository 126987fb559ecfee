"""Whether a row depends on its batch: models with the right verdict, under the real recorder."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from torch_python import need_torch, torch_python

from reprobuild.errors import RepeatError
from reprobuild.in_image.twice import batch_calls
from reprobuild.twice import batch
from reprobuild.twice.batch import TriedModel, batch_dict, batch_line, batch_rows, tried_models, worst
from reprobuild.twice.recorded_run import HowToRun, ProgramRun, one_run
from reprobuild.twice.records import Stream
from support.schemas import schema_of
from support.twice import PROGRAMS, recorded, scratch_below

PROGRAM = PROGRAMS / "batch.py"


def tried(name: str, folder: Path, dim: str = "auto") -> tuple[list[TriedModel], ProgramRun]:
    need_torch()
    run = recorded(torch_python(), [str(PROGRAM), name], warm=True)
    done = one_run(run, HowToRun(batch=dim), scratch_below(folder))
    assert done.status == 0, done.last
    return tried_models(done.streams), done


DEPENDS = {
    "sizes": ("size", "addmm"),
    "batch_norm": ("content", "native_batch_norm"),
    "batch_norm_alone": ("content", "native_batch_norm"),
    "attention_over_batch": ("content", "mm"),
    "shared_scale": ("content", "max"),
    "fast_path": ("content", "_transformer_encoder_layer_fwd"),
    "dropout": ("unrepeatable", "bernoulli_"),
    "state": ("unrepeatable", "mul"),
}


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("name", DEPENDS)
def test_the_first_operation_that_makes_a_row_depend_on_its_batch_is_named(name: str, tmp_path: Path) -> None:
    [model], _ = tried(name, tmp_path)
    text = PROGRAM.read_text().splitlines()
    [line] = [number for number, each in enumerate(text, 1) if each.endswith(f"# first: {name}")]
    assert model.operation is not None, batch_rows([model])
    assert (model.verdict, model.operation.op, model.operation.place.line) == (*DEPENDS[name], line)
    if model.verdict == "size":
        assert model.operation.module == "0"
        assert model.operation.ulp > 0
        assert 0 < model.operation.share < 1e-5
        assert not any(way.differ for way in model.ways if way.way in ("among others", "permuted"))


INDEPENDENT = (
    "rows",
    "batch_norm_eval",
    "masked",
    "left_padded",
    "places",
    "hidden_state",
    "mask_of_equal_length",
)


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("name", INDEPENDENT)
def test_rows_that_do_not_depend_on_their_batch_are_not_accused(name: str, tmp_path: Path) -> None:
    [model], _ = tried(name, tmp_path)
    assert model.verdict == "independent", batch_rows([model])
    ways = {way.way for way in model.ways if way.equal}
    assert {"2 rows", "64 rows", "permuted", "among others", "padded with rows of zeros"} <= ways
    assert ("padded sequences" in ways) == (name in ("masked", "left_padded"))


UNKNOWN = {
    "sequence_first": "--batch-dim says which of them is the batch",
    "memory": "memory has the batch's length",
    "one_row": "its batch has a single row",
    "equal_rows": "all rows of its batch are the same",
    "packed": "argument input is a PackedSequence",
    "uninitialised": "its buffers or a generator cannot be kept: ValueError",
    "refusing": "its arguments cannot be kept: ValueError: no one walks through this",
}


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("name", UNKNOWN)
def test_rows_that_are_not_known_are_named(name: str, tmp_path: Path) -> None:
    [model], _ = tried(name, tmp_path)
    assert model.verdict == "unknown", batch_rows([model])
    assert UNKNOWN[name] in model.reason


@pytest.mark.slow
@pytest.mark.torch
def test_what_a_trial_leaves_out_or_leaves_behind(tmp_path: Path) -> None:
    [along], _ = tried("sequence_first", tmp_path, "1")
    assert (along.verdict, along.rows) == ("independent", 4)
    [leaking], _ = tried("leaking", tmp_path)
    assert leaking.verdict == "size"
    assert batch_line([leaking]).startswith("a row depends on padding (Masked: padded sequences, up to ")
    [fixed], _ = tried("fixed", tmp_path)
    assert fixed.verdict == "independent"
    assert "not tried: 64 rows: ValueError: only 1, 2 or 4 rows" in fixed.notes
    assert "as far as it was tried" in batch_line([fixed])
    [warm], _ = tried("warm_up", tmp_path)
    assert warm.rows == 6
    found, nothing = tried("nothing", tmp_path)
    assert found == []
    assert batch_line(found).startswith("no model was called")
    schema_of("twice").validate({**json.loads(json.dumps(batch_dict(found))), "status": nothing.status})
    [random], alone = tried("goes_on", tmp_path)
    assert random.verdict == "unrepeatable"
    run = recorded(torch_python(), [str(PROGRAM), "goes_on"], warm=True)
    assert one_run(run, HowToRun(), scratch_below(tmp_path)).stdout == alone.stdout


WAY = {"way": "2 rows", "equal": 0, "differ": 3, "ulp": 12, "share": 2e-7}
PLACE = ["net.py", 7, "forward", "return self.head(x)"]
RECORD: dict[str, Any] = {
    "k": "batch",
    "n": 0,
    "model": "Net",
    "called": ["run.py", 3, "<module>", "net(x)"],
    "verdict": "size",
    "rows": 8,
    "arguments": ["x: dimension 0"],
    "ways": [
        WAY,
        {**WAY, "way": "64 rows", "ulp": 3},
        {**WAY, "way": "permuted", "equal": 8, "differ": 0},
    ],
    "operation": {
        "op": "addmm", "place": PLACE, "module": "head", "ulp": 9, "share": 1e-7, "path": False,
    },
    "notes": ["padding of sequences not tried: no argument is known as its mask"],
    "reason": "",
}  # fmt: skip


def stream(*records: dict[str, Any]) -> Stream:
    return Stream(
        rank="", worker="", process="MainProcess", argv=(), values=Path("none"), batches=list(records)
    )


def test_the_report_says_what_was_tried_and_which_operation_is_first() -> None:
    found = tried_models([stream(RECORD)])
    assert batch_line(found) == (
        "a row depends on how many rows are in its batch (Net: in batches of 2 sizes from 2 to 64"
        " rows, up to 12 ULP, 2.0e-07 of the largest value)"
    )
    lines = batch_rows(found)
    assert ("model", "Net, called at run.py:3: `net(x)`") in lines
    first = "addmm in `head` at net.py:7: `return self.head(x)` (up to 9 ULP, 1.0e-07 of the largest value)"
    assert ("first operation", first) in lines
    assert ("equal", "permuted") in lines
    schema_of("twice").validate({**json.loads(json.dumps(batch_dict(found))), "status": 0})


def test_the_worst_verdict_counts_and_a_model_that_was_tried_again_counts_once() -> None:
    once = {**RECORD, "verdict": "independent", "operation": None}
    found = tried_models([stream(once, RECORD, {**once, "n": 1}), stream({**RECORD, "verdict": "content"})])
    assert [model.verdict for model in found] == ["size", "independent", "content"]
    assert worst(found) is found[2]
    for verdict in ("independent", "content", "unrepeatable", "unknown"):
        assert "Net" in batch_line(tried_models([stream({**RECORD, "verdict": verdict})]))


def test_models_beyond_the_most_of_a_process_are_not_passed_over() -> None:
    assert batch.MOST_MODELS == batch_calls.MOST_MODELS
    once = {**RECORD, "verdict": "independent", "operation": None}
    seven, eight = (tried_models([stream(*({**once, "n": n} for n in range(count)))]) for count in (7, 8))
    assert "as far as it was tried" not in batch_line(seven)
    assert "as far as it was tried" in batch_line(eight)
    assert eight[-1].notes[-1] == "not tried: models that this process called after these 8, if there are any"


@pytest.mark.parametrize("note", ["not tried: 64 rows: no memory", "not compared: loss (Loss)"])
def test_a_limit_of_any_model_is_in_the_line_for_all(note: str) -> None:
    once = {**RECORD, "verdict": "independent", "operation": None}
    assert "as far as it was tried" not in batch_line(tried_models([stream(once)]))
    found = tried_models([stream(once, {**once, "n": 1, "notes": [note]})])
    assert batch_line(found).startswith("a row does not depend on its batch as far as it was tried")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("verdict", "fine"),
        ("rows", "8"),
        ("called", ["run.py", "3", "", ""]),
        ("ways", [{**WAY, "ulp": None}]),
        ("operation", {"op": "addmm"}),
        ("notes", [1]),
        ("reason", None),
    ],
)
def test_a_record_that_is_not_as_it_should_be_is_refused(key: str, value: object) -> None:
    record = copy.deepcopy(RECORD)
    record[key] = value
    with pytest.raises(RepeatError, match=key):
        tried_models([stream(record)])
