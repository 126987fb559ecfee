"""The file in which a team says what evidence an image must have: TOML, read key by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import EvidenceError, RequestError
from ..host.home import open_regular
from ..request.toml_reader import MOST_TEXT, Table, load_toml
from .keys import read_public_key

if TYPE_CHECKING:
    from securesystemslib.signer import Key

_KEYS = ("keys", "builders", "builder-keys", "checks", "gpu", "max-age-days", "profile")


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """What evidence must be there. By default a passing self-test, a bill of materials and provenance."""

    keys: Sequence[Key] = ()
    """Each statement must be signed by one of them; with none, signatures are not asked for."""
    checks: Sequence[str] = ()
    """The checks of the self-test that must have passed, with their device where that is not the CPU."""
    gpu: str | None = None
    """The GPU on which it must have passed, as its driver calls it."""
    profile: str | None = None
    """The determinism profile of the lock."""
    max_age: timedelta | None = None
    """Of the self-test, by its signer's clock."""
    builders: int = 0
    """How many others must have built the same bytes from the lock."""
    builder_keys: Sequence[Key] = ()
    """Whose word counts for that; each key once."""


def read_policy(path: Path) -> Policy:
    """Read a policy; the files of keys that it names are beside it. Raises `EvidenceError`."""
    try:
        with open_regular(path) as file:
            text = file.read(MOST_TEXT + 1).decode()
        table = load_toml(text)
    except OSError as error:
        raise EvidenceError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise EvidenceError(f"{path}: not valid TOML: {error}") from None
    try:
        return _policy(table, path)
    except RequestError as error:
        raise EvidenceError(error.message, hint=error.hint) from None


def _policy(data: Mapping[str, Any], path: Path) -> Policy:
    table = Table(data, "", str(path), _KEYS)
    keys, voters = _keys(table, "keys", path), _keys(table, "builder-keys", path)
    days = table.integer("max-age-days", None, 1, 36_500)
    builders = table.integer("builders", 0, 1, 64)
    different = len({key.keyid for key in voters})
    if builders > different:
        raise EvidenceError(
            f"{table.where('builders')}: is {builders}, and builder-keys has {different} different keys",
            hint="each builder has a key of its own",
        )
    if voters and not builders:
        raise EvidenceError(f"{table.where('builder-keys')}: has no effect without builders")
    return Policy(
        keys=keys,
        checks=[check for _, check in table.texts("checks")],
        gpu=table.value("gpu", str, None),
        profile=table.value("profile", str, None),
        max_age=None if days is None else timedelta(days=days),
        builders=builders,
        builder_keys=voters,
    )


def _keys(table: Table, name: str, path: Path) -> Sequence[Key]:
    texts = [text for _, text in table.texts(name)]
    if table.has(name) and not texts:
        raise EvidenceError(f"{table.where(name)}: is empty: expected files of public keys")
    return [read_public_key(path.parent / text) for text in texts]
