"""Policy file: what evidence a team requires of an image. TOML, validated key by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from ...errors import EvidenceError
from ...host.home import open_regular
from ...request.model import Profile
from ...request.table import Table, refused_as
from ...request.toml_reader import MOST_TEXT, load_toml
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
    """Maximum age of the self-test, by its signer's clock."""
    builders: int = 0
    """How many others must have built the same bytes from the lock."""
    builder_keys: Sequence[Key] = ()
    """The builders' keys; each once, and none of ``keys``."""

    def narrowed(self, keys: Sequence[Key]) -> Policy:
        """Return the policy with these keys alone, which must be some of its own if it names any.

        Raises `EvidenceError`.
        """
        if not self.keys or not keys:
            return replace(self, keys=keys or self.keys)
        own = {key.keyid for key in self.keys}
        if {key.keyid for key in keys} - own:
            raise EvidenceError(
                "--key names a key that the policy's keys do not have",
                hint="leave --key out, or add the key to the policy",
            )
        return replace(self, keys=keys, builder_keys=[k for k in self.builder_keys if k.keyid not in own])

    def with_builders(self, builders: int, keys: Sequence[Key]) -> Policy:
        """Return the policy with at least so many builders, by keys where it names none itself.

        Raises `EvidenceError`.
        """
        if keys and self.builder_keys:
            raise EvidenceError(
                "--builder-key: the policy names the keys of builders itself",
                hint="leave --builder-key out, or add the key to the policy",
            )
        if not builders:
            if keys:
                raise EvidenceError("--builder-key has no effect without --builders")
            return self
        found = replace(self, builders=max(builders, self.builders), builder_keys=keys or self.builder_keys)
        if why := _too_few(found.builders, found.builder_keys, found.keys, "--builder-key"):
            raise EvidenceError(f"--builders {why}", hint=_EACH_ITS_OWN)
        return found


_EACH_ITS_OWN = "each builder has a key of its own, and is another than who signs the evidence"


def _too_few(builders: int, voters: Sequence[Key], keys: Sequence[Key], name: str) -> str:
    """Return why there cannot be so many builders; empty if there can."""
    different = len({key.keyid for key in voters} - {key.keyid for key in keys})
    plural = f"{different} different key{'' if different == 1 else 's'}"
    return f"is {builders}, and {name} has {plural} that sign no evidence" if builders > different else ""


def read_policy(path: Path) -> Policy:
    """Read a policy; paths of keys are relative to it. Raises `EvidenceError`."""
    try:
        with open_regular(path) as file:
            text = file.read(MOST_TEXT + 1).decode()
        table = load_toml(text)
    except OSError as error:
        raise EvidenceError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise EvidenceError(f"{path}: not valid TOML: {error}") from None
    if not table:
        raise EvidenceError(f"{path}: asks for nothing", hint=f"expected some of: {', '.join(_KEYS)}")
    with refused_as(EvidenceError, str(path)):
        return _policy(Table(table, known=_KEYS), path)


def _policy(table: Table, path: Path) -> Policy:
    keys, voters = _keys(table, "keys", path), _keys(table, "builder-keys", path)
    days = table.integer("max-age-days", 1, 36_500, None)
    builders = table.integer("builders", 1, 64, 0)
    if why := _too_few(builders, voters, keys, "builder-keys"):
        raise table.bad("builders", why, _EACH_ITS_OWN)
    if voters and not builders:
        raise table.bad("builder-keys", "has no effect without builders")
    checks = table.texts("checks", default=())
    if table.has("checks") and not checks:
        raise table.bad("checks", "is empty: expected names of checks")
    return Policy(
        keys=keys,
        checks=checks,
        gpu=table.text("gpu", str.strip, "a GPU's name as its driver has it", None),
        profile=table.choice("profile", get_args(Profile), None),
        max_age=None if days is None else timedelta(days=days),
        builders=builders,
        builder_keys=voters,
    )


def _keys(table: Table, name: str, path: Path) -> Sequence[Key]:
    texts = table.texts(name, default=())
    if table.has(name) and not texts:
        raise table.bad(name, "is empty: expected files of public keys")
    return [read_public_key(path.parent / text) for text in texts]
