"""Keys of every kind, and commands that sign."""

from __future__ import annotations

import base64
import os
import signal
from functools import partial
from pathlib import Path

import pytest

from reprobuild.errors import EvidenceError
from reprobuild.verify.evidence import keys
from reprobuild.verify.evidence.keys import CommandSigner, read_private_key, read_public_key
from reprobuild.verify.evidence.signatures import read_document, sign
from support.evidence import texts, write_key

STATEMENT = texts()["provenance"]


def test_a_passphrase_is_asked_for_only_where_one_is_needed(tmp_path: Path) -> None:
    asked: list[str] = []

    def ask() -> str:
        asked.append("once")
        return "open sesame"

    read_private_key(write_key(tmp_path, "plain"), ask)
    assert asked == []
    locked = write_key(tmp_path, "locked", "p256", passphrase="open sesame")
    assert sign(STATEMENT, read_private_key(locked, ask)) != STATEMENT
    assert asked == ["once"]
    for wrong in ("", *(f"open {number}" for number in range(1000))):  # by chance, 4 of these look right
        with pytest.raises(EvidenceError, match=r"locked.pem: the passphrase is wrong"):
            read_private_key(locked, partial(str, wrong))


@pytest.mark.parametrize("kind", ["rsa", "p384"])
def test_other_kinds_of_keys_are_refused(kind: str, tmp_path: Path) -> None:
    key = write_key(tmp_path, "key", kind)
    for read in (lambda: read_private_key(key, str), lambda: read_public_key(key.with_suffix(".pub"))):
        with pytest.raises(EvidenceError, match="expected an Ed25519 or ECDSA P-256 key as PEM"):
            read()


def test_a_file_that_is_no_key_is_refused_by_name(tmp_path: Path) -> None:
    key = write_key(tmp_path, "key")
    with pytest.raises(EvidenceError, match="a private key: expected a public one") as error:
        read_public_key(key)
    assert "openssl pkey" in error.value.hint
    with pytest.raises(EvidenceError, match="not a valid private key"):
        read_private_key(key.with_suffix(".pub"), str)
    for name, content in {"empty": b"", "text": b"hello", "large": b"x" * 100_000}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(EvidenceError, match=name):
            read_public_key(tmp_path / name)
    for path in (tmp_path / "none", tmp_path, Path("/dev/zero")):
        with pytest.raises(EvidenceError, match=str(path)):
            read_public_key(path)


def test_a_command_signs(tmp_path: Path) -> None:
    key = write_key(tmp_path, "key", "p256")
    public = read_public_key(key.with_suffix(".pub"))
    command = ["openssl", "dgst", "-sha256", "-sign", str(key)]
    document = sign(STATEMENT, CommandSigner(command, public))
    assert read_document(document, [public]).signers == {public.keyid}
    for lie, reason in (
        (["true"], "its output is not a signature by the given public key"),
        (
            ["openssl", "dgst", "-sha256", "-sign", str(write_key(tmp_path, "other", "p256"))],
            "is not a signature",
        ),
        (["sh", "-c", "echo no token >&2; exit 3"], "ended with 3: no token"),
    ):
        with pytest.raises(EvidenceError, match=reason):
            sign(STATEMENT, CommandSigner(lie, public))


def test_a_command_that_never_ends_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_COMMAND_SECONDS", 0.3)
    public = read_public_key(write_key(tmp_path, "key").with_suffix(".pub"))
    with pytest.raises(EvidenceError, match=r"sleep: gave no signature within 0\.3 seconds"):
        sign(STATEMENT, CommandSigner(["sleep", "60"], public))


@pytest.mark.parametrize("kept_open", [">&1", "2>&1"], ids=["output", "error"])
def test_an_agent_that_a_command_leaves_running_is_not_waited_for(
    kept_open: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands of tokens start agents, which hold their output open."""
    monkeypatch.setattr(keys, "_COMMAND_SECONDS", 20.0)
    key = write_key(tmp_path, "key", "p256")
    public, agent = read_public_key(key.with_suffix(".pub")), tmp_path / "agent"
    script = f"sleep 100 {kept_open} & echo $! > {agent}; exec openssl dgst -sha256 -sign {key}"
    try:
        document = sign(STATEMENT, CommandSigner(["sh", "-c", script], public))
        assert Path(f"/proc/{agent.read_text().strip()}").exists()
    finally:
        os.kill(int(agent.read_text()), signal.SIGKILL)
    assert read_document(document, [public]).signers == {public.keyid}


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("head -c 8000000 /dev/zero >&2; exit 1", "stopped: it wrote more than 1048576 bytes"),
        ("head -c 8000000 /dev/zero", "stopped: it wrote more than 1048576 bytes"),
        ("head -c 900000 /dev/zero >&2; echo no token >&2; exit 1", "no token"),
        ("kill -9 $$", r"ended with -9: it was killed \(SIGKILL\)"),
        ("exit 4", "ended with 4: it said nothing"),
    ],
)
def test_what_a_failed_command_says_is_short(script: str, reason: str, tmp_path: Path) -> None:
    public = read_public_key(write_key(tmp_path, "key").with_suffix(".pub"))
    with pytest.raises(EvidenceError, match=reason) as refused:
        sign(STATEMENT, CommandSigner(["sh", "-c", script], public))
    assert len(refused.value.message) < 10_000


def test_a_file_of_two_keys_is_refused(tmp_path: Path) -> None:
    """The first alone would count, and nobody would say so."""
    one, two = (write_key(tmp_path, name).with_suffix(".pub") for name in ("one", "two"))
    one.write_bytes(one.read_bytes() + two.read_bytes())
    with pytest.raises(EvidenceError, match="has 2 public keys: expected one in each file"):
        read_public_key(one)


@pytest.mark.parametrize(
    "point",
    [
        "01" + 31 * "00",
        "00" * 31 + "80",
        "ec" + 30 * "ff" + "7f",
        "ee" + 31 * "ff",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    ],
)
def test_a_key_for_which_anybody_can_sign_is_refused(point: str, tmp_path: Path) -> None:
    prefix = bytes.fromhex("302a300506032b6570032100")  # of an Ed25519 key in DER
    text = base64.b64encode(prefix + bytes.fromhex(point)).decode()
    path = tmp_path / "weak.pub"
    path.write_text(f"-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
    with pytest.raises(EvidenceError, match=r"weak\.pub: not a safe key: anybody can sign for it"):
        read_public_key(path)
