"""Text without credentials, for messages and logs. Imports little: every message passes through it."""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from functools import lru_cache
from urllib.parse import unquote, urlsplit, urlunsplit

from ..errors import HostError
from ..host import process
from .index_settings import find_links, named_indexes, proxy

_USERINFO = re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s\"'<>]*@")

_QUERY = re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s\"'<>?#]*\?)(?:[^\s\"'<>#,;:]|[,;:](?=[^\s\"'<>]))+")


def scrub(text: str) -> str:
    """Return text for a message or a log: without ``user:password@``, queries and any known password."""
    for secret in sorted(_secrets(), key=len, reverse=True):
        text = text.replace(secret, "***")
    return _QUERY.sub(r"\1***", _USERINFO.sub(r"\1", text))


def without_credentials(url: str) -> str:
    """Return the address without user name and password, and without a fragment."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))


class ScrubFilter(logging.Filter):
    """For a log handler: no line that passes it holds a credential."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Scrub the finished message; every record passes."""
        message = record.getMessage()
        clean = scrub(message)
        if clean != message:
            record.msg, record.args = clean, ()
        return True


# The arguments of processes are the lines that could carry an address. A filter of a handler would do for
# all loggers, but handlers are the caller's.
process.log.addFilter(ScrubFilter())


def _secrets() -> frozenset[str]:
    """Return what must not be seen. Never raises and never logs: `ScrubFilter` calls it for every line."""
    settings = re.compile(r"(UV|PIP|XDG)_.*|HOME|.*_proxy", re.IGNORECASE)
    return _secrets_of(tuple((key, value) for key, value in os.environ.items() if settings.fullmatch(key)))


@lru_cache(maxsize=8)
def _secrets_of(settings: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """Return the secrets as they are and percent-encoded; a token is a user name without a password."""
    found: set[str] = set()
    urls = [value for key, value in settings if key.lower().endswith("_proxy")]
    # Whoever needs the settings says what is wrong with them.
    with suppress(HostError, OSError, RuntimeError):
        urls += find_links()
    with suppress(HostError, OSError, RuntimeError):
        urls += [*named_indexes(), proxy()]
    for url in urls:
        try:
            parts = urlsplit(url)
        except ValueError:
            continue
        secret = (parts.username if parts.password is None else parts.password) or ""
        found |= {secret, unquote(secret)}
    found |= {value for key, value in settings if re.fullmatch(r"UV_INDEX_\w+_PASSWORD", key)}
    # Replacing a word of two letters would only make the text unreadable.
    return frozenset(secret for secret in found if len(secret) > 3)
