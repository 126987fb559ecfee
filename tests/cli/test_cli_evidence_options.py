"""Options that name keys and signers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.evidence import write_key

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.evident"]


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("image LOCK --sign-key none.pem", 17, "none.pem: No such file"),
        ("image LOCK --sign-command true", 2, "--sign-command and --sign-public need each other"),
        ("image LOCK --sign-key locked.pem", 17, "is encrypted, and no terminal is there"),
        ("verify team/toy:1", 10, "no image"),
        ("verify none.example/x:1@sha256:00", 10, "is not a digest like sha256:"),
        ("verify toy.tar --policy none.toml", 17, "none.toml: No such file"),
        ("verify team/toy:1 --sign-key locked.pem", 17, "is encrypted"),
        ("verify team/toy:1 --evidence none", 17, "none: No such file"),
    ],
)
def test_bad_input_is_named(
    command: str, status: int, said: str, lock: Path, call: Call, folder: Path
) -> None:
    write_key(folder, "locked", passphrase="open sesame")
    found = call(*command.replace("LOCK", str(lock)).split())
    assert (found.status, found.out) == (status, ""), found.err
    assert said in found.err


def test_a_passphrase_comes_from_a_variable_or_a_file(
    runs: Any, lock: Path, call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = write_key(folder, "locked", "p256", passphrase="open sesame")
    monkeypatch.setenv("REPROBUILD_SIGN_PASSPHRASE", "wrong")
    said = call("image", str(lock), "--sign-key", str(locked))
    assert (said.status, "the passphrase is wrong" in said.err) == (17, True)
    monkeypatch.delenv("REPROBUILD_SIGN_PASSPHRASE")
    (folder / "secret").write_text("open sesame\n")
    monkeypatch.setenv("REPROBUILD_SIGN_PASSPHRASE_FILE", str(folder / "secret"))
    assert call("image", str(lock), "--tag", "team/toy:1", "--sign-key", str(locked)).status == 0
    assert call("verify", "team/toy:1", "--key", str(locked.with_suffix(".pub"))).status == 0
