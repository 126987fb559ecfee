"""The schemas of docs/schemas/, one for each command that has ``--json``; `hold_to_schema` applies them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import ValidationError

from reprobuild.cli import cli
from support.schemas import FOLDER, hold_to_schema, schema_of


def test_every_command_with_json_has_its_schema() -> None:
    with_json = {
        name
        for name, command in cli.commands.items()
        if any("--json" in each.opts for each in command.params)
    }
    assert {path.stem for path in FOLDER.iterdir()} == {*with_json, "error"}
    for name in with_json:
        schema_of(name)


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.iterdir()))
def test_a_schema_refuses_a_key_that_it_does_not_name(name: str) -> None:
    def tables(value: object) -> Iterator[dict[str, Any]]:
        if isinstance(value, dict):
            yield from [value] if "properties" in value else []
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from tables(item)

    found = list(tables(json.loads((FOLDER / f"{name}.json").read_text())))
    assert found
    assert all(each["additionalProperties"] is False and "required" in each for each in found)


@pytest.mark.parametrize(
    ("command", "out"),
    [
        ("clean", '{"freed": 1, "unpacked": 0}'),
        ("clean", '{"freed": 1, "unpacked": 0, "home": "/home", "more": 1}'),
        ("clean", '{"freed": "1", "unpacked": 0, "home": "/home"}'),
        ("images", '[{"names": []}]'),
        ("image", '{"error": {"kind": "LockError"}}'),
    ],
)
def test_another_result_is_refused(command: str, out: str) -> None:
    with pytest.raises(ValidationError):
        hold_to_schema([command, "--json"], out)
