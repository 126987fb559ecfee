"""Which values do not belong in a receipt, by their name or their form. Pure."""

from __future__ import annotations

import re

_NAME = re.compile(
    r"(?:^|[_.-])(?:\w*token|\w*secret\w*|\w*passw(?:or)?d|passphrase|pwd|\w*api_?key|key|\w*credentials?"
    r"|auth|authorization|cookie|dsn|netrc|sas|pat|jwt|bearer|webhook\w*|\w*connection_?string)(?:$|[_.-])",
    re.IGNORECASE,
)
"""``tokenizer`` and ``keyboard`` are no secrets: a word has to end there."""
_NO_SECRETS = frozenset(("PWD", "OLDPWD"))
_FILE = re.compile(
    r"\.env(?:\..*|rc)?|\.?netrc|\.(?:npmrc|pypirc|pgpass|git-credentials|dockercfg)|kaggle\.json"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)|.*\.(?:pem|key|p12|pfx|keytab)|.*(?:secret|credential|password).*"
    r"|(?:.*[._-])?token(?:\.\w+)?",
    re.IGNORECASE,
)
"""Names of files that hold secrets."""
MOST_SECRET = 64 << 10
"""Bytes of one; a larger file counts as data."""
_VALUE = re.compile(
    r"(?:gh[pousr]_|github_pat_|glpat-|hf_|sk-|xox[abprs]-|AKIA|ASIA|AIza|pypi-|eyJ[\w-]{8,}\.)[\w.-]{8,}"
    r"|://[^/\s:@]*:[^/\s@]+@|-----BEGIN [A-Z ]*PRIVATE KEY"
)
"""Known prefixes of tokens, URLs with a password, private keys."""


def is_secret(name: str, value: str) -> bool:
    """Whether a variable's value is left out."""
    return (name not in _NO_SECRETS and _NAME.search(name) is not None) or _VALUE.search(value) is not None


def is_secret_file(path: str, size: int) -> bool:
    """Whether a file's digest is left out, by its name: where its secret is short, it could be guessed."""
    return size <= MOST_SECRET and _FILE.fullmatch(path.rpartition("/")[2]) is not None


def has_secret(text: str) -> bool:
    """Whether a text holds what has the form of a secret."""
    return _VALUE.search(text) is not None


def secret_in(command: tuple[str, ...]) -> str | None:
    """Return the option or the place by which a command has a secret in it; None: it has none."""
    before = ""
    for number, word in enumerate(command, 1):
        option, equals, value = word.partition("=")
        if word.startswith("-") and equals and value and is_secret(option.lstrip("-"), value):
            return option
        if before and not word.startswith("-") and is_secret(before.lstrip("-"), word):
            return before
        if _VALUE.search(word):
            return f"word {number}"
        before = word if word.startswith("--") and not equals else ""
    return None
