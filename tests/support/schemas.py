"""The JSON of the commands, against the schemas of docs/schemas/."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path

from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator
from referencing import Registry, Resource

FOLDER = Path(__file__).resolve().parents[2] / "docs/schemas"


@functools.cache
def schema_of(name: str) -> Validator:
    """The validator of one of the schemas. These refer to one another by file name."""
    found = {path.name: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
    registry = Registry().with_resources(
        (file, Resource.from_contents(content)) for file, content in found.items()
    )
    Draft202012Validator.check_schema(found[f"{name}.json"])
    return Draft202012Validator(found[f"{name}.json"], registry=registry)


def hold_to_schema(argv: Sequence[str], out: str) -> None:
    """Hold what a command wrote for ``--json`` to its schema, or to that of an error."""
    own = list(argv[: argv.index("--")] if "--" in argv else argv)
    command = next((each for each in own if not each.startswith("-")), "")
    if "--json" not in own or command == "run" or not out:
        return
    value = json.loads(out)
    failed = isinstance(value, dict) and value.keys() == {"error"}
    schema_of("error" if failed else command).validate(value)
