"""Shared options of commands that sign or read evidence."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..errors import EvidenceError
from ..host.console import one_line
from ..host.host import Host
from ..oci.registry.referrers import Attachment
from ..verify.evidence.signatures import (
    BUNDLE,
    IN_TOTO,
    is_signed,
    statement_in,
)
from ..verify.evidence.statements import PREDICATES, read_statement
from .output import file_option

if TYPE_CHECKING:
    from securesystemslib.signer import Signer

    from ..verify.evidence.keys import CommandSigner

F = TypeVar("F", bound=Callable[..., Any])

VARIABLE = "REPROBUILD_SIGN_PASSPHRASE"
"""Holds the passphrase of a key; with ``_FILE``, the name of a file that holds it."""

_PASSPHRASE_BYTES = 4096


def key_option(help_: str) -> Callable[[F], F]:
    """Return the option of public keys, with its own help."""
    path = click.Path(path_type=Path)
    return click.option("--key", "keys", multiple=True, type=path, metavar="FILE", help=help_)


def sign_options(function: F) -> F:
    """Add the options that choose a signer."""
    function = file_option("--sign-public", text="With --sign-command: its public key.")(function)
    text = "Sign by a command: bytes on its input, the signature on its output."
    function = click.option("--sign-command", metavar="COMMAND", help=text)(function)
    return file_option("--sign-key", text="Sign the evidence with this private key (PEM).")(function)


def signer_of(
    key: Path | None, command: str | None, public: Path | None, host: Host
) -> Signer | CommandSigner | None:
    """Return the signer, or None. Warns of a private key that everybody can read."""
    if key is not None and (command is not None or public is not None):
        raise click.UsageError("pass --sign-key, or --sign-command with --sign-public, not both")
    if (command is None) != (public is None):
        raise click.UsageError("--sign-command and --sign-public need each other")
    if key is None and command is None:
        return None
    from ..verify.evidence.keys import CommandSigner, read_private_key, read_public_key  # noqa: PLC0415 -- slow to load

    if command is not None and public is not None:
        try:
            argv = shlex.split(command)
        except ValueError as error:
            raise click.UsageError(f"--sign-command: {str(error).lower()}: {command}") from None
        if not argv:
            raise click.UsageError("--sign-command: is empty")
        return CommandSigner(argv, read_public_key(public))
    assert key is not None
    signer = read_private_key(key, lambda: _passphrase(key), _origin())
    if key.stat().st_mode & 0o004:
        host.console.warn(f"{key} can be read by every user of this machine: `chmod 600 {key}`")
    return signer


def _origin() -> str:
    """Return where the passphrase comes from, as a hint if it is wrong; empty if it is typed."""
    if (text := os.environ.get(VARIABLE)) is not None:
        return f"it was taken from {VARIABLE}" + ("" if text else ", which is empty")
    if file := os.environ.get(f"{VARIABLE}_FILE"):
        return f"it was taken from {one_line(file)}: the whole file, but for the end of its last line"
    return ""


def _passphrase(key: Path) -> str:
    if (text := os.environ.get(VARIABLE)) is not None:
        return text
    if file := os.environ.get(f"{VARIABLE}_FILE"):
        return _read_passphrase(file)
    if not sys.stdin.isatty():
        raise EvidenceError(
            f"{key}: is encrypted, and no terminal is there to ask for its passphrase",
            hint=f"set {VARIABLE}, or {VARIABLE}_FILE to a file that holds it",
        )
    return str(click.prompt(f"Passphrase of {one_line(str(key))}", hide_input=True, err=True))


def _read_passphrase(file: str) -> str:
    """Read a file, or a pipe such as a shell's ``<(command)``, without the end of its line."""
    try:
        with Path(file).open("rb") as opened:
            data = opened.read(_PASSPHRASE_BYTES + 1)
        if len(data) > _PASSPHRASE_BYTES:
            raise ValueError(f"not a passphrase: it has more than {_PASSPHRASE_BYTES:,} bytes")  # noqa: TRY301 -- one error for all
        return data.decode("utf-8-sig").replace("\r\n", "\n").rstrip("\n")
    except (OSError, ValueError) as error:
        why = "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else getattr(error, "strerror", error)
        raise EvidenceError(f"{VARIABLE}_FILE: {file}: {why}") from None


def attachments(documents: Mapping[str, bytes]) -> list[Attachment]:
    """Return documents as they are attached to an image in a registry, as cosign marks them."""
    found = []
    for document in documents.values():
        kind = read_statement(statement_in(document)).kind
        signed = is_signed(document)
        notes = {"dev.sigstore.bundle.predicateType": PREDICATES[kind]}
        notes |= {"dev.sigstore.bundle.content": "dsse-envelope"} if signed else {}
        found.append(Attachment(BUNDLE if signed else IN_TOTO, document, notes))
    return found
