"""Options that name keys and signers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reprobuild.cli.evidence_options import signer_of
from reprobuild.errors import EvidenceError
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from support.evidence import write_key

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.evident"]


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("image LOCK --sign-key none.pem", 17, "none.pem: No such file"),
        ("image LOCK --sign-command true", 2, "--sign-command and --sign-public need each other"),
        (
            "image LOCK --sign-command 'sh --sign-public locked.pub",
            2,
            "--sign-command: no closing quotation: 'sh",
        ),
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


def _host() -> Host:
    return Host(Home.from_environment(), Console(quiet=True))


@pytest.mark.parametrize(
    "content",
    ["open sesame", "open sesame\n", "open sesame\r\n", "open sesame\n\n", "\ufeffopen sesame\r\n"],
    ids=["bare", "line", "CRLF", "empty line", "BOM"],
)
def test_a_file_of_a_passphrase_may_end_as_editors_end_it(
    content: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = write_key(folder, "locked", "p256", passphrase="open sesame")
    (folder / "secret").write_text(content, newline="")
    monkeypatch.setenv("REPROBUILD_SIGN_PASSPHRASE_FILE", str(folder / "secret"))
    assert signer_of(locked, None, None, _host()) is not None


def test_a_passphrase_may_come_from_a_pipe(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a shell's ``<(pass show team)`` names it."""
    locked = write_key(folder, "locked", "p256", passphrase="open sesame")
    read, write = os.pipe()
    os.write(write, b"open sesame\n")
    os.close(write)
    monkeypatch.setenv("REPROBUILD_SIGN_PASSPHRASE_FILE", f"/dev/fd/{read}")
    try:
        assert signer_of(locked, None, None, _host()) is not None
    finally:
        os.close(read)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("", "wrong", "the passphrase is wrong (it was taken from REPROBUILD_SIGN_PASSPHRASE)"),
        ("", "", "(it was taken from REPROBUILD_SIGN_PASSPHRASE, which is empty)"),
        ("_FILE", "two", "(it was taken from two: the whole file, but for the end of its last line)"),
        ("_FILE", "/dev/zero", "/dev/zero: not a passphrase: it has more than 4,096 bytes"),
        ("_FILE", "bytes", "bytes: not UTF-8 text"),
        ("_FILE", "none", "none: No such file or directory"),
    ],
)
def test_a_passphrase_that_does_not_fit_is_named_with_its_origin(
    variable: str, value: str, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = write_key(folder, "locked", "p256", passphrase="open sesame")
    (folder / "two").write_text("open sesame\nand another\n")
    (folder / "bytes").write_bytes(b"\xff\xfe")
    monkeypatch.setenv(f"REPROBUILD_SIGN_PASSPHRASE{variable}", value)
    with pytest.raises(EvidenceError) as refused:
        signer_of(locked, None, None, _host())
    assert said in f"{refused.value.message} ({refused.value.hint})"
