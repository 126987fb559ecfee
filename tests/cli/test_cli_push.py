"""The command ``push``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.evidence import write_key

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.evident"]


def test_signed_evidence_goes_to_a_registry_and_is_verified_there_with_the_public_key(
    image: str, call: Call, key: Path, registry: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place, public = f"{registry}/team/toy:1", str(key.with_suffix(".pub"))
    assert call("push", "team/toy:1", place, "--sign-key", str(key)).status == 0
    monkeypatch.setenv("REPROBUILD_HOME", str(tmp_path / "another"))
    for name in (place, f"{registry}/team/toy@{image}"):
        said = call("verify", name, "--key", public, "--json")
        assert said.status == 0, said.err
        assert json.loads(said.out)["digest"] == image
        assert {*map(len, json.loads(said.out)["signed_by"].values())} == {1}
    other = write_key(tmp_path, "other").with_suffix(".pub")
    assert call("verify", place, "--key", str(other)).status == 17


def test_the_image_is_known_by_its_configuration_when_its_layers_are_compressed_in_another_way(
    image: str, call: Call, key: Path, registry: str
) -> None:
    place = f"{registry}/team/toy:gzip"
    said = call("push", "team/toy:1", place, "--compression", "gzip", "--sign-key", str(key))
    assert said.status == 0, said.err
    said = call("verify", place, "--key", str(key.with_suffix(".pub")), "--json")
    assert said.status == 0, said.err
    assert json.loads(said.out)["digest"] != image


def test_a_push_without_a_key_keeps_what_was_signed(
    runs: Any, lock: Path, call: Call, key: Path, registry: str
) -> None:
    assert call("image", str(lock), "--tag", "team/toy:1", "--sign-key", str(key)).status == 0
    assert call("selftest", "team/toy:1").status == 0
    assert call("push", "team/toy:1", f"{registry}/team/toy:1").status == 0
    said = call("verify", f"{registry}/team/toy:1", "--key", str(key.with_suffix(".pub")))
    assert said.status == 0, said.err
