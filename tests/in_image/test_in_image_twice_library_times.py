"""Times that libraries measure in their own code, as they tell them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reprobuild.in_image.twice import drawn_names, library_times, measured


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    """Begin with nothing kept, and leave nothing."""
    before = dict(measured.sites), drawn_names.table()
    measured.sites.clear()
    drawn_names.forget()
    yield
    measured.sites.clear()
    measured.sites.update(before[0])
    drawn_names.forget()
    for kind, names in before[1].items():
        for name in names:
            drawn_names.add(kind, name)


def kept() -> list[tuple[str, str, Any]]:
    return [(each.kind, each.file, value) for each in measured.sites.values() for value in each.first]


class Stream:
    """Takes what is written."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


class Library:
    """Stands for catboost.core."""

    def __init__(self) -> None:
        self.streams: list[Any] = []
        self.CatBoost: Any = type("CatBoost", (Model,), {})

    def _set_logger(self, out: Any, error: Any) -> None:
        self.streams[:] = [out, error]


class Model:
    """A model whose training writes what CatBoost's does."""

    def get_params(self) -> dict[str, str]:
        return {"train_dir": "here"}

    def get_metadata(self) -> dict[str, str]:
        return {"model_guid": "d7ef8e00-65789f45-cfe65f5a-f6913379"}

    def _train(self, iterations: list[dict[str, Any]]) -> str:
        Path("here/tmp").mkdir(parents=True)
        Path("here/tmp/cat_feature_index.705f119e-ccc8416-59fb5bfa-75466bb5.tmp").touch()
        Path("here/time_left.tsv").write_text("iter\tPassed\tRemaining\n0\t48\t195\n")
        Path("here/catboost_training.json").write_text(json.dumps({"iterations": iterations}))
        return "trained"


def test_times_in_the_lines_of_catboost() -> None:
    module: Any = Library()
    library_times._catboost(module)
    out = Stream()
    module._set_logger(out, out)
    first = module.streams[0]
    module._set_logger(out, out)
    assert module.streams[0] is first  # it is kept: the library has its address, and no reference
    line = "0:\tlearn: 0.6030\tbest: 0.6030 (0)\ttotal: 48.8ms\tremaining: 1m 23s\n"
    module.streams[0].write(line)
    assert out.text == line
    assert kept() == [
        ("text", "catboost", "48.8"), ("text", "catboost", "1"), ("text", "catboost", "23"),
        ("value", "catboost", pytest.approx(0.0488)), ("value", "catboost", 83.0),
    ]  # fmt: skip


def test_times_in_the_files_of_catboost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    library = Library()
    library_times._catboost(library)
    given = [{"learn": [0.6030295], "iteration": 0, "passed_time": 0.0488, "remaining_time": 0.195}]
    assert library.CatBoost()._train(given) == "trained"
    assert kept() == [
        ("text", "time_left.tsv 0", "48"), ("text", "time_left.tsv 1", "195"),
        ("value", "passed_time", 0.0488), ("value", "remaining_time", 0.195),
    ]  # fmt: skip
    assert drawn_names.table() == {
        "drawn names": ["d7ef8e00-65789f45-cfe65f5a-f6913379", "705f119e-ccc8416-59fb5bfa-75466bb5"]
    }


@pytest.mark.parametrize("iterations", [[{"passed_time": "soon"}], [{}], ["none"], 5])
def test_files_of_another_form_say_nothing(
    iterations: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    library = Library()
    library_times._catboost(library)
    assert library.CatBoost()._train(iterations) == "trained"
    assert [kind for kind, *_ in kept()] == ["text", "text"]


def test_the_time_that_lightgbm_tells(capsys: pytest.CaptureFixture[str]) -> None:
    module = SimpleNamespace(_log_native=print)
    library_times._lightgbm(module)
    told = "Auto-choosing row-wise multi-threading, the overhead of testing was 0.000123 seconds."
    module._log_native(told)
    assert kept() == [("text", "lightgbm", "0.000123")]
    assert capsys.readouterr().out == f"{told}\n"
