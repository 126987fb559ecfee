"""Dropout that draws where nothing is trained, and the line that chose the model's mode."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reprobuild.in_image.twice.modes import DROPS, Modes
from reprobuild.twice import known_causes

PLACE = ("model.py", 12, "forward")


class Model:
    """What `Modes` watches of a module."""

    def __init__(self, *, training: bool = True) -> None:
        self.training = training

    def train(self, mode: bool = True) -> Model:
        self.training = mode
        return self

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.state = state


def test_the_recorder_s_words_for_dropout_are_known() -> None:
    assert (known_causes.DROPPED, known_causes.of_hint(DROPS)) == (DROPS, known_causes.DROPS)


def test_the_line_that_loads_a_model_in_training_mode_is_told_once() -> None:
    kind = type("Watched", (Model,), {})
    modes, root, inner = Modes(), kind(), SimpleNamespace(training=True)
    modes.watch(kind)
    root.load_state_dict({})  # here
    lines = Path(__file__).read_text().splitlines()
    here = next(number for number, line in enumerate(lines, 1) if line.endswith("  # here"))
    record = modes.hint("bernoulli_", [root, inner], PLACE)
    assert record is not None
    assert (record["what"], record["place"][:3], record["for"][1]) == (DROPS, list(PLACE), here)
    assert root.state == {}
    assert modes.hint("bernoulli_", [root, inner], PLACE) is None


@pytest.mark.parametrize(("operation", "training"), [("randn", True), ("bernoulli_", False)])
def test_what_is_no_dropout_or_off_is_not_told(operation: str, *, training: bool) -> None:
    assert Modes().hint(operation, [Model(training=training)], PLACE) is None
    assert Modes().hint(operation, [], PLACE) is None
