"""Dropout that draws where nothing is trained, and the line that chose the model's mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reprobuild.in_image.twice.modes import DROPS, STAYS, Modes
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


class Dropout(Model):
    """One that is in a model."""


def test_the_recorder_s_words_for_dropout_are_known() -> None:
    assert (known_causes.DROPPED, known_causes.of_hint(DROPS)) == (DROPS, known_causes.DROPS)
    assert (known_causes.STAYS_ON, known_causes.of_hint(STAYS)) == (STAYS, known_causes.STAYS)


def test_the_line_that_loads_a_model_in_training_mode_is_told_once() -> None:
    kind = type("Watched", (Model,), {})
    modes, root, inner = Modes(), kind(), Dropout()
    modes.watch(kind)
    root.load_state_dict({})  # here
    lines = Path(__file__).read_text().splitlines()
    here = next(number for number, line in enumerate(lines, 1) if line.endswith("  # here"))
    record = modes.hint("bernoulli_", [root, inner], PLACE)
    assert record is not None
    assert (record["what"], record["place"][:3], record["for"][1]) == (DROPS, list(PLACE), here)
    assert root.state == {}
    assert modes.hint("bernoulli_", [root, inner], PLACE) is None


@pytest.mark.parametrize(
    ("operation", "layer", "training", "told"),
    [
        ("dropout", "Dropout", True, DROPS),
        ("bernoulli_", "Dropout", True, DROPS),
        ("bernoulli_", "Dropout", False, STAYS),
        ("native_dropout", "Attention", False, STAYS),  # by a function, with the default of its mode
        ("randn", "Dropout", True, None),
        ("bernoulli_", "Boltzmann", True, None),  # which is meant
    ],
)
def test_dropout_is_told_by_the_mode_of_the_whole_model(
    operation: str, layer: str, training: bool, told: str | None
) -> None:
    inner = type(layer, (Model,), {})()
    found = Modes().hint(operation, [Model(training=training), inner], PLACE)
    assert (None if found is None else found["what"]) == told
    assert Modes().hint(operation, [], PLACE) is None


def test_what_a_checkpoint_computes_again_is_trained() -> None:
    names = {"__name__": "torch.utils.checkpoint", "hint": Modes().hint}
    exec("def forward(*given):\n    return hint(*given)", names)
    forward: Any = names["forward"]
    assert forward("dropout", [Model(), Dropout()], PLACE) is None
    assert Modes().hint("dropout", [Model(), Dropout()], PLACE) is not None
